"""Runs of drawn worlds: what a protocol lost and disordered there, and what of a replacement there was at all."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, Final

import msgspec

from experiments.standin.protocols import COMPLETE, Case, promised
from experiments.standin.watched import MILLISECOND, Tables, circular, doubled, follow
from experiments.standin.world import STAND_IN, World, draw_world
from holdfast.broker.kit import BrokerKit
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.local import broker_of
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.standin.messages import StandInAdvertised, StandInForward, StandInSubscribed
from holdfast.sim.run import Factories, run_scenario
from holdfast.trace import schema
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import Row

SEEDS_AT_A_TIME: Final = 5
CHECKED: Final = ("weak-complete", "weak-ordered", "complete", "publisher-order")

# What has to happen in a run, at the least, on average over some: or it proves nothing.
HAPPENS: Final = {
    "replaced": 0.99,  # a stand-in that knows everything
    "events moved": 4.0,  # that waited for the faulty broker, and then for its stand-in
    "events during": 6.0,  # published from when the change began until the stand-in knew everything
    "by the stand-in": 10.0,  # events that were forwarded by it
    "lost with the faulty": 0.4,  # that it had, or was sent, and nobody got who wanted them
    "advertised": 3.0,  # entries that neighbours told the stand-in, and it told others
    "subscribed": 5.0,
    "news": 0.5,  # what was subscribed to, advertised or taken back meanwhile
}


# Where nobody fails, and work is shared.
HAPPENS_SHARED: Final = {
    "replaced": 0.99,
    "events during": 6.0,
    "by the stand-in": 10.0,
    "advertised": 3.0,
    "subscribed": 5.0,
    "news": 0.5,
}


class Result(msgspec.Struct, frozen=True):
    """Of one run."""

    case: Case
    seed: int
    brokers: int
    neighbours: int
    violated: tuple[str, ...]  # of the two properties that its line of Table 1 is about
    wrong: str  # what no protocol may do; empty if all is well
    lost: int  # events beside the faulty broker that somebody lacks who wanted them long before
    happened: dict[str, int]
    steps: int

    @property
    def problem(self) -> str:
        """What is not as its line of the table promises; empty if nothing is."""
        kept = promised(self.case)
        broken = [
            f"what the table promises is violated ({self.case}, {name})" for name in self.violated if name in kept
        ]
        if self.lost and COMPLETE in kept:
            broken.append(f"events are lost beside the faulty broker ({self.case}, {self.lost})")
        return self.wrong or (broken[0] if broken else "")


class Account:
    """Follows a run: who wanted what since when, and who got it."""

    def __init__(self, world: World) -> None:
        self.happened: Counter[str] = Counter()
        self._world = world
        self._filters = FilterCache()
        self._published: dict[str, schema.Published] = {}
        self._wanted: dict[str, schema.Subscribed] = {}
        self._since: dict[str, int] = {}
        self._ended: set[str] = set()
        self._got: dict[str, set[str]] = {}
        self._past_the_faulty: set[str] = set()
        self._accepted: set[str] = set()
        self._begun = self._done = 0
        self._tables: Tables = {}
        self._left_out: list[str] = []

    def see(self, row: Row) -> None:
        match row:
            case schema.Published():
                self._published[row.event] = row
            case schema.Accepted():
                self._accepted.update(row.events)
            case schema.Subscribed():
                self._wanted[row.subscription] = row
                self._note_news(row.t)
            case schema.Confirmed():
                self._since.setdefault(row.subscription, row.t)
            case schema.Unsubscribed():
                self._ended.add(row.subscription)
                self._note_news(row.t)
            case schema.Delivered():
                self._got.setdefault(row.subscription, set()).add(row.event)
            case schema.Hop():
                self._see_hop(row)
            case schema.Routed() | schema.Fault():
                follow(self._tables, row)
            case schema.Control(what="stand-in-without"):
                self._left_out.append(row.detail["neighbour"])
            case schema.Control(what="change-begun"):
                self._begun = row.t
            case schema.Control(what="stand-in-done"):
                self._done = row.t
                self.happened["replaced"] += 1
            case _:
                pass

    def _see_hop(self, row: schema.Hop) -> None:
        if self._world.faulty in (row.source, row.target):
            self._past_the_faulty.update(row.events)
        if row.source == STAND_IN:
            self.happened["by the stand-in"] += len(row.events)
        if row.what == StandInForward.__name__:
            self.happened["incrementally"] += len(row.events)

    @property
    def wrong(self) -> str:
        """What no protocol may do in the place of one that failed: wait for who is there, or leave tables that are not
        as they should be (D0-C19)."""
        if not self._world.scenario.faults:
            return ""  # the other one is there, and so is what it knows
        if self._left_out:
            return f"the stand-in went on without {', '.join(self._left_out)}"
        if not self._done:
            return "the stand-in is never done"
        if found := doubled(self._tables):
            return f"entries are there twice: {found[:3]}"
        if found := circular(self._tables):
            return f"entries lead in a circle: {found[:3]}"
        of_the_faulty = [entry for table in self._tables.values() for _, entry in table if self._is_theirs(entry)]
        return f"entries of the faulty broker's clients are left: {of_the_faulty[:3]}" if of_the_faulty else ""

    def _is_theirs(self, entry: str) -> bool:
        return broker_of(entry) == self._world.faulty

    def _note_news(self, t: int) -> None:
        self.happened["news"] += t >= self._world.replaced_ms * MILLISECOND

    def finish(self) -> int:
        """How many events are lacking that kept clear of the faulty broker, of those who wanted them to the end and at
        another broker: from before the replacement on; or from when the stand-in knew everything, if that is later. The
        first events on a topic that is new meanwhile do not count: nobody beyond the stand-in may have heard of it."""
        lacking = 0
        replaced = self._world.replaced_ms * MILLISECOND
        known = {published.topic for published in self._published.values() if published.t < replaced}
        homes = {client.id: client.brokers[0] for client in self._world.scenario.clients}
        self.happened["events during"] += sum(self._begun <= row.t <= self._done for row in self._published.values())
        for subscription, wanted in self._wanted.items():
            since = self._since.get(subscription, 1 << 62)
            if subscription in self._ended or homes[wanted.subscriber] == self._world.faulty:
                continue
            if since >= replaced:
                since = max(since, self._done)
            matches, got = self._filters[wanted.filter].matches, self._got.get(subscription, set())
            for event, published in self._published.items():
                # What is published within a second of a subscription may miss it.
                in_time = since + 1_000 * MILLISECOND <= published.t and published.topic in known
                if event in got or event not in self._accepted or not in_time:
                    continue
                if matches(published.attributes, published.topic):
                    past = event in self._past_the_faulty
                    self.happened["lost with the faulty"] += past
                    lacking += not past
        return lacking


def _counting(happened: Counter[str]) -> Factories:
    """Brokers of which is counted what leaves no trace."""

    class Counts(Forwarding):
        def _move(self, old: str, new: str, all_of_it: bool, out: Outbox) -> None:
            before = len(self.feeds[new])
            super()._move(old, new, all_of_it, out)
            happened["events moved"] += len(self.feeds[new]) - before

    return Factories(kit=BrokerKit(scheme=NetworkKit(forwarding=Counts)))


def play(case: Case, seed: int, kit: NetworkKit | None = None) -> Result:
    """A world with a protocol; with `kit`, brokers that are made otherwise."""
    world = draw_world(seed, case.is_permanent)
    account = Account(world)
    factories = _counting(account.happened) if kit is None else Factories(kit=BrokerKit(scheme=kit))
    entries = _Entries(account.happened)
    scenario = world.played_with(case)
    outcome = run_scenario(scenario, entries.listened(factories), [account], stop_at_violation=False)
    properties = {checker: name for name, checker in case.checkers(world.faulty).items()}
    found = dict.fromkeys(violation.checker for violation in outcome.violations)
    wrong = [str(violation) for violation in outcome.violations if violation.checker not in properties]
    lost = account.finish()
    return Result(
        case=case,
        seed=seed,
        brokers=len(scenario.brokers) - 1,
        neighbours=len(world.neighbours),
        violated=tuple(properties[checker] for checker in found if checker in properties),
        wrong=outcome.broken or (wrong[0] if wrong else "") or account.wrong,
        lost=lost,
        happened=dict(account.happened),
        steps=outcome.steps,
    )


class _Entries:
    """Counts what of tables goes over links in the conversation."""

    def __init__(self, happened: Counter[str]) -> None:
        self._happened = happened

    def listened(self, factories: Factories) -> Factories:
        happened = self._happened

        class Listening(factories.simulation):  # type: ignore[name-defined, misc]
            def note_hops(self, machine: Any, end: Any, entries: Any) -> None:
                super().note_hops(machine, end, entries)
                for entry in entries:
                    match entry.message:
                        case StandInAdvertised(advertisements=told):
                            happened["advertised"] += len(told)
                        case StandInSubscribed(subscriptions=told):
                            happened["subscribed"] += len(told)
                        case _:
                            pass

        return msgspec.structs.replace(factories, simulation=Listening)


def _play_some(case: Case, seeds: Sequence[int]) -> list[Result]:
    return [play(case, seed) for seed in seeds]


def play_all(case: Case, seeds: Sequence[int], jobs: int = 1) -> Iterator[Result]:
    """In the order of the seeds, in so many processes."""
    chunks = [seeds[start : start + SEEDS_AT_A_TIME] for start in range(0, len(seeds), SEEDS_AT_A_TIME)]
    if jobs == 1:
        for chunk in chunks:
            yield from _play_some(case, chunk)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for results in pool.map(partial(_play_some, case), chunks):
            yield from results
