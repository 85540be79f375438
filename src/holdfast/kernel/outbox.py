"""What a node may ask for.

One outbox serves one node for all its life. During a turn it only collects; the driver carries everything out when
`handle` has returned, in an order that it is free to choose except where the contract binds it:

- a message sent with `after=LATEST` (the default) leaves only when everything appended before is durable;
- to one peer, a lane is FIFO among messages that wait for the disk, and among those that do not;
- `stop` comes last: what else the turn asked for is begun before, and what can't be begun at once never is.

`RecordingOutbox` keeps every effect as a value, for tests.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Any, Final

import msgspec

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.notices import Hearers, Notice
from holdfast.kernel.queues import Lane, OutputQueue, Queued
from holdfast.kernel.storage import LogMessage


class After(enum.Enum):
    """What a message waits for."""

    LATEST = "latest"  # everything that the node has appended so far
    NOW = "now"  # nothing: only for what claims nothing durable


LATEST: Final = After.LATEST
NOW: Final = After.NOW


class _Effect(msgspec.Struct, frozen=True, gc=False):
    pass


class Send(_Effect, frozen=True):
    to: str
    message: Message
    lane: Lane = Lane.CONTROL
    after: After = After.LATEST


class Append(_Effect, frozen=True):
    """`count`: how many of the stream's numbers the record stands for."""

    stream: str
    record: Record
    token: int
    count: int = 1


class Snapshot(_Effect, frozen=True):
    """The record stands for everything appended to the stream before it."""

    stream: str
    record: Record
    token: int


class Truncate(_Effect, frozen=True):
    """Records of the stream below the number are not needed any more."""

    stream: str
    before: int


Operation = Append | Snapshot | Truncate  # what is asked of a disk


class ReadLog(_Effect, frozen=True):
    request: int
    stream: str
    start: int
    limit: int


class SendLog(_Effect, frozen=True):
    to: str
    request: int
    stream: str
    start: int
    bytes_max: int
    message: LogMessage
    token: int = 0  # leaves only when this is durable


class Connect(_Effect, frozen=True):
    peer: str
    address: str


class Disconnect(_Effect, frozen=True):
    link: int
    reason: str


class SetTimer(_Effect, frozen=True):
    key: TimerKey
    after: int


class CancelTimer(_Effect, frozen=True):
    key: TimerKey


class Stop(_Effect, frozen=True):
    reason: str


class Deliver(_Effect, frozen=True):
    """For the application beside a client node: events of one of its subscriptions, in order."""

    subscription: int
    events: Collection[Any]


class Complete(_Effect, frozen=True):
    """For the application beside a client node: the answer to one of its requests."""

    request: int
    result: Any


class Level(enum.Enum):
    """Who wants to find a report in the log: the values are those of Python's `logging`."""

    DEBUG = 10  # nobody, mostly: there may be many
    INFO = 20
    WARNING = 30


class Note(_Effect, frozen=True):
    """A row for the trace. The driver adds the time. One of the kind `CONTROL` goes to the log, too, at its level."""

    kind: str
    fields: dict[str, Any]
    level: Level = Level.DEBUG


Effect = (
    Send
    | Append
    | Snapshot
    | Truncate
    | ReadLog
    | SendLog
    | Connect
    | Disconnect
    | SetTimer
    | CancelTimer
    | Stop
    | Deliver
    | Complete
    | Note
)


CONTROL: Final = "control"  # the kind of notes on what a node has come to: leading, giving a client up


