"""A durable broker on the bench, with a disk: what it appends is safe at once, unless the disk is held."""

from random import Random
from typing import Any

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Durable, Input, LogRead, LogSent, Started
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Effect, ReadLog, Send, SendLog
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import EVENTS
from holdfast.model.event import decode_all
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.cursors.messages import CursorEvents
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.log_desk import LogDesk, RetentionSettings
from holdfast.protocols.sessions.messages import Publish
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.tree.parts import make_broker
from holdfast.sim.disk import Disk
from tests.sessions.bench import Bench, BrokerBench, batch


class LogBench(BrokerBench):
    """Parts of the log are read and sent at once, too; `held` keeps the disk from becoming safe."""

    def __init__(
        self,
        disk: Disk | None = None,
        limits: CoreLimits | None = None,
        delivery: DeliverySettings | None = None,
        retention: RetentionSettings | None = None,
        snapshot_every: int = 4096,
        **settings: Any,
    ) -> None:
        self.disk = disk or Disk(RECORDS, Random(1))
        self.held = False
        self.settings = BrokerSettings(
            "b1",
            True,
            limits or CoreLimits(),
            DeskSettings(**settings),
            snapshot_every,
            retention or RetentionSettings(),
            delivery or DeliverySettings(),
        )
        Bench.__init__(self, make_broker(self.settings, Random(1), self.disk.start()))
        self.links = {}
        self._last_link = 0
        self._published: dict[str, int] = {}
        self.handle(Started(1, "disk", self.disk.bounds()))

    @property
    def core(self) -> BrokerCore:
        core: BrokerCore = self.desk._core
        return core

    @property
    def log(self) -> LogDesk:
        part = self.node.parts[1]
        assert isinstance(part, LogDesk)
        return part

    def handle(self, *inputs: Input) -> list[Effect]:
        effects = Bench.handle(self, *inputs)
        new = effects
        while new or ((self.out.stored or self.disk.dirty) and not self.held):
            more: list[Effect] = []
            operations, self.out.stored = self.out.stored, []
            self.disk.write(operations)
            if not self.held:
                before = self.disk.durable
                token = self.disk.make_safe(self.disk.written())
                if token > before:
                    more += Bench.handle(self, Durable(token))
            for effect in new:
                if isinstance(effect, SendLog):
                    more += self._send_log(effect)
                elif isinstance(effect, ReadLog):
                    part = self.disk.read(effect.stream, effect.start, effect.limit)
                    more += Bench.handle(self, LogRead(effect.request, part.records, part.next))
            effects = effects + more
            new = more
        return [effect for effect in effects if not isinstance(effect, SendLog | ReadLog)]

    def _send_log(self, effect: SendLog) -> list[Effect]:
        part = self.disk.read(effect.stream, effect.start, 1 << 30, effect.bytes_max)
        if part.gone:
            message, through, count = effect.message.gone(part.gone), effect.start - 1, 0
        else:
            message, through, count = effect.message.make(part.records, part.end)
        sent: list[Effect] = [Send(effect.to, message, Lane.USER)] if effect.to in self.out.queues else []
        return sent + Bench.handle(self, LogSent(effect.request, effect.to, through, count, part.gone))

    def release(self) -> list[Effect]:
        """The disk becomes safe."""
        self.held = False
        return self.handle()

    def publish(self, client: str, *numbers: int, **fields: Any) -> list[Any]:
        """The client publishes its next events."""
        first = self._published.get(client, 0) + 1
        self._published[client] = first + len(numbers) - 1
        return self.say(client, Publish(first, batch(*numbers, **fields), first - 1))

    def logged(self) -> dict[int, int]:
        """Position → the number of the event there, as the disk has it."""
        found = {}
        for first, record in self.disk.read(EVENTS, self.disk.bounds()[EVENTS].first, 1 << 30).records:
            assert isinstance(record, LoggedEvents)
            for place, event in enumerate(decode_all(record.events)):
                found[first + place] = event.sequence
        return found


def told(rows: list[Any], client: str) -> list[Message]:
    """The messages to a client, without the events that are acknowledged to publishers."""
    return [row[1] for row in rows if isinstance(row, tuple) and row[0] == f"client:{client}" and len(row) == 2]


def handed(rows: list[Any], client: str) -> list[tuple[int, int]]:
    """(position, attempt) of the cursor events to a client."""
    pairs = []
    for message in told(rows, client):
        if isinstance(message, CursorEvents):
            pairs += list(zip(message.positions, message.attempts or [1] * len(message.positions), strict=True))
    return pairs
