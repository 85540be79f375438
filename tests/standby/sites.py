"""Sites whose spares are started, lent and borrowed in tests, in folders of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

from experiments.processes import free_ports
from holdfast.broker.site import Site
from holdfast.runtime.site_file import read_site
from holdfast.standby.spare_folder import SpareFolder

LISTED = ("b1", "b2", "s3", "s4")


class TestSite:
    """Two brokers and two spares, of which none runs. Whatever was started of it is killed at the end."""

    __test__ = False

    def __init__(self, folder: Path, name: str, tables: str = "", reliability: str = "buffered") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * len(LISTED))
        self.addresses = {each: f"127.0.0.1:{port}" for each, port in zip(LISTED, ports[::2], strict=True)}
        self.peers = {each: f"127.0.0.1:{port}" for each, port in zip(LISTED, ports[1::2], strict=True)}
        self.file = folder / f"{name}.toml"
        brokers = "".join(
            f'[[broker]]\nid = "{each}"\naddress = "{self.addresses[each]}"\npeer_address = "{self.peers[each]}"\n'
            f'data = "{each}"\n' + ("spare = true\n" if each.startswith("s") else "")
            for each in LISTED
        )
        head = f'name = "{name}"\n[scheme]\nkind = "tree"\nreliability = "{reliability}"\n'
        self.file.write_text(f'{head}{brokers}[[link]]\nbetween = ["b1", "b2"]\n[standin]\n[standin.sla]\n{tables}')
        self.site: Site = read_site(str(self.file))

    def spare(self, name: str) -> SpareFolder:
        return SpareFolder(next(entry.data for entry in self.site.brokers if entry.id == name))

    def pid(self, name: str) -> int:
        """Of the process that was started of a spare; 0 if it does not run."""
        running = self.spare(name).running()
        return 0 if running is None else running.pid

    def kill(self, name: str) -> None:
        pid = self.pid(name)
        assert pid, f"{name} does not run"
        os.kill(pid, SIGKILL)

    async def until_gone(self, name: str, within_s: float = 30.0) -> None:
        async with asyncio.timeout(within_s):
            while self.spare(name).running() is not None:
                await asyncio.sleep(0.02)


@contextmanager
def sites(*described: TestSite) -> Iterator[None]:
    """Ends what runs of them."""
    try:
        yield
    finally:
        for each in described:
            for name in ("s3", "s4"):
                if each.pid(name):
                    each.kill(name)
