"""A durable broker, publishers, and consumers that read named subscriptions and fight over them, with faults by seed.

What really happened is known from the broker's core, command by command; a command that a power cut took back never
happened. Against that, everything is held that a client was handed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.kernel.links import Role
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import EVENTS, LogBounds, StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import decode_all, slices_of
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.cursors import requests as log
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.log_desk import LogDesk, RetentionSettings
from holdfast.protocols.desks.sequencer import DirectSequencer, SnapshotTaker
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from holdfast.sim.disk import Disk
from holdfast.sim.latency import Uniform, build
from holdfast.sim.machine import Machine, Program
from holdfast.sim.network import Adversary
from holdfast.sim.simulation import RowSink, Simulation
from holdfast.trace.checkers import Watch, make_checker
from holdfast.trace.schema import Header
from tests.sim.named_clients import FILTERS, Client, Consumer, Publisher, Reader, Reading, matches, number
from tests.sim.named_truth import Owner, Take, Truth, traced

LIVENESS = 90 * SECOND

MakeClient = Callable[[ClientSettings, Random, StoredStreams], Assembly]


@dataclass(frozen=True)
class Parts:
    """What a broker and its clients are made of; a mutant replaces one of them."""

    core: type[BrokerCore] = BrokerCore
    sequencer: type[DirectSequencer] = DirectSequencer
    sessions: type[SessionDesk] = SessionDesk
    log: type[LogDesk] = LogDesk
    events: type[EventLog] = EventLog
    client: MakeClient = make_client
    log_first: bool = False  # the log is written before the journal


def make_traced(settings: BrokerSettings, parts: Parts, truth: Truth, streams: StoredStreams) -> Assembly:
    core = traced(parts.core, truth)(settings.limits, log=True)
    sequencer = parts.sequencer(core, True, settings.snapshot_every)
    host = parts.sessions(settings.name, core, sequencer, settings.desk)
    sequencer.recover(streams)
    events = parts.events(sequencer.recovered)
    log_desk = parts.log(core, sequencer, host, events, settings.retention, settings.delivery)
    first = [log_desk, sequencer] if parts.log_first else [sequencer, log_desk]
    return Assembly([*first, host, SnapshotTaker(sequencer)])


class BrokenPromiseError(AssertionError):
    pass


class World:
    """One run."""

    name: ClassVar[str] = "named"
    safety_ms: ClassVar[int] = 5_000
    checked: ClassVar[tuple[str, ...]] = ("only-matching", "at-most-once", "publisher-order", "total-order")
    # Turns and bytes, ten times the most that was ever seen: where two take a cursor from each other for ever, a run
    # fails, and does not go on for a million turns.
    storm: ClassVar[tuple[int, int]] = (20_000, 16 * 1024 * 1024)
    brokers: tuple[str, ...] = ("b1",)

    def __init__(self, seed: int, parts: Parts | None = None, sinks: Sequence[RowSink] = ()) -> None:
        self.rng = rng = Random(f"{self.name} {seed}")
        self.parts = parts or Parts()
        self.truth = self._make_truth()
        self.draining = False
        adversary = None
        if rng.random() < 0.4:
            adversary = Adversary(loss=0.05, duplication=0.1, reordering=0.15, late_us_max=30_000)
        delays = build(Uniform(low_us=50, high_us=rng.choice([500, 5_000])), Random(seed))
        # What a trace shows of named subscriptions keeps the promises that every subscription has.
        header = Header(run=f"{self.name}/{seed}", system="tree", seed=seed)
        self.watch = Watch(header, [make_checker(name) for name in self.checked])
        self.simulation = Simulation(
            MESSAGES,
            seed,
            delays,
            adversary,
            self._draw_rate(),
            [self.watch, *sinks],
            checking=True,
            clients_only=True,
            storm=self.storm,
        )
        self.moves = rng.random() < 0.3
        self.slow_ms = rng.choice([1, 400, 3_000])
        self.names = ["risk", "audit"][: rng.choice([1, 1, 2])]
        self.confirmed: dict[str, int] = {}  # acknowledged, as the broker has confirmed
        self.wanted: dict[str, int] = {}  # asked to be acknowledged, by anyone
        self.published: set[int] = set()
        self.seen = 0  # the last position that anyone was told of
        self.readings: list[Reading] = []
        self.ranges: list[tuple[int, log.ReadEvents, log.EventsRead]] = []
        self._last_key = 0
        self._add_brokers(seed)
        self.publishers = [Publisher(self, f"p{n}") for n in range(2)]
        self.consumers = [Consumer(self, f"c{n}", self.names[n % len(self.names)]) for n in range(len(self.names) + 1)]
        self.others: list[Client] = self._make_others()
        for host in self.simulation.machines.values():
            host.start()
        for client in (*self.publishers, *self.consumers, *self.others):
            client.plan()
        self._plan_faults()

    def _make_truth(self) -> Truth:
        return Truth()

    def _draw_rate(self) -> int:
        """Bytes that a link carries in a second; 0 is without a limit."""
        return 0

    def _make_others(self) -> list[Client]:
        return [Reader(self, "r")]

    def _draw_settings(self, name: str, retention: RetentionSettings | None = None) -> BrokerSettings:
        rng = self.rng
        return BrokerSettings(
            name,
            True,
            CoreLimits(),
            DeskSettings(away_after=rng.choice([2, 120]) * SECOND),
            snapshot_every=rng.choice([3, 30, 4096]),
            retention=retention or RetentionSettings(),
            delivery=DeliverySettings(
                queue_events=rng.choice([1, 4, 4096]),
                message_events=rng.choice([1, 3, 256]),
                read_bytes=rng.choice([1, 300, 256 * 1024]),
            ),
        )

    def _add_brokers(self, seed: int) -> None:
        settings = self._draw_settings("b1")
        sync_us = self.rng.choice([(100, 3_000), (5_000, 100_000)])
        self.disk = Disk(RECORDS, Random(f"disk {seed}"), sync_us)
        self.broker = self.simulation.add_machine(
            "b1", Role.BROKER, lambda _, streams: make_traced(settings, self.parts, self.truth, streams), self.disk
        )

    def addresses(self) -> tuple[str, ...]:
        """Where a client looks for a broker, in its own order."""
        return self.brokers

    def client(self, name: str, program: Program) -> Machine:
        settings = ClientSettings(name, self.addresses(), pause_max=300 * MILLISECOND)
        make = self.parts.client
        return self.simulation.add_machine(
            name, Role.CLIENT, lambda rng, streams: make(settings, rng, streams), None, program
        )

    def later(self, low_ms: int, high_ms: int, do: Callable[[], None]) -> None:
        self.simulation.after(self.rng.randint(low_ms, high_ms) * MILLISECOND, lambda _: do(), None)

    def next_key(self) -> int:
        self._last_key += 1
        return self._last_key

    def fail(self, claim: str, *facts: object) -> None:
        raise BrokenPromiseError(f"{claim}: {facts}")

    # ------------------------------------------------------------------------------------------------------- faults
    def _plan_faults(self) -> None:
        rng, last = self.rng, self.safety_ms
        for _ in range(rng.randint(1, 6)):
            at = rng.randint(50, last - 500)
            match rng.choice(["kill", "power", "power", "client", "client", "cut", "cut", "slow", "pause"]):
                case "kill":
                    self.later(at, at, lambda: self._bounce(self.broker, False))
                case "power":
                    self.later(at, at, lambda: self._cut_power(self.broker, 500))
                case "client":
                    host = self.simulation.machines[rng.choice(self.consumers).name]
                    self.later(at, at, lambda host=host: self._bounce(host, rng.random() < 0.5))  # type: ignore[misc]
                case "cut":
                    name = rng.choice([*self.consumers, *self.publishers]).name
                    self.later(at, at, lambda name=name: self._cut(name))  # type: ignore[misc]
                case "slow":
                    self.later(at, at, lambda: setattr(self.disk, "slowness", 10))
                case _:
                    self.later(at, at, self.broker.pause)
                    self.later(at + 50, at + 400, self.broker.resume)

    def _cut_power(self, host: Machine, patience: int) -> None:
        """When something is written and not safe, if that happens soon."""
        if patience and host.disk is not None and not host.disk.dirty:
            self.later(1, 1, lambda: self._cut_power(host, patience - 1))
        else:
            self.later(1, 20, lambda: self._bounce(host, True))

    def _bounce(self, host: Machine, power_cut: bool) -> None:
        host.stop(power_cut)
        self.later(5, 400, lambda: None if host.running else host.start())

    def _cut(self, name: str, from_: str = "b1") -> None:
        """One way, or both; whoever is there is then told at once, as by a router."""
        network = self.simulation.network
        ways = [(from_, name), (name, from_)]
        cut = ways if self.rng.random() < 0.5 else [self.rng.choice(ways)]
        for source, target in cut:
            network.cut(source, target)
            self.later(20, 1_500, lambda s=source, t=target: network.heal(s, t))  # type: ignore[misc]
        if len(cut) == 2:
            one, other = self.simulation.machines[name], self.simulation.machines[from_]
            for end in (one.end_to(other.peer), other.end_to(one.peer)):
                if end is not None and end.up:
                    network.close(end, "reset")

    # -------------------------------------------------------------------------------------------------------- a run
    def summary(self) -> Counter[str]:
        """What happened, counted."""
        return Counter(
            {
                "published": len(self.published),
                "ranges": len(self.ranges),
                "second attempts": sum(event.attempt > 1 for reading in self.readings for event in reading.got),
                "changed filters": sum(len(take.filters) > 1 for take in self.truth.takes().values()),
                "crashed brokers": sum(self.simulation.machines[name].life > 1 for name in self.brokers),
            }
        )

    def run(self) -> None:
        safety = self.safety_ms * MILLISECOND
        self.simulation.run(safety)
        self.simulation.network.heal_all()
        for host in self.simulation.machines.values():
            if host.disk is not None:
                host.disk.slowness = 1
            host.resume()
        for host in self.simulation.machines.values():
            if not host.running:
                host.start()
        self.draining = True
        for consumer in self.consumers:
            consumer.drain()
        self.simulation.run(safety + LIVENESS, self._is_done)
        if not self._is_done():
            self.fail("everything is delivered in the end", self._missing())
        self.check()
        self.watch.finish()
        if self.watch.found:
            self.fail(f"the trace shows it, too: {self.watch.violations[0]}", [])

    def _missing(self) -> list[object]:
        events, takes = self.truth.events(), self.truth.takes()
        missing: list[object] = [p.name for p in self.publishers if p.waiting]
        for name in self.names:
            there = [r for r in self.readings if r.name == name and r.owner and not r.over]
            held = [r for r in there if self._owes(r, events, takes) == []]
            if not held:
                missing.append((name, [(r.owner, self._owes(r, events, takes)) for r in there]))
        return missing

    def _is_done(self) -> bool:
        if self.simulation.steps % 16:
            return False
        return all(not p.waiting for p in self.publishers) and not self._missing()

    def _expected(self, reading: Reading, events: dict[int, dict[str, Any]], takes: dict[Owner, Take]) -> list[int]:
        """The positions that its owner is to get."""
        if reading.owner not in takes:
            self.fail("who was told that it has a cursor has it", reading.owner)
        filters = takes[reading.owner].filters  # type: ignore[index]
        found = []
        for position, attributes in events.items():
            if position > reading.acknowledged:
                (text,) = [text for after, text in filters if after < position][-1:]
                if matches(text, attributes):
                    found.append(position)
        return found

    def _owes(self, reading: Reading, events: dict[int, dict[str, Any]], takes: dict[Owner, Take]) -> list[int]:
        return self._expected(reading, events, takes)[len(reading.got) :]

    # ------------------------------------------------------------------------------------------------------- oracle
    def check(self) -> None:
        events, takes = self.truth.events(), self.truth.takes()
        keys = {position: attributes["k"] for position, attributes in events.items()}
        if list(keys) != list(range(1, len(keys) + 1)):
            self.fail("positions have no gap", list(keys))
        if len(set(keys.values())) != len(keys):
            self.fail("no event has two positions")
        if not self.published <= set(keys.values()):
            self.fail("what is acknowledged is in the log", self.published - set(keys.values()))
        self._check_disks(keys)
        first: dict[tuple[str, int], Reading] = {}
        for reading in self.readings:
            positions = [number(event) for event in reading.got]
            expected = self._expected(reading, events, takes)
            if positions != expected[: len(positions)]:
                self.fail("one life gets what matches, in order", reading.owner, positions, expected)
            for event in reading.got:
                if event.attributes["k"] != keys[number(event)]:
                    self.fail("an event has one position", event)
                if event.attempt == 1 and first.setdefault((reading.name, number(event)), reading) is not reading:
                    self.fail("a first attempt is the first", reading.name, event.position)
            take = takes[reading.owner]  # type: ignore[index]
            begun = take.filters[0][0]  # where its first owner placed it, perhaps at the end of the log
            if not (take.placed or self.moves) and take.acknowledged > max(begun, self.wanted.get(reading.name, 0)):
                self.fail("only what was acknowledged is skipped", reading.owner, take)
        if not self.moves:
            self._check_complete(events, takes)
        self._check_ranges(keys)

    def _check_complete(self, events: dict[int, dict[str, Any]], takes: dict[Owner, Take]) -> None:
        for name in self.names:
            readings = [reading for reading in self.readings if reading.name == name]
            got = {number(event) for reading in readings for event in reading.got}
            begun = min(takes[reading.owner].acknowledged for reading in readings)  # type: ignore[index]
            owed = {position for position in events if position > begun}
            for position in owed - got:
                # Every owner may have had another filter; it is owed if all of them match.
                if all(matches(text, events[position]) for text in FILTERS):
                    self.fail("a name gets what matches at least once", name, position)

    def _check_disks(self, keys: dict[int, int]) -> None:
        stored = {place: attributes["k"] for place, (attributes, _) in stored_events(self.disk).items()}
        end = self.disk.bounds()[EVENTS].next if stored else 1
        if stored != {position: key for position, key in keys.items() if position < end}:
            self.fail("the log holds what was accepted", stored, keys)

    def _check_ranges(self, keys: dict[int, int]) -> None:
        for head, asked, read in self.ranges:
            found = {number(event): event.attributes["k"] for event in read.events}
            wanted = range(asked.start, read.through + 1)
            if read.through > asked.end or found != {p: keys[p] for p in wanted if not asked.filter or keys[p] % 5 < 3}:
                self.fail("a range holds what matches", head, asked, read.through, found)


def stored_events(disk: Disk) -> dict[int, tuple[dict[str, Any], tuple[int, bytes]]]:
    """Position → attributes, and when it was accepted, with its bytes; what is on the disk and not given up."""
    found = {}
    bounds = disk.bounds().get(EVENTS, LogBounds())
    for first, record in disk.read(EVENTS, bounds.first, 1 << 30).records:
        assert isinstance(record, LoggedEvents)
        for place, (event, data) in enumerate(
            zip(decode_all(record.events), slices_of(record.events), strict=True), first
        ):
            if place >= bounds.first:
                found[place] = (dict(event.attributes), (record.wall, bytes(data)))
    return found


def run_seed(seed: int, parts: Parts | None = None) -> World:
    """Raises if a promise is broken, or a node finds itself broken."""
    world = World(seed, parts)
    world.run()
    return world


def problem(seed: int, parts: Parts | None = None, see: Callable[[World], None] = lambda world: None) -> str:
    """What is wrong with a run; empty if nothing is, and then `see` is shown it."""
    try:
        see(run_seed(seed, parts))
    except Exception as error:  # whatever stops a node is a failure here
        return f"seed {seed}: {type(error).__name__}: {error}"
    return ""


__all__ = ["BrokenPromiseError", "Parts", "World", "problem", "run_seed"]
