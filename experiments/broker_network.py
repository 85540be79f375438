"""A network of brokers, each `holdfast broker` in a process of its own; links between them may lead through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments.processes import LOOK_EVERY_S, SiteProcesses
from holdfast.testing.fault_proxy import FaultProxy

Measures = Mapping[str, int]


class BrokerNetwork(SiteProcesses):
    """The brokers that `links` join, in the order in which they name them."""

    def __init__(
        self,
        folder: Path,
        links: Sequence[tuple[str, str]],
        reliability: str,
        routing: str = "",
        log_level: str = "warning",
        spares: Sequence[str] = (),
    ) -> None:
        """`routing` has lines of the site file's `[routing]`; `spares` are described, and no members yet."""
        names = list(dict.fromkeys(name for link in links for name in link))
        super().__init__(folder, [*names, *spares], "network.toml", log_level)
        self.names = names
        self.spares = tuple(spares)
        self.links = tuple(links)
        self.reliability = reliability
        self._routing = routing
        self._proxied: dict[str, dict[str, str]] = {}  # who dials → whom → where it does
        self.site.write_text(self.site_text(self.addresses, self.peers))

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        lines = [f'[scheme]\nkind = "tree"\nreliability = "{self.reliability}"\n']
        lines += [self.broker_text(name, addresses, peers) for name in self.addresses]
        lines += [f'[[link]]\nbetween = ["{one}", "{other}"]\n' for one, other in self.links]
        return "".join([*lines, "[routing]\n", self._routing])

    def broker_text(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        spare = "spare = true\n" if name in self.spares else ""
        return super().broker_text(name, addresses, peers) + spare

    def url(self, name: str) -> str:
        """Where clients of one broker connect."""
        return f"holdfast://{self.addresses[name]}"

    def proxy(self, one: str, other: str) -> FaultProxy:
        """What stands between two neighbours, once it is entered and given to `lead_through`."""
        _, server = sorted((one, other), key=self.names.index)
        return FaultProxy(self.peers[server])

    def lead_through(self, proxy: FaultProxy, one: str, other: str) -> None:
        """Before they are started: of two neighbours the first in the site file dials."""
        dialling, server = sorted((one, other), key=self.names.index)
        proxied = self._proxied.setdefault(dialling, {})
        proxied[server] = proxy.address
        self.write_view(dialling, {}, proxied)

    def lead_directly(self, name: str) -> None:
        """When it is started next, a broker dials its neighbours where they are."""
        self._proxied.pop(name, None)
        self.forget_view(name)

    async def measures(self, name: str) -> Measures:
        """What can be measured of a broker; nothing if it does not answer."""
        answer = await self.inspect(name)
        return {} if answer is None else answer.measures

    async def until(self, name: str, holds: Callable[[Measures], bool], within_s: float = 20.0) -> Measures:
        """Returns when a broker's measures are so."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not (measures := await self.measures(name)) or not holds(measures):
            if asyncio.get_running_loop().time() > deadline:
                raise RuntimeError(f"{name} is not as expected within {within_s:g} s, but {dict(measures)}")
            await asyncio.sleep(LOOK_EVERY_S)
        return measures

    async def linked(self) -> None:
        """Returns when all that run have links to all their neighbours that run, and to nobody else; and know what is
        on their sides."""
        for name in list(self.processes):
            wanted = [other for other in self.neighbours(name) if other in self.processes]
            await self._until_linked(name, wanted)
            await self.until(name, lambda measures: not measures["routes_awaited"])

    def neighbours(self, name: str) -> list[str]:
        return [end for link in self.links if name in link for end in link if end != name]

    async def _until_linked(self, name: str, wanted: Sequence[str], within_s: float = 20.0) -> None:
        deadline = asyncio.get_running_loop().time() + within_s
        while (answer := await self.inspect(name)) is None or set(_names(answer.facts["neighbours_up"])) != set(wanted):
            if asyncio.get_running_loop().time() > deadline:
                raise RuntimeError(f"{name} is not linked with {', '.join(wanted)} within {within_s:g} s")
            await asyncio.sleep(LOOK_EVERY_S)

    async def begin(self, *names: str) -> None:
        """Starts some, or all that do not run, and joins them with the others."""
        if names or len(self.processes) < len(self.names):
            await self.start_beside(*names)
        await self.linked()

    async def kill(self, *names: str) -> None:
        """SIGKILL; returns when their neighbours have noticed."""
        for name in names:
            self.stop(name)
        for other in self.processes:
            if set(names) & set(self.neighbours(other)):
                await self._until_linked(other, [near for near in self.neighbours(other) if near in self.processes])


def _names(listed: str) -> list[str]:
    return listed.split(", ") if listed else []
