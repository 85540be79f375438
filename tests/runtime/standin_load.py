"""A network of seven processes under load, whose brokers are killed, replaced by a spare, and get their places back;
and what is held against it."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import NamedTuple

from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S
from tests.runtime.network_load import NetworkLoad

# b1 ─ b2 ─ b3 ─ b4 ─ b5
#           └─ b6 ─ b7
SEVEN = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b3", "b6"), ("b6", "b7"))
HOMES = ("b1", "b5", "b7")  # of publishers and subscribers
INNER = ("b3", "b2", "b4", "b6")
SPARE = "b8"
# Covering hides from the neighbours who wants an event besides, and what they do not name, increm does not keep for it.
# What comes first is said, too, where events wait.
QUICK = 'dial_every_ms = 100\nretransmit_ms = 200\nrefresh_ms = 300\ncovering = false\n[standin]\norder = "general"\n'
NONE, BUFFERED = "none", "buffered"
BASIC, SYNCH, INCREM = "basic", "synch", "increm"
SHARED, ORDERED = "ms", "ms-ro"
STILL_S, GOES_S = 0.05, 0.01  # of a broker that is slow
EVENTS = 20  # of each publisher, before, while a broker is down, and after

Way = tuple[str, str]  # from the publisher at one home to the subscriber at another


def seven(folder: Path, level: str, *more_spares: str, patience_ms: int = 10_000) -> BrokerNetwork:
    settings = f"{QUICK}patience_ms = {patience_ms}\n"
    return BrokerNetwork(folder, SEVEN, level, settings, spares=(SPARE, *more_spares))


async def standin(network: BrokerNetwork, verb: str, *options: str, may_fail: bool = False) -> list[str]:
    """What `holdfast standin VERB SITE …` says; it has to do what it was asked for, or it `may_fail`."""
    words = (sys.executable, "-m", "holdfast.cli", "standin", verb, str(network.site), *options)
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    lines = said.decode().splitlines()
    assert may_fail or process.returncode == 0, (words, lines)
    return lines


async def stand_still(network: BrokerNetwork, name: str) -> None:
    """A broker is slow: it goes on for a moment now and then, until this is cancelled."""
    try:
        while True:
            network.send(name, SIGSTOP)
            await asyncio.sleep(STILL_S)
            network.send(name, SIGCONT)
            await asyncio.sleep(GOES_S)
    finally:
        network.send(name, SIGCONT)


async def relieve(network: BrokerNetwork, load: NetworkLoad, slow: str, protocol: str, mode: str) -> list[str]:
    """A broker is slow, the spare shares its work, and gives it back; what is not as promised."""
    before = {(each.home, home): len(got) for each in load.subscribers for home, got in each.got.items()}
    slowing = asyncio.ensure_future(stand_still(network, slow))
    await load.more(EVENTS)
    await standin(network, "replace", slow, "--by", SPARE, "--protocol", protocol, "--mode", mode)
    shared = (await network.measures(SPARE))["events_arrived_total"]
    await load.more(5 * EVENTS)
    passed = (await network.measures(SPARE))["events_arrived_total"] - shared
    await standin(network, "hand-back", slow)
    slowing.cancel()
    await asyncio.gather(slowing, return_exceptions=True)
    await load.until_complete()
    load.go_on()
    problems = [] if passed else [f"nothing went by {SPARE}"]
    for each in load.subscribers:
        for home, got in each.got.items():
            if len(set(got)) < len(got):
                problems.append(f"{home} → {each.home}: came again")
            since = got[before[each.home, home] :]
            if mode == ORDERED and since != sorted(since):
                problems.append(f"{home} → {each.home}: out of order: {since}")
    return problems


class Outcome(NamedTuple):
    """Of one replacement. `lost` never came before the place was handed back; `late` came then."""

    level: str
    protocol: str
    faulty: str
    lost: int
    late: int
    problems: tuple[str, ...]


class Replacements:
    """One after the other, under a load that goes on all the time. What came of each is held against what its level and
    its protocol promise."""

    def __init__(self, network: BrokerNetwork, load: NetworkLoad) -> None:
        self._network = network
        self._load = load
        self._level = network.reliability
        self.outcomes: list[Outcome] = []

    async def replace(self, faulty: str, protocol: str) -> Outcome:
        """And hands its place back."""
        network, load = self._network, self._load
        await load.more(EVENTS)
        before = {way: len(got) for way, got in self._ways()}
        known = self._lacking()
        under_way = {way: set(got) for way, got in self._ways()}
        await network.kill(faulty)
        noticed = {home: count + 1 for home, count in load.published.items()}  # one may be on its way to its broker
        may_lack = {(home, to): set(range(1, noticed[home] + 1)) - got for (home, to), got in under_way.items()}
        await load.more(EVENTS)
        await standin(network, "replace", faulty, "--by", SPARE, "--protocol", protocol)
        await load.more(EVENTS)
        await load.pause()
        lacking = {way: gone - known[way] for way, gone in self._lacking().items()}
        problems = self._wrong(protocol, before, may_lack, lacking)
        load.go_on()
        await network.start_beside(faulty)
        await standin(network, "hand-back", faulty)
        await load.more(EVENTS)
        await load.pause()
        late = await self._late(lacking)
        problems += [f"{home} → {to}: {sorted(ns)} never came" for (home, to), ns in self._gone(lacking) if self._keeps]
        problems += self._doubled()
        load.go_on()
        lost = sum(map(len, lacking.values()))
        outcome = Outcome(self._level, protocol, faulty, lost, late, tuple(problems))
        self.outcomes.append(outcome)
        return outcome

    @property
    def _keeps(self) -> bool:
        return self._level == BUFFERED

    def _ways(self) -> list[tuple[Way, list[int]]]:
        return [
            ((home, each.home), each.got.setdefault(home, []))
            for each in self._load.subscribers
            for home in self._load.published
        ]

    def _lacking(self) -> dict[Way, set[int]]:
        published = self._load.published
        return {way: set(range(1, published[way[0]] + 1)) - set(got) for way, got in self._ways()}

    def _wrong(
        self,
        protocol: str,
        before: dict[Way, int],
        may_lack: dict[Way, set[int]],
        lacking: dict[Way, set[int]],
    ) -> list[str]:
        """What is not as promised when the stand-in knows everything."""
        problems = self._doubled()
        for way, got in self._ways():
            since = got[before[way] :]
            if (protocol != INCREM or self._keeps) and any(one > other for one, other in pairwise(since)):
                problems.append(f"{' → '.join(way)}: out of order: {since}")
            unexcused = lacking[way] - may_lack[way]
            if unexcused and (protocol != BASIC or self._keeps):
                problems.append(f"{' → '.join(way)}: lost, and published when it was down: {sorted(unexcused)}")
        return problems

    def _doubled(self) -> list[str]:
        return [
            f"{' → '.join(way)}: came again: {twice}"
            for way, got in self._ways()
            if (twice := [number for number, times in Counter(got).items() if times > 1])
        ]

    async def _late(self, lacking: dict[Way, set[int]]) -> int:
        """How much of what was lacking came when the faulty broker was back."""
        deadline = asyncio.get_running_loop().time() + 10.0
        while self._keeps and self._gone(lacking) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(LOOK_EVERY_S)
        return sum(map(len, lacking.values())) - sum(len(gone) for _, gone in self._gone(lacking))

    def _gone(self, lacking: dict[Way, set[int]]) -> list[tuple[Way, set[int]]]:
        return [(way, gone) for way, got in self._ways() if (gone := lacking[way] - set(got))]