class Outbox:
    """Collects what a node asks for; the driver empties it after every turn."""

    __slots__ = (
        "actions", "hearers", "notes", "now", "queues", "stopping", "stored", "timers", "token", "touched", "tracing",
        "wall",
    )  # fmt: skip

    def __init__(self, tracing: bool = False) -> None:
        self.now = 0  # monotonic, nanoseconds
        self.wall = 0  # since 1970, nanoseconds; may jump; for lifetimes and for what people read
        self.tracing = tracing  # whether notes are wanted: skip the work of making one if not
        self.token = 0  # of the latest append
        self.stopping: str | None = None  # why the node wants to be stopped
        self.queues: dict[str, OutputQueue] = {}
        self.touched: dict[OutputQueue, None] = {}  # in the order of touching
        self.timers: list[tuple[TimerKey, int | None]] = []
        self.stored: list[Operation] = []
        self.notes: list[Note] = []
        self.actions: list[ReadLog | SendLog | Connect | Disconnect | Deliver | Complete] = []
        self.hearers: Hearers = {}

    def begin(self, now: int, wall: int) -> None:
        """For the driver: a turn begins at this time."""
        self.now = now
        self.wall = wall

    # -------------------------------------------------------------------------------------------------- notices
    def tell_to(self, hearers: Hearers) -> None:
        """From now on notices are for these."""
        self.hearers = hearers

    def tell(self, notice: Notice) -> None:
        """Hands a notice to the parts that hear it, at once and in their order."""
        for hear in self.hearers.get(type(notice), ()):
            hear(notice, self)

    # ------------------------------------------------------------------------------------------------- messages
    def send(self, to: str, message: Message, lane: Lane = Lane.CONTROL, after: After = LATEST) -> None:
        """Puts a message into the peer's queue."""
        queue = self.queues.get(to)
        if queue is None:
            queue = self.queue(to)
        queue.put(Queued(message, lane, self.token if after is LATEST else 0, message.weight()))

    def queue(self, peer: str) -> OutputQueue:
        """The peer's queue, made when it is first asked for."""
        queue = self.queues.get(peer)
        if queue is None:
            queue = self.queues[peer] = OutputQueue(peer, self.touched)
        return queue

    def drop_queue(self, peer: str) -> None:
        """Forgets the peer's queue and what waits in it."""
        queue = self.queues.pop(peer, None)
        if queue is not None:
            queue.close()

    # -------------------------------------------------------------------------------------------------- storage
    def append(self, stream: str, record: Record, count: int = 1) -> int:
        """Adds a record to a stream; gives the token that `Durable` will reach."""
        self.token += 1
        self.stored.append(Append(stream, record, self.token, count))
        return self.token

    def snapshot(self, stream: str, record: Record) -> int:
        """Adds a record that stands for all earlier ones of the stream, which go when it is durable."""
        self.token += 1
        self.stored.append(Snapshot(stream, record, self.token))
        return self.token

    def truncate(self, stream: str, before: int) -> None:
        """Gives up the records of the stream below a number."""
        self.stored.append(Truncate(stream, before))

    def read_log(self, request: int, stream: str, start: int, limit: int) -> None:
        """Asks for up to `limit` durable records from a number on; the answer is `LogRead`."""
        self.actions.append(ReadLog(request, stream, start, limit))

    def send_log(self, to: str, request: int, stream: str, start: int, bytes_max: int, message: LogMessage) -> None:
        """Has a part of a log sent to a peer without coming by here: durable records from a number on, at most about
        so many bytes, made into one message, which waits for the disk as others do. `LogSent` says how far it went."""
        self.actions.append(SendLog(to, request, stream, start, bytes_max, message, self.token))

    # ---------------------------------------------------------------------------------------------------- links
    def connect(self, peer: str, address: str) -> None:
        """Dials an address. `peer` is who is expected there, or empty if anyone is welcome."""
        self.actions.append(Connect(peer, address))

    def disconnect(self, link: int, reason: str) -> None:
        """Closes a link after what was sent in this turn and may leave; `LinkDown` follows."""
        self.actions.append(Disconnect(link, reason))

    # --------------------------------------------------------------------------------------------------- timers
    def set_timer(self, key: TimerKey, after: int) -> None:
        """Fires once, `after` nanoseconds from now; replaces a timer of the same key."""
        self.timers.append((key, after))

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.append((key, None))

    # ----------------------------------------------------------------------------------------------------- life
    def stop(self, reason: str) -> None:
        """Ends this life of the node after the turn, as a kill would: it can't go on and keep its promises.

        It gets no further input. Who runs the driver decides when it is started again.
        """
        if self.stopping is None:
            self.stopping = reason

    # ---------------------------------------------------------------------------------------- application, trace
    def deliver(self, subscription: int, events: Collection[Any]) -> None:
        """Hands events to the application beside a client node."""
        self.actions.append(Deliver(subscription, events))

    def complete(self, request: int, result: Any) -> None:
        """Answers a request of the application beside a client node."""
        self.actions.append(Complete(request, result))

    def note(self, kind: str, **fields: Any) -> None:
        """Adds a row to the trace, if there is one."""
        if self.tracing:
            self.notes.append(Note(kind, fields))

    def report(self, what: str, level: Level = Level.DEBUG, /, **detail: Any) -> None:
        """Something that operators are to find in the node's log; a row of the trace, too."""
        self.notes.append(Note(CONTROL, {"what": what, "detail": detail}, level))


