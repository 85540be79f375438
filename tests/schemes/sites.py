"""The site that `holdfast init` writes for a scheme: read, simulated, and run in processes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

import holdfast
from experiments.processes import SiteProcesses, free_ports
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import InitWish, Scheme
from holdfast.broker.site import Site, site_from_toml
from holdfast.sim.scenario import Broker, Scenario

KINDS = SCHEMES.kinds
PROGRAM = "tests.schemes"
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


def initial_text(kind: str) -> str:
    """Of several brokers, also where a scheme may have one."""
    return SCHEMES[kind].init_text(InitWish("site.toml", True, None, {}, False))


def initial_site(kind: str) -> Site:
    return site_from_toml(initial_text(kind), "site.toml", Random)


def command(*arguments: str, standard_input: str = "") -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", PROGRAM, *arguments]
    return subprocess.run(line, input=standard_input, capture_output=True, text=True, check=False, timeout=60)


def brokers_of(site: Site) -> list[Broker]:
    return [Broker(id=entry.id, durable=entry.durable) for entry in site.brokers]


def scenario_of(site: Site, **fields: object) -> Scenario:
    """A run of the site's brokers, in the simulator's times where its scheme has some; the rest is to be said."""
    return Scenario(
        **{
            "name": "conformance",
            "seed": 1,
            "system": site.scheme.kind,
            "links": list(site.links),
            "brokers": brokers_of(site),
            "faults": [],
            **fields,
        }  # type: ignore[arg-type]
    )


class InitialProcesses(SiteProcesses):
    """All brokers of the site that `init` writes, at addresses that are free here."""

    program: ClassVar[str] = PROGRAM

    def __init__(self, folder: Path, kind: str) -> None:
        self._text, self.read = initial_text(kind), initial_site(kind)
        super().__init__(folder, [entry.id for entry in self.read.brokers], "site.toml", "warning")
        self.site.write_text(self.site_text(self.addresses, self.peers))
        self.metrics = dict(zip(self.names, free_ports(len(self.names)), strict=True))

    def more_arguments(self, name: str) -> Sequence[str]:
        return ["--metrics", f"127.0.0.1:{self.metrics[name]}"]

    @property
    def scheme(self) -> Scheme:
        return self.read.scheme

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        places = {entry.address: addresses[entry.id] for entry in self.read.brokers}
        places |= {entry.peer_address: peers[entry.id] for entry in self.read.brokers}
        text = ADDRESS.sub(lambda found: places.get(found[0], found[0]), self._text)
        return re.sub(r'^data = "var', f'data = "{self.folder}', text, flags=re.MULTILINE)

    def url(self, home: str) -> str:
        """Of the brokers that a client of `home` knows: all, if they are one broker."""
        names = self.names if self.scheme.is_one_broker else [home]
        return "holdfast://" + ",".join(self.addresses[name] for name in names)

    def connect(self, home: str, name: str) -> holdfast.Bus:
        return holdfast.connect(self.url(home), name=name)


__all__ = ["KINDS", "InitialProcesses", "brokers_of", "command", "initial_site", "initial_text", "scenario_of"]
