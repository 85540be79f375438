"""What the parts of a client share: who they are, whom they talk to, and how long to wait for an answer."""

from __future__ import annotations

import enum
from typing import Protocol

import msgspec

from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import LATEST, After, Outbox
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions.messages import SessionOpened

REPEAT_TIMER = ("client", "repeat")


class ClientSettings(msgspec.Struct, frozen=True, gc=False):
    """What a client is given. Times are nanoseconds."""

    name: str
    addresses: tuple[str, ...]
    resubscribe: bool = True
    publish_window: int = 4096  # events in flight
    waiting_max: int = 1_000_000  # events that wait to be; more are refused
    batch_events: int = 256  # in one message
    batch_bytes: int = 128 * 1024  # as the broker's `deliver_bytes`
    pause_min: int = 50 * MILLISECOND  # between attempts to connect
    pause_max: int = 5 * SECOND
    opening_max: int = 5 * SECOND  # from dialling to an open session
    repeat_after: int = 1 * SECOND
    repeat_after_max: int = 8 * SECOND
    ping_every: int = 5 * SECOND
    silent_after: int = 15 * SECOND
    # If there are several brokers to turn to; longer again after it came to nothing, up to the above:
    opening_max_with_choice: int = 1 * SECOND
    ping_every_with_choice: int = 250 * MILLISECOND
    silent_after_with_choice: int = 750 * MILLISECOND
    report_after: int = 10 * MILLISECOND  # progress is reported at the latest; if there is little of it, after
    report_little_after: int = 1 * SECOND  # at the latest, and before a broker takes it for lost
    little_events: int = 16  # with fewer that have come, and fewer bytes, there is little to report
    little_bytes: int = 64 * 1024
    allow_direct: bool = True  # publish to all replicas of a group at once, if the group takes that
    direct_bytes_max: int = 4 * 1024 * 1024  # that wait for a replica that does not read; then its link is given up
    contact: str = ""  # the first of the addresses, if it is dialled already when the client starts
    listening: str = ""  # where this client takes links, if it does


class Phase(enum.Enum):
    """Where the client is with its broker."""

    PAUSING = "pausing"  # until the next attempt
    CONNECTING = "connecting"  # an attempt is under way
    OPENING = "opening"  # there is a link, and no answer yet
    OPEN = "open"
    CLOSED = "closed"  # for good


# From where to where. What is not here is a mistake of ours.
TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.PAUSING: frozenset({Phase.CONNECTING, Phase.CLOSED}),
    Phase.CONNECTING: frozenset({Phase.OPENING, Phase.PAUSING, Phase.CLOSED}),
    Phase.OPENING: frozenset({Phase.OPEN, Phase.CONNECTING, Phase.PAUSING, Phase.CLOSED}),
    Phase.OPEN: frozenset({Phase.PAUSING, Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
}


class Companion(Protocol):
    """A part of a client that says its things again to every broker that the client comes to."""

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing."""
        ...

    def opened(self, out: Outbox) -> None:
        """A session is open."""
        ...

    def repeat(self, out: Outbox) -> None:
        """Says again what was not answered."""
        ...

    def end_all(self, reason: str, out: Outbox) -> None:
        """The client is closed for good."""
        ...


class Conversation:
    """The client's talk with the broker of the moment."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.name = settings.name
        self.incarnation = 0
        self.phase = Phase.PAUSING
        self.broker = ""
        self.log_id = ""  # of the broker's log, if it keeps one
        self.resumed = False  # the broker still knew the session when it was opened last
        self.member_since = 0  # the broker, of its network; 0: always
        self.was_apart = False  # the broker was not in its network for a while since the session was opened before
        self.report_every = 0  # events of a subscription, of which the broker keeps few; 0: it keeps many
        self.request_window = 0  # requests to the broker's application that may be unconfirmed; 0: it hosts none
        self._progress_at = 0
        self._repeat_after = settings.repeat_after
        self._waiting = False  # the timer is set

    def begin(self, incarnation: int) -> None:
        self.incarnation = incarnation

    def turn_to(self, broker: str) -> None:
        self.broker = broker

    def opened(self, opened: SessionOpened, resumed: bool) -> None:
        """What the broker says of the session."""
        self.log_id, self.resumed, self.request_window = opened.log_id, resumed, opened.request_window
        self.report_every = opened.report_every
        self.was_apart = resumed and opened.member_since > self.member_since
        self.member_since = opened.member_since

    def enter(self, phase: Phase) -> None:
        require(phase in TRANSITIONS[self.phase], "a client changes its phase by the table", at=self.phase, to=phase)
        self.phase = phase

    @property
    def is_open(self) -> bool:
        return self.phase is Phase.OPEN

    def is_opening_with(self, peer: str) -> bool:
        return self.phase is Phase.OPENING and peer == self.broker

    def is_open_with(self, peer: str) -> bool:
        """Whether the peer's word counts: that of a broker that was left behind does not, nor one before its time."""
        return self.phase is Phase.OPEN and peer == self.broker

    def send(self, message: Message, out: Outbox, lane: Lane = Lane.CONTROL, after: After = LATEST) -> None:
        out.send(self.broker, message, lane, after)

    def ask(self, message: Message, out: Outbox, lane: Lane = Lane.CONTROL) -> None:
        """Sends what is to be answered."""
        out.send(self.broker, message, lane)
        self.expect_answers(out)

    def expect_answers(self, out: Outbox) -> None:
        if not self._waiting:
            self._waiting = True
            out.set_timer(REPEAT_TIMER, self._repeat_after)

    def progressed(self, out: Outbox) -> None:
        """The broker answered something: what is still unanswered has time again."""
        self._progress_at = out.now
        if self._repeat_after != self.settings.repeat_after:
            self._repeat_after = self.settings.repeat_after
            self._waiting = False
            self.expect_answers(out)

    def timer_fired(self) -> None:
        self._waiting = False

    def is_overdue(self, out: Outbox) -> bool:
        """Whether nothing was answered for so long that everything should be said again; the next time is longer."""
        if out.now - self._progress_at < self._repeat_after:
            return False
        self._progress_at = out.now
        self._repeat_after = min(2 * self._repeat_after, self.settings.repeat_after_max)
        return True

    def started_talking(self, out: Outbox) -> None:
        self._progress_at = out.now
        self.expect_answers(out)
