"""What drives the broker's core: commands, numbered and in order; and the records that keep them.

Commands are what clients ask for, with the client's name and epoch filled in by the node that heard it. A node may
apply them directly, keep them in its journal, or have a group of replicas agree on their order first.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from holdfast.kernel.messages import Record
from holdfast.model.event import EventBytes, events_alone
from holdfast.protocols.sessions.messages import Overflow


class _Command(msgspec.Struct, frozen=True, array_like=True, gc=False):
    client: str


class OpenSession(_Command, frozen=True, tag=1):
    """`incarnation` is which start of the client it is, for what people read."""

    instance: int
    epoch: int
    incarnation: int = 0


class EndSession(_Command, frozen=True, tag=2):
    """The client said goodbye."""

    epoch: int


class Subscribe(_Command, frozen=True, tag=3):
    epoch: int
    subscription: int
    filter: str
    overflow: Overflow
    window: int


class Unsubscribe(_Command, frozen=True, tag=4):
    epoch: int
    subscription: int


class EndSubscription(_Command, frozen=True, tag=5):
    """The broker's own decision, with a reason for the subscriber."""

    epoch: int
    subscription: int
    reason: str


class Publish(_Command, frozen=True, tag=6):
    """`skipped`: numbers from `first` on that the client has given up; there are no events then."""

    epoch: int
    first: int
    confirmed: int
    events: EventBytes
    skipped: int = 0


class Receive(_Command, frozen=True, tag=7):
    """The client has the events of these subscriptions up to these numbers; `late`, if it is there, is how many of
    each ever came too late."""

    epoch: int
    subscriptions: tuple[int, ...]
    numbers: tuple[int, ...]
    late: tuple[int, ...] = ()


class DropSubscriptions(_Command, frozen=True, tag=8):
    """The client stayed away for too long: what it wanted and advertised goes. How far it was with publishing is still
    known when it comes back."""

    epoch: int


class Advertise(_Command, frozen=True, tag=9):
    epoch: int
    advertisement: int
    filter: str


class Unadvertise(_Command, frozen=True, tag=10):
    epoch: int
    advertisement: int


class OpenCursor(_Command, frozen=True, tag=11):
    """`sent`: up to which position the node sent events of the cursor in its life; -1 if it can't know."""

    epoch: int
    cursor: int
    name: str
    filter: str
    start: int
    move: bool
    window: int
    generation: int
    received: int
    sent: int
    unconsumed: int = 0


class CloseCursor(_Command, frozen=True, tag=12):
    epoch: int
    cursor: int


class AcknowledgeCursor(_Command, frozen=True, tag=13):
    epoch: int
    cursor: int
    position: int


class ForgetName(_Command, frozen=True, tag=14):
    epoch: int
    request: int
    name: str


class StageEvents(_Command, frozen=True, tag=15):
    epoch: int
    request: int
    query: str
    query_epoch: int
    task: int
    stage: str
    part: int
    events: EventBytes


class CommitStages(_Command, frozen=True, tag=16):
    epoch: int
    request: int
    query: str
    query_epoch: int
    stages: tuple[str, ...]


class ExpireStages(_Command, frozen=True, tag=17):
    """The broker's own decision: stages that did not grow since then are forgotten. `client` is empty."""

    before: int


class KeepLog(_Command, frozen=True, tag=18):
    """The broker's own decision: events before the position are not kept any more. `client` is empty.

    Nor are those before `wanted`, unless a cursor needs them when this is applied: in a group one may have been made
    since this was proposed.
    """

    tail: int
    wanted: int = 0


class LookAtLog(_Command, frozen=True, tag=19):
    """Changes nothing: in a group, whoever executes it knows of all that was decided before it was asked."""

    epoch: int
    request: int


class Execute(_Command, frozen=True, tag=20):
    """A request for the hosted application; `confirmed` is that of the message."""

    epoch: int
    number: int
    confirmed: int
    data: bytes


class Arrive(_Command, frozen=True, tag=21):
    """Events that another broker of the network has sent, and that someone here wants. `client` is empty.

    With a feed, which is the name of the sender's log, the events have its numbers, and count once: `numbers` has that
    of each, or that of the first alone if they follow without a gap.
    """

    source: str
    feed: str
    numbers: tuple[int, ...]
    events: EventBytes


class ExpireEvents(_Command, frozen=True, tag=30):
    """The broker's own decision: events that wait for clients and whose deadline is not behind `before` are given up.
    `client` is empty."""

    before: int


class RemoveName(_Command, frozen=True, tag=31):
    """An operator gives a named subscription up; one that a client has only with `force`. `client` is empty."""

    operator: str
    request: int
    name: str
    force: bool = False


StageCommand: TypeAlias = StageEvents | CommitStages
LogCommandOfClient: TypeAlias = OpenCursor | CloseCursor | AcknowledgeCursor | ForgetName | LookAtLog
LogCommand: TypeAlias = LogCommandOfClient | ExpireStages | KeepLog | RemoveName
SessionCommand: TypeAlias = (
    OpenSession
    | EndSession
    | Subscribe
    | Unsubscribe
    | EndSubscription
    | Publish
    | Receive
    | DropSubscriptions
    | Advertise
    | Unadvertise
    | Execute
    | Arrive
    | ExpireEvents
)
Command: TypeAlias = SessionCommand | StageCommand | LogCommand


# Raised when records change in a way that defaults can't bridge; an older reader then refuses them.
RECORD_FORMAT: Final = 1


class Applied(Record, frozen=True):
    """Commands that were applied in one turn, the first under `number`. `application` names the one that saw them."""

    number: int
    wall: int
    commands: list[Command]
    format: int = RECORD_FORMAT
    application: str = ""

    def parts(self) -> list[memoryview]:
        return [events_alone(command.events) for command in self.commands if isinstance(command, Publish | Arrive)]


class CoreState(Record, frozen=True):
    """The core's whole state after command `number`."""

    number: int
    state: bytes
    format: int = RECORD_FORMAT


class LoggedEvents(Record, frozen=True):
    """A part of the log of events: those from position `first` on, accepted at that time."""

    first: int
    wall: int
    events: EventBytes  # a msgpack array of events
    format: int = RECORD_FORMAT

    def parts(self) -> list[memoryview]:
        return [events_alone(self.events)]


SESSION_RECORDS: dict[int, type[Record]] = {1: Applied, 2: CoreState, 3: LoggedEvents}
