"""The applications that only groups have: who asks for the log's end, and who publishes in stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.protocols.cursors import requests as log
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.messages import Refusal
from holdfast.sim.machine import Machine
from tests.sim.named_clients import Client, Reader

if TYPE_CHECKING:
    from tests.sim.named_group_world import GroupWorld

QUERIES = ("q1", "q2")


class HeadReader(Reader):
    """Whoever asks for the log's end is told of all that anyone was told of before it asked."""

    world: GroupWorld

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name)
        self._asked: dict[int, tuple[int, set[int]]] = {}

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked or self._reads)

    def hurry(self) -> None:
        self._ask()

    def plan(self) -> None:
        for _ in range(5):
            self.world.later(100, self.world.safety_ms, self._ask)

    def _ask(self) -> None:
        world = self.world
        request = self.ask(log.AskBounds())
        self._asked[request] = (world.seen, set(world.published))

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
        world = self.world
        match result:
            case log.Bounds():
                seen, published = self._asked.pop(request)
                if result.head < seen:
                    world.fail("the head never goes back, for all clients together", result.head, seen)
                world.heads.append((published, result.head))
                world.seen = max(world.seen, result.head)
            case log.EventsRead():
                world.seen = max(world.seen, result.through)
            case log.RefusedByLog() if result.reason is Refusal.POSITION_GONE:
                _, asked = self._reads.pop(request)
                if world.keeps_all or result.tail <= asked.start:
                    world.fail("what is there can be read", asked, result)
                return
        super().on_complete(host, request, result)


class Stager(Client):
    """One of several that try to publish the same epochs, each exactly once; each may die in the middle of it."""

    world: GroupWorld

    def __init__(self, world: GroupWorld, name: str) -> None:
        super().__init__(world, name)
        self._attempts = 0
        self._current: tuple[str, int, str, int] | None = None  # query, epoch, stage, parts to come
        self._keys: list[int] = []
        self._left = 0
        self._of_attempt: dict[int, int] = {}  # request → the attempt that asked

    @property
    def is_waiting(self) -> bool:
        return self._current is not None

    def plan(self) -> None:
        for _ in range(4):
            self.world.later(100, self.world.safety_ms, self._begin)

    def on_started(self, host: Machine) -> None:
        self._current = None

    def _begin(self) -> None:
        world, rng = self.world, self.world.rng
        if self._current is not None or not self.host.running:
            return
        query = rng.choice(QUERIES)
        epoch = world.committed.get(query, 0) + 1
        self._attempts += 1
        self._keys = []
        world.stages.setdefault((query, epoch), []).append(self._keys)
        self._left = rng.randint(1, 3)
        self._current = (query, epoch, f"{self.name}-{self._attempts}", 0)
        self._stage_next()

    def _stage_next(self) -> None:
        assert self._current is not None
        query, epoch, stage, part = self._current
        keys = [self.world.next_key() for _ in range(self.world.rng.randint(1, 3))]
        first = len(self._keys) + 1
        self._keys += keys
        self._current = (query, epoch, stage, part + 1)
        events = [requests.NewEvent({"k": key, "n": key % 5}) for key in keys]
        self._say(log.StagePart(query, epoch, 1, stage, part + 1, self._attempts, first, events))

    def _say(self, command: Any) -> None:
        self._of_attempt[self.ask(command)] = self._attempts

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
        world = self.world
        if self._current is None or self._of_attempt.pop(request, 0) != self._attempts:
            return
        query, epoch, stage, _ = self._current
        match result:
            case log.PartStaged():
                if result.count != len(self._keys):
                    world.fail("what is staged is counted", result, self._keys)
                self._left -= 1
                if self._left:
                    world.later(0, 50, self._go_on)
                else:
                    # Twice, as after a doubt.
                    for _ in range(world.rng.choice([1, 2])):
                        self._say(log.CommitParts(query, epoch, (stage,)))
            case log.PartsCommitted():
                self._current = None
                world.committed[query] = max(world.committed.get(query, 0), epoch)
                if not result.already:
                    world.published.update(self._keys)
                    world.seen = max(world.seen, result.last)
                    if result.last - result.first + 1 != len(self._keys):
                        world.fail("a commit publishes everything, without gaps", result, self._keys)
            case log.RefusedByLog():
                self._current = None
                if result.reason is Refusal.CONFLICT:
                    world.committed[query] = max(world.committed.get(query, 0), epoch)
                elif epoch > world.committed.get(query, 0):
                    world.fail("what was staged can be committed", result, query, epoch)

    def _go_on(self) -> None:
        if self._current is not None and self.host.running:
            self._stage_next()
