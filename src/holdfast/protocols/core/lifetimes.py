"""Events that expire: what a subscription at its broker knows of deadlines, and what became of its events (D1-A4).

Lifetimes are rare, so that everything here is made when the first event with one comes, and let go with the last.

An event that expires while it waits is given up when it is the oldest that is kept: those behind it are numbered
without gaps, and a gap may only be before them. One further behind waits for its turn, and its client will not hand it
over either.
"""

from __future__ import annotations

from collections import deque

import msgspec

from holdfast.kernel.node import require

PER_MILLE = 1_000
# Of runs of numbers that expired; if what there is no room for keeps coming between, the oldest are told as such.
RUNS_MAX = 64


class Outcomes(msgspec.Struct, array_like=True, gc=False):
    """What became of the events that subscriptions wanted, as their broker knows: those that clients had on time, those
    that expired here or at the client, and those that there was no room for."""

    on_time: int = 0
    expired: int = 0
    dropped: int = 0

    def add(self, other: Outcomes) -> None:
        self.on_time += other.on_time
        self.expired += other.expired
        self.dropped += other.dropped

    @property
    def on_time_per_mille(self) -> int:
        """Of a thousand events that arrived, were wanted and whose fate is known, those on time. What never reached the
        broker is not among them: this is no real-time reliability (D1-B10)."""
        wanted = self.on_time + self.expired + self.dropped
        return PER_MILLE * self.on_time // wanted if wanted else PER_MILLE


class Deadlines:
    """The deadlines of events that one subscription keeps, and which of those that it kept have expired."""

    __slots__ = ("_expired", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int]] = deque()  # (number, deadline), by number
        self._expired: deque[tuple[int, int]] = deque()  # runs of numbers, (first, last), which the client may lack

    def __bool__(self) -> bool:
        return bool(self._waiting or self._expired)

    def add(self, mortal: list[tuple[int, int]]) -> None:
        """(number, deadline), by number, behind those that are known."""
        self._waiting.extend(mortal)

    def count_expired(self, first_kept: int, before: int) -> int:
        """How many of the oldest events that are kept have deadlines up to `before`."""
        count = 0
        for number, deadline in self._waiting:
            if number > first_kept + count:
                break
            if number == first_kept + count:
                if deadline > before:
                    break
                count += 1
        return count

    def expire(self, first: int, count: int) -> None:
        """So many events, from number `first` on, are given up."""
        last = first + count - 1
        self.let_go(last + 1)
        if self._expired and self._expired[-1][1] == first - 1:
            self._expired[-1] = (self._expired[-1][0], last)
        else:
            self._expired.append((first, last))
            if len(self._expired) > RUNS_MAX:
                self._expired.popleft()

    def let_go(self, first_kept: int) -> None:
        """Of what is not kept, no deadline is needed."""
        while self._waiting and self._waiting[0][0] < first_kept:
            self._waiting.popleft()

    def received(self, number: int) -> None:
        """The client is past this number."""
        while self._expired and self._expired[0][1] <= number:
            self._expired.popleft()

    def runs(self, after: int, through: int) -> tuple[int, ...]:
        """First and last number of each run that expired, as far as it lies in a range."""
        found: list[int] = []
        for first, last in self._expired:
            first, last = max(first, after + 1), min(last, through)
            if first <= last:
                found += (first, last)
        return tuple(found)

    def get_state(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        return list(self._waiting), list(self._expired)

    @classmethod
    def from_state(cls, waiting: list[tuple[int, int]], expired: list[tuple[int, int]]) -> Deadlines:
        deadlines = cls()
        deadlines._waiting.extend(waiting)
        deadlines._expired.extend(expired)
        return deadlines

    def check_invariants(self, first_kept: int, last: int) -> None:
        numbers = [number for number, _ in self._waiting]
        require(numbers == sorted(set(numbers)), "deadlines are in the order of events", numbers=numbers)
        require(not numbers or numbers[-1] <= last, "a deadline is an event's", last=last)
        ends = [number for run in self._expired for number in run]
        require(ends == sorted(ends), "what expired is in the order of events", runs=ends)
        require(not ends or ends[-1] < first_kept, "what expired is not kept", first_kept=first_kept)
        require(len(self._expired) <= RUNS_MAX, "what is remembered of expired events is bounded")
