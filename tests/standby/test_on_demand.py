"""From a broker that is killed to its place handed back, with nobody's help: stand-ins that are started for it, and
borrowed (D0-A9, D0-A10, D0-B2)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S
from holdfast.runtime.site_file import read_site
from holdfast.schemes.tree.standin.cycle.errands import Failed
from holdfast.standby.spare_folder import SpareFolder
from tests.standby.test_directory import DirectoryGroup

EVENTS = 30
QUICK = "heartbeat_ms = 100\nsuspect_ms_min = 500\nsuspect_ms_max = 2000\nrefresh_ms = 1000\n"
SLA = "[standin]\n[standin.sla]\nunreachable_ms = 500\ncalm_ms = 1000\nstart_ms = 10000\n"
LINKS = [("b1", "b2"), ("b2", "b3")]


class NamedNetwork(BrokerNetwork):
    """A network whose site has a name."""

    def site_text(self, *args: object) -> str:
        return f'name = "{self.folder.name}"\n' + super().site_text(*args)  # type: ignore[arg-type]


def network(folder: Path, tables: str = "", spares: tuple[str, ...] = (), level: str = "buffered") -> NamedNetwork:
    folder.mkdir(parents=True, exist_ok=True)
    return NamedNetwork(folder, LINKS, level, QUICK + SLA + tables, spares=spares)


def spare(of: BrokerNetwork, name: str) -> SpareFolder:
    return SpareFolder(next(entry.data for entry in read_site(str(of.site)).brokers if entry.id == name))


def end_spares(of: BrokerNetwork) -> None:
    for name in of.spares:
        running = spare(of, name).running()
        if running is not None:
            os.kill(running.pid, 9)


async def until(of: BrokerNetwork, holds: Callable[[str], bool], within_s: float = 60.0) -> str:
    """Returns who belongs to the network, as b1 says, when it is so."""
    members = ""
    async with asyncio.timeout(within_s):
        while True:
            found = await of.inspect("b1")
            if found is not None and not found.facts.get("change"):
                members = found.facts["members"]
                if holds(members):
                    return members
            await asyncio.sleep(LOOK_EVERY_S)


class Flow:
    """Events from b1 to b3, all of which come, once, in order."""

    def __init__(self, of: BrokerNetwork) -> None:
        self._of = of
        self._stack = AsyncExitStack()
        self._last = self._seen = 0

    async def __aenter__(self) -> Flow:
        self._publisher = await self._stack.enter_async_context(holdfast.connect(self._of.url("b1")))
        subscriber = await self._stack.enter_async_context(holdfast.connect(self._of.url("b3")))
        self._events = aiter(await self._stack.enter_async_context(subscriber.subscribe("topic = 'load'")))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def more(self) -> None:
        for _ in range(EVENTS):
            self._last += 1
            await self._publisher.publish({"n": self._last}, topic="load")

    async def all_come(self) -> None:
        async with asyncio.timeout(30):
            while self._seen < self._last:
                self._seen += 1
                assert (await anext(self._events)).attributes["n"] == self._seen


async def replaced_and_back(of: BrokerNetwork, by: str, runs: Callable[[], bool]) -> None:
    """b2 is killed, `by` stands in, b2 is started again and has its place back; `by` is ended, or given back."""
    async with Flow(of) as flow:
        await flow.more()
        await flow.all_come()
        of.stop("b2")
        await flow.more()
        await until(of, lambda members: by in members.split(", ") and "b2" not in members.split(", "))
        await flow.more()
        await flow.all_come()
        assert runs()
        await of.start_beside("b2")
        await until(of, lambda members: "b2" in members.split(", ") and by not in members.split(", "))
        await flow.more()
        await flow.all_come()
        async with asyncio.timeout(30):
            while runs():
                await asyncio.sleep(LOOK_EVERY_S)


@pytest.mark.full
@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_spare_that_does_not_run_is_started_for_a_broker_that_failed_and_ended_when_that_is_back(
    tmp_path: Path, level: str
) -> None:
    with network(tmp_path / "west", "[standin.processes]\n", ("s4",), level) as west:

        async def scene() -> None:
            await west.begin()
            await replaced_and_back(west, "s4", lambda: spare(west, "s4").running() is not None)

        try:
            asyncio.run(asyncio.wait_for(scene(), 150))
        finally:
            end_spares(west)


@pytest.mark.full
def test_a_site_whose_spares_are_used_up_borrows_one_of_another_site_and_gives_it_back(tmp_path: Path) -> None:
    """The paper's Fig. 1: two domains, A and B, that share no broker."""
    lend = '[standin.lend]\nto = ["east"]\nbrokers = ["s4"]\n'
    with network(tmp_path / "west", lend, ("s4",)) as west:
        borrow = f'[standin.borrow]\nfrom = ["{west.addresses["b2"]}"]\n'
        with network(tmp_path / "east", borrow) as east:

            async def scene() -> None:
                await asyncio.gather(west.begin(), east.begin())
                await replaced_and_back(east, "west.s4", lambda: spare(west, "s4").lending() is not None)
                assert spare(west, "s4").running() is None

            try:
                asyncio.run(asyncio.wait_for(scene(), 150))
            finally:
                end_spares(west)


