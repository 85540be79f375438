"""A durable broker, publishers, and consumers that read named subscriptions and fight over them, with faults by seed.

What really happened is known from the broker's core, command by command; a command that a power cut took back never
happened. Against that, everything is held that a client was handed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec.msgpack

from holdfast.broker.assembly import BrokerSettings, make_client
from holdfast.kernel.links import Role
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import EVENTS, StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import Event, EventBytes, decode_batch
from holdfast.model.received import ReceivedEvent
from holdfast.protocols.cursors import requests as log
from holdfast.protocols.cursors.deliveries import DeliverySettings
from holdfast.protocols.cursors.host import LogHost, RetentionSettings
from holdfast.protocols.cursors.messages import EARLIEST, NEW
from holdfast.protocols.sessions import commands, requests
from holdfast.protocols.sessions.commands import Command, EventBatch
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.core import BrokerCore
from holdfast.protocols.sessions.host import SessionHost
from holdfast.protocols.sessions.host_settings import HostSettings
from holdfast.protocols.sessions.limits import CoreLimits
from holdfast.protocols.sessions.outputs import CursorTaken, Logged, Output
from holdfast.protocols.sessions.sequencer import DirectSequencer, SnapshotTaker
from holdfast.sim.disk import Disk
from holdfast.sim.host import Application, Host
from holdfast.sim.latency import Uniform, build
from holdfast.sim.network import Adversary
from holdfast.sim.simulation import Simulation

FILTERS = ("k >= 0", "n < 3", "n > 1", "")
SAFETY = 5 * SECOND
LIVENESS = 90 * SECOND

Owner = tuple[str, int, int]
MakeClient = Callable[[ClientSettings, Random, StoredStreams], Assembly]


def decode_event(data: EventBytes) -> Event:
    return msgspec.msgpack.decode(data, type=Event)


@dataclass(frozen=True)
class Parts:
    """What a broker and its clients are made of; a mutant replaces one of them."""

    core: type[BrokerCore] = BrokerCore
    sequencer: type[DirectSequencer] = DirectSequencer
    host: type[SessionHost] = SessionHost
    log: type[LogHost] = LogHost
    client: MakeClient = make_client
    log_first: bool = False  # the log is written before the journal


@dataclass(frozen=True)
class Take:
    """A client got a cursor: from where on, and by which filters."""

    name: str
    acknowledged: int
    filters: tuple[tuple[int, str], ...]
    placed: bool  # made or moved, and not where someone had acknowledged


class Truth:
    """What the broker's core decided, by the number of the command; which filters counted is worked out again here."""

    def __init__(self) -> None:
        self._by_number: dict[int, tuple[list[Logged], list[tuple[commands.OpenCursor, int, bool]]]] = {}

    def see(self, number: int, command: Command, outputs: list[Output], known: bool) -> None:
        for later in [n for n in self._by_number if n >= number]:
            del self._by_number[later]  # a power cut took it back, or it is read from the journal
        logged = [output for output in outputs if isinstance(output, Logged)]
        taken = []
        for output in outputs:
            if isinstance(output, CursorTaken) and isinstance(command, commands.OpenCursor):
                taken.append((command, output.cursor.acknowledged, not known or command.move))
        if logged or taken:
            self._by_number[number] = (logged, taken)

    def events(self) -> dict[int, dict[str, Any]]:
        """Position → attributes."""
        found = {}
        for number in sorted(self._by_number):
            for logged in self._by_number[number][0]:
                for place, data in enumerate(logged.events):
                    found[logged.first + place] = dict(decode_event(data).attributes)
        return found

    def takes(self) -> dict[Owner, Take]:
        """The last time that each owner got its cursor anew: what it asks again while it has it changes nothing."""
        found: dict[Owner, Take] = {}
        filters: dict[str, list[tuple[int, str]]] = {}
        has: dict[str, Owner] = {}
        head = 0
        for number in sorted(self._by_number):
            logged, taken = self._by_number[number]
            head += sum(len(output.events) for output in logged)
            for command, acknowledged, placed in taken:
                owner = (command.client, command.epoch, command.cursor)
                if command.generation or has.get(command.name) == owner:
                    continue
                has[command.name] = owner
                if placed:
                    filters[command.name] = [(acknowledged, command.filter)]
                elif filters[command.name][-1][1] != command.filter:
                    filters[command.name].append((head, command.filter))
                found[owner] = Take(command.name, acknowledged, tuple(filters[command.name]), placed)
        return found


