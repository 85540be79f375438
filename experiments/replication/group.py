"""A group of replicas, each `holdfast broker` in a process of its own, as on machines of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from experiments.processes import LOOK_EVERY_S, SiteProcesses

NO_PROTOCOL = "none"


class ReplicaGroup(SiteProcesses):
    """The spares are not started with the others."""

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        protocol: str = "batch",
        pipeline: int = 10,
        rest: str = "",
        log_level: str = "warning",
        spares: int = 0,
    ) -> None:
        """`rest` is more of the site file. The protocol `NO_PROTOCOL` is for one broker that is no group."""
        listed = [f"r{number}" for number in range(1, replicas + spares + 1)]
        super().__init__(folder, listed, "group.toml", log_level)
        self.names, self.spares = listed[:replicas], listed[replicas:]  # members, and those that are none yet
        if protocol == NO_PROTOCOL:
            self._scheme = '[scheme]\nkind = "tree"\n'
        else:
            self._scheme = f'[scheme]\nkind = "paxos"\nprotocol = "{protocol}"\npipeline = {pipeline}\n'
        self._rest = rest
        self.site.write_text(self.site_text(self.addresses, self.peers))

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        entries = [
            self.broker_text(name, addresses, peers) + ("spare = true\n" if name in self.spares else "")
            for name in self.addresses
        ]
        return self._scheme + "".join(entries) + self._rest

    @property
    def url(self) -> str:
        """Where clients find the members."""
        return "holdfast://" + ",".join(self.addresses[name] for name in self.names)

    async def leader(self, within_s: float = 20.0) -> str:
        """Who leads: of those who think so, the one of the highest ballot."""
        deadline = asyncio.get_running_loop().time() + within_s
        while asyncio.get_running_loop().time() < deadline:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            leading = [
                (answer.measures["replica_ballot"], answer.broker)
                for answer in answers
                if answer is not None and answer.measures["replica_is_leading"]
            ]
            if leading:
                return max(leading)[1]
            await asyncio.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"nobody leads within {within_s:g} s")

    async def caught_up(self, within_s: float = 60.0) -> None:
        """Returns when every replica that runs hears all others and has executed what the leader had at some moment."""
        deadline = asyncio.get_running_loop().time() + within_s
        wanted = 0
        while asyncio.get_running_loop().time() < deadline:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            measures = [answer.measures for answer in answers if answer is not None]
            wanted = wanted or max((each["replica_slots_executed"] for each in measures), default=0)
            if len(measures) == len(self.processes) and all(
                each["replica_slots_executed"] >= wanted and each["replica_peers"] == len(self.processes) - 1
                for each in measures
            ):
                return
            await asyncio.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"the replicas have not caught up within {within_s:g} s")

    async def heads(self, within_s: float = 20.0) -> dict[str, int]:
        """The last position of every replica's log, once all have executed as much, or when time is up."""
        deadline = asyncio.get_running_loop().time() + within_s
        while True:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            told = {answer.broker: answer.measures for answer in answers if answer is not None}
            same = len({each["replica_slots_executed"] for each in told.values()}) == 1
            if (same and len(told) == len(self.processes)) or asyncio.get_running_loop().time() > deadline:
                return {name: told[name]["log_head"] if name in told else -1 for name in self.processes}
            await asyncio.sleep(LOOK_EVERY_S)
