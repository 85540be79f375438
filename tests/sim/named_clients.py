"""The applications of a run with named subscriptions: who publishes, who fights over a name, who reads by position."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.model.received import ReceivedEvent
from holdfast.protocols.cursors import requests as log
from holdfast.protocols.cursors.messages import EARLIEST, NEW
from holdfast.protocols.sessions import requests
from holdfast.sim.machine import Machine, Program
from tests.sim.named_truth import Owner

if TYPE_CHECKING:
    from tests.sim.named_world import World

FILTERS = ("k >= 0", "n < 3", "n > 1", "")


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


def number(event: ReceivedEvent) -> int:
    assert event.position is not None
    return event.position.number


def matches(text: str, attributes: dict[str, Any]) -> bool:
    n: int = attributes["n"]
    return {"k >= 0": True, "n < 3": n < 3, "n > 1": n > 1, "": True}[text]


class Client(Program):
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

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is missing."""
        return False

    def hurry(self) -> None:
        """Does now what it would do some time."""


class Publisher(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.waiting: dict[int, list[int]] = {}

    def plan(self) -> None:
        for _ in range(self.world.rng.randint(3, 10)):
            self.world.later(0, self.world.safety_ms, self._publish)

    def hurry(self) -> None:
        self._publish()

    def _publish(self) -> None:
        keys = [self.world.next_key() for _ in range(self.world.rng.randint(1, 5))]
        events = [requests.NewEvent({"k": key, "n": key % 5}) for key in keys]
        self.waiting[self._last_request + 1] = keys
        self.ask(requests.PublishEvents(events))

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
        if isinstance(result, requests.Published):
            assert not result.refused, result
            self.world.published.update(self.waiting.pop(request))


class Consumer(Client):
    def __init__(self, world: World, name: str, wanted: str) -> None:
        super().__init__(world, name)
        self._name = wanted
        self._life = 0
        self._making: dict[int, Reading] = {}
        self._by_number: dict[int, Reading] = {}

    def plan(self) -> None:
        rng = self.world.rng
        for _ in range(rng.randint(0, 3)):
            self.world.later(200, self.world.safety_ms, self._open)
        for _ in range(rng.randint(0, 2)):
            self.world.later(200, self.world.safety_ms, self._close)

    def on_started(self, host: Machine) -> None:
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

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
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

    def on_deliver(self, host: Machine, subscription: int, events: Collection[Any]) -> None:
        world, reading = self.world, self._by_number[-subscription]
        if reading.over:
            world.fail("who lost a cursor gets nothing more", reading.owner)
        reading.got += events
        last = number(reading.got[-1])
        world.seen = max(world.seen, last)
        reading.unconsumed += len(events)
        if reading.unconsumed > reading.window:
            world.fail("the window is not exceeded", reading.owner, reading.unconsumed, reading.window)
        life = host.life
        slow = 1 if world.draining else world.slow_ms
        world.later(0, world.rng.choice([1, slow]), lambda: self._consume(life, reading, len(events), last))

    def _consume(self, life: int, reading: Reading, count: int, position: int) -> None:
        if self.host.life != life or reading.over or reading.owner is None:
            return
        reading.unconsumed -= count
        self.ask(log.ConsumeCursor(reading.owner[2], count))
        if self.world.draining or self.world.rng.random() < 0.5:
            self.world.wanted[self._name] = max(self.world.wanted.get(self._name, 0), position)
            self.ask(log.AcknowledgeUpTo(reading.owner[2], position))


class Reader(Client):
    """Reads ranges while everything else happens."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._reads: dict[int, tuple[int, log.ReadEvents]] = {}

    def plan(self) -> None:
        for _ in range(4):
            self.world.later(100, self.world.safety_ms, self._ask)

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
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