def make_traced(settings: BrokerSettings, parts: Parts, truth: Truth, streams: StoredStreams) -> Assembly:
    class Traced(parts.core):  # type: ignore[name-defined,misc]
        def apply(self, number: int, wall: int, command: Command) -> list[Output]:
            known = isinstance(command, commands.OpenCursor) and command.name in self.cursors.cursors
            outputs: list[Output] = super().apply(number, wall, command)
            truth.see(number, command, outputs, known)
            return outputs

    core = Traced(settings.limits, log=True)
    sequencer = parts.sequencer(core, True, settings.snapshot_every)
    host = parts.host(settings.name, core, sequencer, settings.host)
    sequencer.recover(streams)
    sequencer.applied = host.on_applied
    log_host = parts.log(core, sequencer, host, sequencer.recovered, settings.retention, settings.delivery)
    host.on_log_output = log_host.on_log_output
    first = [log_host, sequencer] if parts.log_first else [sequencer, log_host]
    return Assembly([*first, host, SnapshotTaker(sequencer)])


@dataclass
class Reading:
    """One owner's life with a cursor."""

    name: str
    window: int
    known: int  # the largest position of which was confirmed, before it asked, that it is acknowledged
    owner: Owner | None = None
    acknowledged: int = 0
    got: list[ReceivedEvent] = field(default_factory=list)
    unconsumed: int = 0
    over: bool = False


class BrokenPromiseError(AssertionError):
    pass


