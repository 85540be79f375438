"""One subscription at its client: how far it is, and what it has seen of each publisher.

Numbers are those that the broker gave the subscription's events. `received` counts what the client got, `consumed` what
the application has dealt with; in between lies what was handed over and not consumed, in runs without gaps. What came
after its deadline is received, and never handed over (D1-A4).
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Sequence

from holdfast.kernel.node import require
from holdfast.model.batch import PublisherRun
from holdfast.protocols.sessions.messages import Overflow

PUBLISHERS_MAX = 10_000  # that a subscription remembers; the one longest remembered goes first


class SubscriptionPhase(enum.Enum):
    MAKING = "making"  # asked for, also again after the broker forgot it
    LIVE = "live"
    FORGOTTEN = "forgotten"  # by the broker, and not to be made again
    ENDING = "ending"  # nothing is handed over any more; the broker may not know yet


class IncomingSubscription:
    """Compared by identity."""

    __slots__ = (
        "_reported_consumed", "_reported_received", "_runs", "_seen", "_seen_before", "_unconsumed_before", "asked",
        "consumed", "enders", "filter", "gap", "late", "maker", "number", "overflow", "phase", "received", "window",
    )  # fmt: skip

    def __init__(self, number: int, maker: int, filter: str, overflow: Overflow, window: int) -> None:
        self.number = number
        self.maker: int | None = maker  # the request that waits for a confirmation
        self.enders: list[int] = []  # the requests that wait for the end
        self.filter = filter
        self.overflow = overflow
        self.window = window
        self.phase = SubscriptionPhase.MAKING
        self.received = 0
        self.consumed = 0
        self.late = 0  # of those received, the ones that came after their deadlines
        self.gap = False  # something did not arrive that should have
        self.asked = False  # the broker does not seem to know how far we are
        self._runs: deque[list[int]] = deque()  # [count, number of the last], handed over and not consumed
        self._unconsumed_before = 0  # of those handed over before the broker forgot
        self._reported_received = 0
        self._reported_consumed = 0
        # (publisher, incarnation) → the highest sequence handed over; and what that was when the broker last forgot.
        self._seen: dict[tuple[str, int], int] = {}
        self._seen_before: dict[tuple[str, int], int] = {}

    def enter(self, phase: SubscriptionPhase) -> None:
        self.phase = phase

    def take_maker(self) -> int | None:
        """The request that waits for a confirmation, which is answered now."""
        maker, self.maker = self.maker, None
        return maker

    def note_gap(self) -> None:
        self.gap = True

    def note_asked(self) -> None:
        self.asked = True

    def take(self, publishers: Iterable[PublisherRun], late: Sequence[int] = ()) -> list[int]:
        """Counts events as received that are next, in runs of publishers. The rows of those that the application had
        from a session that the broker forgot: it is not to have them, and not those of the rows that are `late`."""
        repeated: list[int] = []
        row = 0
        for publisher, incarnation, first, count in publishers:
            known = self._repeated(publisher, incarnation, first, count) if self._seen_before else 0
            repeated += range(row, row + known)
            row += count
            if known < count:
                self._see((publisher, incarnation), first + count - 1)
        self.gap = False
        withheld = sorted({*repeated, *late}) if late else repeated
        self.late += len(withheld) - len(repeated)
        self._count(row, withheld)
        return repeated

    def _repeated(self, publisher: str, incarnation: int, first: int, count: int) -> int:
        """How many of a run the application had before. A publisher's events come in order: one that is not newer than
        the last one seen was sent again, after the broker had lost its memory."""
        seen = self._seen_before.get((publisher, incarnation), 0)
        known = max(0, min(count, seen + 1 - first))
        if known < count:
            self._seen_before.pop((publisher, incarnation), None)
        return known

    def _see(self, publisher: tuple[str, int], sequence: int) -> None:
        self._seen[publisher] = sequence
        if len(self._seen) > PUBLISHERS_MAX:
            del self._seen[next(iter(self._seen))]

    def _count(self, count: int, withheld: Sequence[int]) -> None:
        """So many are received; all but the withheld ones, whose rows rise, go to the application."""
        if not withheld:
            self.received += count
            self._hand_over(count)
            return
        start = 0
        for row in (*withheld, count):
            if row > start:
                self.received += row - start
                self._hand_over(row - start)
            if row < count:
                self.received += 1
                self._settle_consumed()
            start = row + 1

    def _hand_over(self, count: int) -> None:
        """So many of the events up to the last one received go to the application."""
        if self._runs and self._runs[-1][1] == self.received - count:
            self._runs[-1][0] += count
            self._runs[-1][1] = self.received
        else:
            self._runs.append([count, self.received])

    def consume(self, count: int) -> None:
        """The application has dealt with so many events, in the order in which it got them."""
        before = min(count, self._unconsumed_before)
        self._unconsumed_before -= before
        count -= before
        while count and self._runs:
            run = self._runs[0]
            taken = min(count, run[0])
            run[0] -= taken
            count -= taken
            if run[0]:
                break
            self._runs.popleft()
        self._settle_consumed()

    def _settle_consumed(self) -> None:
        if self._runs:
            self.consumed = max(self.consumed, self._runs[0][1] - self._runs[0][0])
        else:
            self.consumed = self.received

    def skip(self, through: int) -> int:
        """The broker dropped events up to this number; how many of them had not arrived."""
        count = max(0, through - self.received)
        if count:
            self.received = through
            self.gap = False
            self._settle_consumed()
        return count

    def forgotten(self, again: bool) -> None:
        """The broker forgot the subscription: numbers begin again, and what comes may have come before.

        `again`: it is to be made anew.
        """
        self.phase = SubscriptionPhase.MAKING if again else SubscriptionPhase.FORGOTTEN
        self.received = self.consumed = self.late = self._reported_received = self._reported_consumed = 0
        self.gap = False
        self._unconsumed_before += sum(run[0] for run in self._runs)
        self._runs.clear()
        self._seen_before = dict(self._seen)

    @property
    def urgent(self) -> bool:
        """Whether the broker should hear of the progress now."""
        quarter = max(1, self.window // 4)
        return (
            self.gap
            or self.asked
            or self.received - self._reported_received >= quarter
            or self.consumed - self._reported_consumed >= quarter
        )

    def reported(self) -> None:
        self._reported_received, self._reported_consumed = self.received, self.consumed
        self.gap = self.asked = False

    def check_invariants(self) -> None:
        require(self.consumed <= self.received, "what is consumed was received", number=self.number)
        waiting = sum(run[0] for run in self._runs)
        require(waiting <= self.received - self.consumed, "what is not consumed was handed over", number=self.number)
        require(waiting <= self.window or self.phase is not SubscriptionPhase.LIVE, "the window bounds what waits")