@pytest.mark.full
def test_a_borrowed_broker_whose_time_is_over_hands_its_place_to_another_one_while_events_flow(tmp_path: Path) -> None:
    lend = '[standin.lend]\nto = ["east"]\nbrokers = ["s4", "s5"]\nmost = 2\nfor_s = 10\ngrace_s = 60\n'
    with network(tmp_path / "west", lend, ("s4", "s5")) as west:
        borrow = f'[standin.borrow]\nfrom = ["{west.addresses["b1"]}"]\n'
        with network(tmp_path / "east", borrow) as east:

            async def scene() -> None:
                await asyncio.gather(west.begin(), east.begin())
                async with Flow(east) as flow:
                    await flow.more()
                    await flow.all_come()
                    east.stop("b2")
                    await until(east, lambda members: "west.s4" in members)
                    await flow.more()
                    await flow.all_come()
                    await until(east, lambda members: "west.s5" in members and "west.s4" not in members)
                    await flow.more()
                    await flow.all_come()
                    async with asyncio.timeout(30):  # and not only when the grace time is over
                        while spare(west, "s4").lending() is not None:
                            await asyncio.sleep(LOOK_EVERY_S)
                    assert spare(west, "s4").running() is None
                    await flow.more()
                    await flow.all_come()

            try:
                asyncio.run(asyncio.wait_for(scene(), 150))
            finally:
                end_spares(west)


@pytest.mark.full
def test_a_replacement_waits_for_the_directory_and_comes_when_its_majority_is_back(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with DirectoryGroup(tmp_path / "dir") as group:
        addresses = ", ".join(f'"{address}"' for address in group.addresses.values())
        tables = f"[standin.directory]\nbrokers = [{addresses}]\n[standin.processes]\n"
        with network(tmp_path / "west", tables, ("s4",)) as west:

            async def scene() -> None:
                await asyncio.gather(west.begin(), group.start_beside())
                group.stop("d2")
                group.stop("d3")
                async with Flow(west) as flow:
                    await flow.more()
                    await flow.all_come()
                    west.stop("b2")
                    async with asyncio.timeout(60):
                        while True:
                            found = await west.inspect("b1")
                            if found and "the directory" in found.facts.get("standin_problem", ""):
                                break
                            await asyncio.sleep(LOOK_EVERY_S)
                    assert found.facts["members"] == "b1, b2, b3"
                    await flow.more()
                    await group.start_beside("d2")
                    await until(west, lambda members: "s4" in members.split(", "))
                    await flow.all_come()
                    client = group.client(f"west/{found.facts['network']}")
                    stored = await client.topology()
                    assert not isinstance(stored, Failed)
                    assert set(stored.names) == {"b1", "b3", "s4"}
                    await client.close()

            try:
                asyncio.run(asyncio.wait_for(scene(), 150))
            finally:
                end_spares(west)