class World:
    """One run."""

    def __init__(self, seed: int, parts: Parts | None = None) -> None:
        self.rng = rng = Random(f"named {seed}")
        self.parts = parts or Parts()
        self.truth = Truth()
        self.draining = False
        adversary = None
        if rng.random() < 0.4:
            adversary = Adversary(loss=0.05, duplication=0.1, reordering=0.15, late_us_max=30_000)
        delays = build(Uniform(low_us=50, high_us=rng.choice([500, 5_000])), Random(seed))
        self.simulation = Simulation(seed, delays, adversary, checking=True)
        self.moves = rng.random() < 0.3
        self.slow_ms = rng.choice([1, 400, 3_000])
        self.names = ["risk", "audit"][: rng.choice([1, 1, 2])]
        self.confirmed: dict[str, int] = {}  # acknowledged, as the broker has confirmed
        self.wanted: dict[str, int] = {}  # asked to be acknowledged, by anyone
        self.published: set[int] = set()
        self.readings: list[Reading] = []
        self.ranges: list[tuple[int, log.ReadEvents, log.EventsRead]] = []
        self._last_key = 0
        settings = BrokerSettings(
            "b1",
            True,
            CoreLimits(),
            HostSettings(away_after=rng.choice([2, 120]) * SECOND),
            snapshot_every=rng.choice([3, 30, 4096]),
            retention=RetentionSettings(),
            delivery=DeliverySettings(
                queue_events=rng.choice([1, 4, 4096]),
                message_events=rng.choice([1, 3, 256]),
                read_bytes=rng.choice([1, 300, 256 * 1024]),
            ),
        )
        sync_us = rng.choice([(100, 3_000), (5_000, 100_000)])
        self.disk = Disk(Random(f"disk {seed}"), sync_us)
        self.broker = self.simulation.add_host(
            "b1", Role.BROKER, lambda _, streams: make_traced(settings, self.parts, self.truth, streams), self.disk
        )
        self.publishers = [Publisher(self, f"p{n}") for n in range(2)]
        self.consumers = [Consumer(self, f"c{n}", self.names[n % len(self.names)]) for n in range(len(self.names) + 1)]
        self.reader = Reader(self, "r")
        for host in self.simulation.hosts.values():
            host.start()
        for client in (*self.publishers, *self.consumers, self.reader):
            client.plan()
        self._plan_faults()

    def client(self, name: str, application: Application) -> Host:
        settings = ClientSettings(name, ("b1",), pause_max=300 * MILLISECOND)
        make = self.parts.client
        return self.simulation.add_host(
            name, Role.CLIENT, lambda rng, streams: make(settings, rng, streams), None, application
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
        rng, last = self.rng, SAFETY // MILLISECOND
        for _ in range(rng.randint(1, 6)):
            at = rng.randint(50, last - 500)
            match rng.choice(["kill", "power", "power", "client", "client", "cut", "cut", "slow", "pause"]):
                case "kill":
                    self.later(at, at, lambda: self._bounce(self.broker, False))
                case "power":
                    self.later(at, at, lambda: self._cut_power(500))
                case "client":
                    host = self.simulation.hosts[rng.choice(self.consumers).name]
                    self.later(at, at, lambda host=host: self._bounce(host, rng.random() < 0.5))  # type: ignore[misc]
                case "cut":
                    name = rng.choice([*self.consumers, *self.publishers]).name
                    self.later(at, at, lambda name=name: self._cut(name))  # type: ignore[misc]
                case "slow":
                    self.later(at, at, lambda: setattr(self.disk, "slowness", 10))
                case _:
                    self.later(at, at, self.broker.pause)
                    self.later(at + 50, at + 400, self.broker.resume)

    def _cut_power(self, patience: int) -> None:
        """When something is written and not safe, if that happens soon."""
        if patience and not self.disk.dirty:
            self.later(1, 1, lambda: self._cut_power(patience - 1))
        else:
            self.later(1, 20, lambda: self._bounce(self.broker, True))

    def _bounce(self, host: Host, power_cut: bool) -> None:
        host.stop(power_cut)
        self.later(5, 400, lambda: None if host.running else host.start())

    def _cut(self, name: str) -> None:
        network = self.simulation.network
        ways = [("b1", name), (name, "b1")]
        cut = ways if self.rng.random() < 0.5 else [self.rng.choice(ways)]
        for source, target in cut:
            network.cut(source, target)
            self.later(20, 1_500, lambda s=source, t=target: network.heal(s, t))  # type: ignore[misc]
        if len(cut) == 2:
            client = self.simulation.hosts[name]
            for end in (client.end_to("b1"), self.broker.end_to(client.peer)):
                if end is not None and end.up:
                    network.close(end, "reset")

    # -------------------------------------------------------------------------------------------------------- a run
    def run(self) -> None:
        self.simulation.run(SAFETY)
        self.simulation.network.heal_all()
        self.disk.slowness = 1
        self.broker.resume()
        for host in self.simulation.hosts.values():
            if not host.running:
                host.start()
        self.draining = True
        for consumer in self.consumers:
            consumer.drain()
        self.simulation.run(SAFETY + LIVENESS, self._is_done)
        if not self._is_done():
            self.fail("everything is delivered in the end", self._missing())
        self.check()

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
                if _matches(text, attributes):
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
        self._check_disk(keys)
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
            if not (take.placed or self.moves) and take.acknowledged > self.wanted.get(reading.name, 0):
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
                if all(_matches(text, events[position]) for text in FILTERS):
                    self.fail("a name gets what matches at least once", name, position)

    def _check_disk(self, keys: dict[int, int]) -> None:
        part = self.disk.read(EVENTS, 1, 1 << 30)
        stored = {}
        for first, record in part.records:
            assert isinstance(record, EventBatch)
            for place, event in enumerate(decode_batch(record.events)[0]):
                stored[first + place] = event.attributes["k"]
        if stored != {position: key for position, key in keys.items() if position < part.end}:
            self.fail("the log holds what was accepted", stored, keys)

    def _check_ranges(self, keys: dict[int, int]) -> None:
        for head, asked, read in self.ranges:
            found = {number(event): event.attributes["k"] for event in read.events}
            wanted = range(asked.start, read.through + 1)
            if read.through > asked.end or found != {p: keys[p] for p in wanted if not asked.filter or keys[p] % 5 < 3}:
                self.fail("a range holds what matches", head, asked, read.through, found)


def number(event: ReceivedEvent) -> int:
    assert event.position is not None
    return event.position.number


def _matches(text: str, attributes: dict[str, Any]) -> bool:
    n: int = attributes["n"]
    return {"k >= 0": True, "n < 3": n < 3, "n > 1": n > 1, "": True}[text]


class _Client(Application):
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.host = world.client(name, self)
        self._last_request = 0

    def ask(self, command: Any) -> int:
        self._last_request += 1
        self.host.request(self._last_request, command)
        return self._last_request

    def plan(self) -> None:
        pass


class Publisher(_Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.waiting: dict[int, list[int]] = {}

    def plan(self) -> None:
        for _ in range(self.world.rng.randint(3, 10)):
            self.world.later(0, SAFETY // MILLISECOND, self._publish)

    def _publish(self) -> None:
        keys = [self.world.next_key() for _ in range(self.world.rng.randint(1, 5))]
        events = [requests.NewEvent({"k": key, "n": key % 5}) for key in keys]
        self.waiting[self._last_request + 1] = keys
        self.ask(requests.PublishEvents(events))

    def on_complete(self, host: Host, request: int, result: Any) -> None:
        if isinstance(result, requests.Published):
            assert not result.refused, result
            self.world.published.update(self.waiting.pop(request))


class Consumer(_Client):
    def __init__(self, world: World, name: str, wanted: str) -> None:
        super().__init__(world, name)
        self._name = wanted
        self._life = 0
        self._making: dict[int, Reading] = {}
        self._by_number: dict[int, Reading] = {}

    def plan(self) -> None:
        rng = self.world.rng
        for _ in range(rng.randint(0, 3)):
            self.world.later(200, SAFETY // MILLISECOND, self._open)
        for _ in range(rng.randint(0, 2)):
            self.world.later(200, SAFETY // MILLISECOND, self._close)

    def on_started(self, host: Host) -> None:
        for reading in (*self._by_number.values(), *self._making.values()):
            reading.over = True
        self._making, self._by_number = {}, {}
        self.world.later(0, 100, self._open_first)

    def _open_first(self) -> None:
        if not (self._making or self._current()):
            self._open()

    def _current(self) -> list[Reading]:
        return [reading for reading in self._by_number.values() if not reading.over]

    def _open(self) -> None:
        world, rng = self.world, self.world.rng
        if not self.host.running or (world.draining and self._making):
            return
        window = rng.choice([1, 2, 5, 100])
        reading = Reading(self._name, window, world.confirmed.get(self._name, 0))
        move = world.moves and rng.random() < 0.3
        if move:
            reading.known = 0
            world.confirmed[self._name] = 0
        start = rng.choice([EARLIEST, EARLIEST, NEW])
        self._making[self._last_request + 1] = reading
        self.ask(log.MakeCursor(self._name, rng.choice(FILTERS), start, move, window))

    def _close(self) -> None:
        for number, reading in self._by_number.items():
            if not reading.over:
                reading.over = True
                self.ask(log.EndCursor(number))
        self.world.later(0, 300, self._open_first)

    def drain(self) -> None:
        """Only one consumer of a name goes on; the others let go of it."""
        first = next(consumer for consumer in self.world.consumers if consumer._name == self._name)
        if first is self:
            self.world.later(2_000, 2_000, self._open_first)
        else:
            self.world.later(1_000, 1_000, self._let_go)

    def _let_go(self) -> None:
        for number, reading in self._by_number.items():
            if not reading.over:
                reading.over = True
                self.ask(log.EndCursor(number))

    def on_complete(self, host: Host, request: int, result: Any) -> None:
        world = self.world
        match result:
            case log.CursorMade():
                reading = self._making.pop(request)
                epoch = host.node.parts[0].epoch  # type: ignore[union-attr]
                reading.owner = (host.peer, epoch, result.cursor)
                reading.acknowledged = result.acknowledged
                self._by_number[result.cursor] = reading
                world.readings.append(reading)
                if not world.moves and result.acknowledged < reading.known:
                    world.fail("what is acknowledged never comes again", reading.owner, result, reading.known)
            case log.RefusedByLog():
                if request in self._making:
                    del self._making[request]
                    self._try_again()
            case log.CursorLost():
                if result.cursor in self._by_number:
                    reading = self._by_number[result.cursor]
                    if result.reason.value != "superseded":
                        world.fail("nothing but another owner ends a cursor", result)
                    reading.over = True
                self._try_again()
            case log.AcknowledgedUpTo():
                known = world.confirmed.get(self._name, 0)
                world.confirmed[self._name] = max(known, result.position)

    def _try_again(self) -> None:
        first = next(consumer for consumer in self.world.consumers if consumer._name == self._name)
        if first is self or (not self.world.draining and self.world.rng.random() < 0.6):
            self.world.later(50, 500, self._open_first)

    def on_deliver(self, host: Host, subscription: int, events: list[Any]) -> None:
        world, reading = self.world, self._by_number[-subscription]
        if reading.over:
            world.fail("who lost a cursor gets nothing more", reading.owner)
        reading.got += events
        reading.unconsumed += len(events)
        if reading.unconsumed > reading.window:
            world.fail("the window is not exceeded", reading.owner, reading.unconsumed, reading.window)
        life = host.life
        slow = 1 if world.draining else world.slow_ms
        world.later(
            0, world.rng.choice([1, slow]), lambda: self._consume(life, reading, len(events), number(events[-1]))
        )

    def _consume(self, life: int, reading: Reading, count: int, position: int) -> None:
        if self.host.life != life or reading.over or reading.owner is None:
            return
        reading.unconsumed -= count
        self.ask(log.ConsumeCursor(reading.owner[2], count))
        if self.world.draining or self.world.rng.random() < 0.5:
            self.world.wanted[self._name] = max(self.world.wanted.get(self._name, 0), position)
            self.ask(log.AcknowledgeUpTo(reading.owner[2], position))


class Reader(_Client):
    """Reads ranges while everything else happens."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._reads: dict[int, tuple[int, log.ReadEvents]] = {}

    def plan(self) -> None:
        for _ in range(4):
            self.world.later(100, SAFETY // MILLISECOND, self._ask)

    def on_complete(self, host: Host, request: int, result: Any) -> None:
        rng = self.world.rng
        match result:
            case log.Bounds() if result.head:
                start = rng.randint(1, result.head)
                end = rng.randint(start, result.head)
                command = log.ReadEvents(rng.choice(["", "n < 3"]), start, end, bytes_max=rng.choice([1, 10_000]))
                self.world.later(0, 1, lambda: self._read(result.head, command))
            case log.EventsRead():
                self.world.ranges.append((*self._reads.pop(request), result))
            case log.RefusedByLog():
                self.world.fail("what is there can be read", result)

    def _ask(self) -> None:
        self.ask(log.AskBounds())

    def _read(self, head: int, command: log.ReadEvents) -> None:
        self._reads[self._last_request + 1] = (head, command)
        self.ask(command)


def run_seed(seed: int, parts: Parts | None = None) -> World:
    """Raises if a promise is broken, or a node finds itself broken."""
    world = World(seed, parts)
    world.run()
    return world


def failing(seeds: Sequence[int], parts: Parts | None = None) -> tuple[int, Exception] | None:
    """The first seed that fails, and how."""
    for seed in seeds:
        try:
            run_seed(seed, parts)
        except Exception as error:  # whatever stops a node is a failure here
            return seed, error
    return None


__all__ = ["BrokenPromiseError", "Parts", "World", "failing", "run_seed"]