class RecordingOutbox(Outbox):
    """An outbox that keeps every effect as a value, in the order in which it was asked for."""

    __slots__ = ("effects", "notices")

    def __init__(self, tracing: bool = True) -> None:
        super().__init__(tracing)
        self.effects: list[Effect] = []
        self.notices: list[Notice] = []

    def tell(self, notice: Notice) -> None:
        self.notices.append(notice)
        super().tell(notice)

    def send(self, to: str, message: Message, lane: Lane = Lane.CONTROL, after: After = LATEST) -> None:
        super().send(to, message, lane, after)
        self.effects.append(Send(to, message, lane, after))

    def append(self, stream: str, record: Record, count: int = 1) -> int:
        token = super().append(stream, record, count)
        self.effects.append(Append(stream, record, token, count))
        return token

    def snapshot(self, stream: str, record: Record) -> int:
        token = super().snapshot(stream, record)
        self.effects.append(Snapshot(stream, record, token))
        return token

    def truncate(self, stream: str, before: int) -> None:
        super().truncate(stream, before)
        self.effects.append(Truncate(stream, before))

    def read_log(self, request: int, stream: str, start: int, limit: int) -> None:
        super().read_log(request, stream, start, limit)
        self.effects.append(ReadLog(request, stream, start, limit))

    def send_log(self, to: str, request: int, stream: str, start: int, bytes_max: int, message: LogMessage) -> None:
        super().send_log(to, request, stream, start, bytes_max, message)
        self.effects.append(SendLog(to, request, stream, start, bytes_max, message, self.token))

    def connect(self, peer: str, address: str) -> None:
        super().connect(peer, address)
        self.effects.append(Connect(peer, address))

    def disconnect(self, link: int, reason: str) -> None:
        super().disconnect(link, reason)
        self.effects.append(Disconnect(link, reason))

    def set_timer(self, key: TimerKey, after: int) -> None:
        super().set_timer(key, after)
        self.effects.append(SetTimer(key, after))

    def cancel_timer(self, key: TimerKey) -> None:
        super().cancel_timer(key)
        self.effects.append(CancelTimer(key))

    def stop(self, reason: str) -> None:
        super().stop(reason)
        self.effects.append(Stop(reason))

    def deliver(self, subscription: int, events: Collection[Any]) -> None:
        super().deliver(subscription, events)
        self.effects.append(Deliver(subscription, events))

    def complete(self, request: int, result: Any) -> None:
        super().complete(request, result)
        self.effects.append(Complete(request, result))

    def note(self, kind: str, **fields: Any) -> None:
        super().note(kind, **fields)
        if self.tracing:
            self.effects.append(Note(kind, fields))

    def report(self, what: str, level: Level = Level.DEBUG, /, **detail: Any) -> None:
        super().report(what, level, **detail)
        self.effects.append(self.notes[-1])

    def take_notices(self) -> list[Notice]:
        """The notices since the last call."""
        notices, self.notices = self.notices, []
        return notices

    def take_effects(self) -> list[Effect]:
        """The effects since the last call."""
        effects, self.effects = self.effects, []
        return effects
