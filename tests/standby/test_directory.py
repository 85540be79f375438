"""The directory's group, in processes: it survives the failure of a minority, and nothing forks (D0-A10)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import ClassVar

import pytest

from experiments.processes import LOOK_EVERY_S, SiteProcesses
from holdfast.protocols.routing.network_map import NetworkMap
from holdfast.schemes.tree.standin.cycle.errands import Accepted, Failed
from holdfast.standby.directory import GroupDirectory
from tests.apps.directory.test_application import START, later

WITHIN_S = 20.0


class DirectoryGroup(SiteProcesses):
    """Three of them."""

    factory: ClassVar[str] = "holdfast.apps.directory:Directory"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ("d1", "d2", "d3"), "directory.toml", "warning")
        self.site.write_text(self.site_text(self.addresses, self.peers))

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        brokers = "".join(self.broker_text(name, addresses, peers) for name in self.addresses)
        return f'[scheme]\nkind = "paxos"\n{brokers}[application]\nfactory = "{self.factory}"\n'

    def client(self, network: str = "net", within_s: float = WITHIN_S) -> GroupDirectory:
        return GroupDirectory(network, tuple(self.addresses.values()), within_s=within_s)

    async def leader(self) -> str:
        """Whoever leads, by its own word."""
        while True:
            for name in list(self.processes):
                found = await self.inspect(name)
                if found is not None and found.measures["replica_is_leading"]:
                    return name
            await asyncio.sleep(LOOK_EVERY_S)


def accepted(found: Accepted | Failed) -> NetworkMap:
    assert isinstance(found, Accepted), found
    return found.map


def test_a_group_of_which_one_is_killed_goes_on_and_with_two_down_says_so_in_time(tmp_path: Path) -> None:
    async def scene(group: DirectoryGroup) -> None:
        await group.start_beside()
        one, other = group.client(), group.client()
        first = later(1000, "r")
        assert accepted(await one.propose(START, first)) == first
        assert accepted(await other.propose(START, later(1000, "s"))) == first, "the other is told what counts"
        neighbours = await other.neighbours("r")
        assert not isinstance(neighbours, Failed)
        assert [member.name for member in neighbours.members] == ["a", "c"]

        leader = await group.leader()
        group.stop(leader)
        second = later(2000, "s")
        assert accepted(await other.propose(first, second)) == second
        assert accepted(await one.propose(first, later(2000, "t"))) == second

        group.stop(next(iter(group.processes)))
        third, brief = later(3000, "t"), group.client(within_s=1.0)
        failed = await brief.propose(second, third)
        assert isinstance(failed, Failed)
        assert "did not answer within 1 s" in failed.problem
        assert failed.problem.endswith(
            "; what was proposed may have been accepted all the same, and may be proposed again"
        )
        await group.start_beside(leader)
        assert accepted(await one.propose(second, third)) == third, "proposed again"
        assert await other.topology() == third
        for client in (one, other, brief):
            await client.close()

    with DirectoryGroup(tmp_path) as group:
        asyncio.run(asyncio.wait_for(scene(group), 120))


@pytest.mark.full
def test_leaders_that_are_killed_while_stewards_propose_against_each_other_make_no_fork(tmp_path: Path) -> None:
    """Two stewards propose again and again, each from what it was told; the leader is killed or stands still in the
    middle of it. All that was accepted is one history, and both know it."""

    async def steward(group: DirectoryGroup, name: str, told: dict[int, NetworkMap], over: asyncio.Event) -> int:
        client, known, own = group.client(within_s=2.0), START, 0
        while not over.is_set():
            wanted = later(known.number + 1000, f"{name}{known.number}")
            found = await client.propose(known, wanted)
            if isinstance(found, Accepted):
                assert told.setdefault(found.map.number, found.map) == found.map, "two maps with one number"
                own += found.map == wanted
                known = found.map
        await client.close()
        return own

    async def scene(group: DirectoryGroup) -> None:
        await group.start_beside()
        over, told = asyncio.Event(), dict[int, NetworkMap]()
        stewards = [asyncio.ensure_future(steward(group, name, told, over)) for name in ("r", "s")]
        for fault in ("kill", "pause", "kill", "pause", "kill"):
            before = max(told, default=0)
            leader = await group.leader()
            if fault == "kill":
                await asyncio.to_thread(group.stop, leader)
            else:
                group.send(leader, SIGSTOP)
            while max(told, default=0) < before + 5_000:  # others go on
                await asyncio.sleep(LOOK_EVERY_S)
            if fault == "kill":
                await group.start_beside(leader)
            else:
                group.send(leader, SIGCONT)
        over.set()
        assert sum(await asyncio.gather(*stewards)) > 0
        last = group.client()
        assert await last.topology() == told[max(told)]
        await last.close()

    with DirectoryGroup(tmp_path) as group:
        asyncio.run(asyncio.wait_for(scene(group), 240))


def test_what_is_no_directory_is_told_apart(tmp_path: Path) -> None:
    class Other(DirectoryGroup):
        factory = "holdfast.apps.zapviewers.viewership:Viewership"

    async def scene(group: DirectoryGroup) -> None:
        client = group.client()
        silent = await group.client(within_s=0.3).topology()
        assert isinstance(silent, Failed)
        assert "did not answer" in silent.problem or "can't be asked" in silent.problem
        await group.start_beside()
        found = await client.topology()
        assert isinstance(found, Failed)
        assert "no directory" in found.problem
        await client.close()

    with Other(tmp_path) as group:
        asyncio.run(asyncio.wait_for(scene(group), 60))


def test_a_map_of_another_network_of_the_same_name_is_not_taken_up(tmp_path: Path) -> None:
    """And a network says what its directory has to be told, for a name that is not known."""

    async def scene(group: DirectoryGroup) -> None:
        await group.start_beside()
        client = group.client()
        unknown = await client.topology()
        assert isinstance(unknown, Failed)
        assert "no broker of it was replaced yet" in unknown.problem
        first = later(1000, "r")
        await client.propose(START, first)
        strange = NetworkMap(0, (START.members[1],), ())
        failed = await client.propose(strange, NetworkMap(500, (START.members[1],), ()))
        assert isinstance(failed, Failed)
        assert "a map of another network under this name" in failed.problem
        forked = await client.propose(later(1000, "s"), later(2000, "t"))
        assert isinstance(forked, Failed)
        assert "its history is another one" in forked.problem
        await client.close()

    with DirectoryGroup(tmp_path) as group:
        asyncio.run(asyncio.wait_for(scene(group), 60))
