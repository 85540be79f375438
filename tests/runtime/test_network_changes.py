"""Networks of processes that change while events flow, by `holdfast network`: each event comes to everyone who wants
it, once and in its publisher's order."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from experiments.broker_network import BrokerNetwork
from tests.runtime.network_load import NetworkLoad, Subscriber

QUICK = "dial_every_ms = 100\nretransmit_ms = 200\nrefresh_ms = 300\n"
CHAIN = (("b1", "b2"), ("b2", "b3"))
# b1 ─ b2 ─ b3 ─ b4 ─ b5
#           └─ b6 ─ b7
SEVEN = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b3", "b6"), ("b6", "b7"))
HOMES = ("b3", "b5", "b7")  # of publishers and subscribers


class Command:
    """`holdfast network VERB SITE …`, in a process of its own."""

    def __init__(self, network: BrokerNetwork, verb: str, *options: str) -> None:
        self._words = ("network", verb, str(network.site), *options)

    async def begin(self) -> Command:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "holdfast.cli", *self._words, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        return self

    async def line(self) -> str:
        """The next one that it says."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().rstrip("\n")

    async def end(self) -> list[str]:
        """All that it has still to say; it has to have done what it was asked for."""
        said, _ = await self._process.communicate()
        lines = said.decode().splitlines()
        assert self._process.returncode == 0, (self._words, lines)
        return lines


async def carried_out(network: BrokerNetwork, verb: str, *options: str) -> str:
    """The last line of a command."""
    command = await Command(network, verb, *options).begin()
    return (await command.end())[-1]


def links_of(done: str) -> set[frozenset[str]]:
    """Of the line that says that a change is done."""
    told = done.partition("links ")[2].partition(";")[0]
    return {frozenset(link.split("-")) for link in told.split(", ")}


def pairs(*links: str) -> set[frozenset[str]]:
    return {frozenset(link.split()) for link in links}


def complete(load: NetworkLoad) -> dict[str, dict[str, list[int]]]:
    """What has to have come to those who were there from the beginning."""
    return {
        subscriber.home: {home: list(range(1, count + 1)) for home, count in load.published.items()}
        for subscriber in load.subscribers
    }


def got(load: NetworkLoad) -> dict[str, dict[str, list[int]]]:
    return {subscriber.home: subscriber.got for subscriber in load.subscribers}


def check_latecomer(load: NetworkLoad, subscriber: Subscriber) -> None:
    """It has everything from the first one on that came, of each publisher."""
    for home, numbers in subscriber.got.items():
        assert numbers == list(range(numbers[0], load.published[home] + 1))


def test_a_broker_is_put_between_two_and_another_one_taken_out_while_events_flow(tmp_path: Path) -> None:
    """And the brokers know it after a restart, whatever their site file says."""

    async def scene(network: BrokerNetwork) -> None:
        await network.begin()
        await network.start_beside("b4")
        async with NetworkLoad(network, ("b1",), ("b3",)) as load:
            done = await carried_out(network, "add-broker", "--id", "b4", "--at", "b2", "--between", "b3")
            assert links_of(done) == pairs("b1 b2", "b2 b4", "b4 b3")
            await load.more(20)
            done = await carried_out(network, "remove-broker", "--id", "b2")
            assert links_of(done) == pairs("b1 b4", "b4 b3")
            await load.more(20)
            await load.pause()
            assert got(load) == complete(load)
        for name in list(network.processes):
            network.stop(name)
        await network.start_beside("b1", "b3", "b4")
        async with NetworkLoad(network, ("b3",), ("b1",)) as load:
            await load.more(20)
            await load.pause()
            assert got(load) == complete(load)
        shown = await (await Command(network, "show").begin()).end()
        assert shown[0].startswith("members: b1, b3, b4; b1 keeps the order of changes")

    with BrokerNetwork(tmp_path, CHAIN, "buffered", QUICK, spares=("b4",)) as network:
        asyncio.run(asyncio.wait_for(scene(network), 120))


@pytest.mark.full
def test_ten_changes_under_load_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    """One broker is killed in the middle of a change and started again, one is killed for good and declared lost."""
    with BrokerNetwork(tmp_path, SEVEN, "buffered", QUICK, spares=("b8", "b9", "b10")) as network:
        asyncio.run(asyncio.wait_for(_ten_changes(network), 400))


async def _ten_changes(network: BrokerNetwork) -> None:
    await network.begin()
    await network.start_beside(*network.spares)
    async with NetworkLoad(network, HOMES, HOMES) as load:
        there = list(load.subscribers)
        await carried_out(network, "add-broker", "--id", "b8", "--at", "b2")  # 1: a leaf joins
        await carried_out(network, "add-broker", "--id", "b9", "--at", "b3", "--between", "b4")  # 2
        late = await load.subscribe("b9")
        await load.more(20)
        await carried_out(network, "remove-broker", "--id", "b8")  # 3: a leaf leaves
        network.stop("b8")
        done = await carried_out(network, "remove-broker", "--id", "b2")  # 4: an inner broker
        network.stop("b2")
        assert links_of(done) == pairs("b1 b3", "b3 b9", "b9 b4", "b4 b5", "b3 b6", "b6 b7")
        done = await carried_out(network, "add-link", "--between", "b5", "b7", "--instead-of", "b3", "b9")  # 5
        assert links_of(done) == pairs("b1 b3", "b5 b7", "b9 b4", "b4 b5", "b3 b6", "b6 b7")
        await load.more(20)
        await _kill_in_the_middle(network)  # 6
        done = await carried_out(network, "add-broker", "--id", "b10", "--at", "b1")  # 7
        assert links_of(done) == pairs("b1 b3", "b5 b7", "b9 b4", "b4 b5", "b3 b7", "b1 b10")
        await carried_out(network, "add-link", "--between", "b10", "b7", "--instead-of", "b1", "b10")  # 8
        done = await carried_out(network, "remove-broker", "--id", "b1")  # 9: the keeper
        network.stop("b1")
        assert links_of(done) == pairs("b5 b7", "b9 b4", "b4 b5", "b3 b7", "b7 b10")
        await load.more(20)
        await load.pause()  # what only b4 has would be lost with it
        network.stop("b4")
        load.go_on()
        await load.more(20)  # waits for b4, at b5
        done = await carried_out(network, "remove-broker", "--id", "b4", "--lost")  # 10
        assert links_of(done) == pairs("b5 b7", "b9 b5", "b3 b7", "b7 b10")
        await load.more(20)
        await load.pause()
        check_latecomer(load, late)
        assert {one.home: one.got for one in there} == {one.home: complete(load)[one.home] for one in there}


async def _kill_in_the_middle(network: BrokerNetwork) -> None:
    """b6 is taken out: b7, which moves, and has clients, is killed meanwhile. That takes milliseconds, so b6 stands
    still until then."""
    network.send("b6", SIGSTOP)
    command = await Command(network, "remove-broker", "--id", "b6").begin()
    assert (await command.line()).startswith("b7 moves from b6 to b3")
    network.stop("b7")
    network.send("b6", SIGCONT)
    await asyncio.sleep(0.3)
    await network.start_beside("b7")
    await command.end()
    network.stop("b6")
