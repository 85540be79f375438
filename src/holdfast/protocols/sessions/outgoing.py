"""What a client publishes: waiting, in flight, answered.

Events wait in order; at most a window of them is in flight, numbered from 1 in their session. The broker answers with a
number up to which it has taken them in. A request is done when all its events are. They are kept as they were made, in
runs: a run is cut where the window ends, or an answer, and its bytes are not touched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.kernel.node import require
from holdfast.model.batch import EventBatch
from holdfast.protocols.sessions.messages import Refusal

Refused = list[tuple[int, Refusal | None, str]]


class _Run:
    """Events of one request, whose places and sequences go on without gaps. Without a batch, they were given up, and
    have been answered as lost: they only keep their numbers."""

    __slots__ = ("batch", "count", "place", "request", "retry", "sequence")

    def __init__(
        self, request: int, place: int, sequence: int, count: int, batch: EventBatch | None, retry: bool
    ) -> None:
        self.request = request
        self.place = place
        self.sequence = sequence
        self.count = count
        self.batch = batch
        self.retry = retry

    def part(self, start: int, end: int) -> _Run:
        batch = self.batch.part(start, end) if self.batch is not None else None
        return _Run(self.request, self.place + start, self.sequence + start, end - start, batch, self.retry)

    def given_up(self) -> _Run:
        return _Run(self.request, self.place, self.sequence, self.count, None, retry=False)

    def events(self) -> Iterator[tuple[int, int, int]]:
        """Sequence, request, place."""
        for number in range(self.count):
            yield self.sequence + number, self.request, self.place + number


class _Request:
    __slots__ = ("refused", "remaining")

    def __init__(self, remaining: int, refused: Refused) -> None:
        self.remaining = remaining
        self.refused = refused

    def settle(self, count: int) -> bool:
        """So many of its events are done. Whether all are."""
        self.remaining -= count
        return not self.remaining


class Outgoing:
    """Events on their way to the broker, oldest first: in flight and sent, in flight and to be sent again, waiting."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.answered = 0  # the session's number up to which the broker has answered
        self._sent: deque[_Run] = deque()
        self._waiting: deque[_Run] = deque()  # also what is to be sent again
        self._count = 0  # of the events of both
        self._taken = 0  # and of those that are sent
        self._sent_once = 0  # the highest number of this session that was ever sent
        self._requests: dict[int, _Request] = {}

    @property
    def sent(self) -> int:
        """The highest number that was sent in this session."""
        return self._sent_once

    def __len__(self) -> int:
        """How many events are not answered."""
        return self._count

    @property
    def in_flight(self) -> int:
        return self._taken

    @property
    def ready(self) -> bool:
        """Whether something waits that the window has room for."""
        return self._taken < self._count and self._taken < self.window

    # -------------------------------------------------------------------------------------------------------- adding
    def add(self, request: int, made: list[tuple[int, int, EventBatch]], refused: Refused, retry: bool) -> None:
        """Adds a request's events: (place in the request, sequence, event). Each refused one has a sequence of its own,
        so that both are numbered without gaps, or neither is."""
        if not made:
            return
        self._requests[request] = _Request(len(made), refused)
        runs: list[list[tuple[int, int, EventBatch]]] = []
        for event in made:
            if runs and runs[-1][-1][0] + 1 == event[0]:
                runs[-1].append(event)
            else:
                runs.append([event])
        for run in runs:
            batch = EventBatch.joined([event for _, _, event in run])
            self._waiting.append(_Run(request, run[0][0], run[0][1], len(run), batch, retry))
        self._count += len(made)

    def add_all(self, request: int, first: int, batch: EventBatch, retry: bool) -> None:
        """Adds a request's events when none is refused: their sequences go on from `first`."""
        count = len(batch)
        self._requests[request] = _Request(count, [])
        self._waiting.append(_Run(request, 0, first, count, batch, retry))
        self._count += count

    # ------------------------------------------------------------------------------------------------------- sending
    def take(self, count_max: int, bytes_max: int) -> tuple[int, EventBatch | None, int]:
        """The next events to send, as far as the window allows, and the session's number of the first; or no events,
        and how many numbers from the first on are skipped, since what had them was given up."""
        first = self.answered + self._taken + 1
        room = min(count_max, self._count - self._taken, self.window - self._taken)
        parts: list[EventBatch] = []
        skipped = size = 0
        while room > 0 and self._waiting:
            run = self._waiting[0]
            count = min(room, run.count)
            if run.batch is None:
                if parts:
                    break
                skipped += count
            elif skipped:
                break
            else:
                count = min(count, run.batch.rows_within(0, max(0, bytes_max - size)))
                count = count or not parts  # one goes, however large it is
                if not count:
                    break
                size += run.batch.bytes_of(0, count)
                parts.append(run.batch.part(0, count))
            self._sent += _take_from(self._waiting, count)
            self._taken += count
            room -= count
            if parts and count < run.count:
                break  # the window or the message is full
        self._sent_once = max(self._sent_once, self.answered + self._taken)
        return first, EventBatch.joined(parts) if parts else None, skipped

    def resend_all(self) -> None:
        """The broker has said what it has: everything else is taken again."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        self._taken = 0

    def set_window(self, window: int) -> None:
        self.window = window

    def restart(self) -> None:
        """A new session: numbers begin again, and what was given up in the old one needs none."""
        self.resend_all()
        self.answered = self._sent_once = 0
        self._keep(run for run in self._waiting if run.batch is not None)

    # ------------------------------------------------------------------------------------------------------- answers
    def answer(self, accepted: int) -> Iterator[tuple[int, int, int, int]]:
        """Takes out what is answered now: (number in the session, sequence, request, place)."""
        number = self.answered
        for run in self._take_out(accepted - number):
            for sequence, request, place in run.events() if run.batch is not None else ():
                yield number + 1 + sequence - run.sequence, sequence, request, place
            number += run.count
        self.answered = number

    def answer_all(self, accepted: int) -> list[tuple[int, Refused]]:
        """Takes out what is answered now, all of it accepted; the requests that are done with it."""
        done: list[tuple[int, Refused]] = []
        for run in self._take_out(accepted - self.answered):
            self.answered += run.count
            if run.batch is None:
                continue
            entry = self._requests[run.request]
            if entry.settle(run.count):
                del self._requests[run.request]
                done.append((run.request, sorted(entry.refused, key=lambda refused: refused[0])))
        return done

    def _take_out(self, count: int) -> list[_Run]:
        """The oldest events, as many as there are."""
        count = max(0, min(count, self._count))
        sent = min(count, self._taken)
        self._count -= count
        self._taken -= sent
        return _take_from(self._sent, sent) + _take_from(self._waiting, count - sent)

    def settle(self, request: int, place: int, why: tuple[Refusal | None, str] | None) -> Refused | None:
        """One event of a request is done. What was refused of the request, if that was the last of its events."""
        entry = self._requests[request]
        if why is not None:
            entry.refused.append((place, *why))
        if not entry.settle(1):
            return None
        del self._requests[request]
        return sorted(entry.refused, key=lambda refused: refused[0])

    # ----------------------------------------------------------------------------------------------------- giving up
    def give_up_unretried(self) -> list[tuple[int, int, int]]:
        """Gives up, after a lost link, what is not to be sent again: (sequence, request, place).

        What was sent keeps its number: it may still be under way, and would be taken for what came under it later.
        """
        self.resend_all()
        sent = self._sent_once - self.answered
        given_up: list[tuple[int, int, int]] = []
        kept: list[_Run] = []
        for run in self._waiting:
            if run.retry or run.batch is None:
                kept.append(run)
            else:
                given_up += run.events()
                numbered = min(sent, run.count)
                if numbered > 0:
                    kept.append(run.part(0, numbered).given_up())
            sent -= run.count
        self._keep(kept)
        return given_up

    def give_up_sent(self) -> list[tuple[int, int, int]]:
        """Takes out everything that was sent in this session and not answered."""
        self.resend_all()
        runs = self._take_out(self._sent_once - self.answered)
        return [event for run in runs if run.batch is not None for event in run.events()]

    def give_up_all(self) -> list[tuple[int, int, int]]:
        self.resend_all()
        return [event for run in self._take_out(self._count) if run.batch is not None for event in run.events()]

    def _keep(self, runs: Iterable[_Run]) -> None:
        """Of what waits, only these."""
        self._waiting = deque(runs)
        self._count = sum([run.count for run in self._waiting])

    def check_invariants(self) -> None:
        require(0 <= self._taken <= min(self.window, self._count), "the window bounds what is in flight")
        require(self._taken == sum([run.count for run in self._sent]), "what is in flight is counted")
        runs = [*self._sent, *self._waiting]
        require(self._count == sum([run.count for run in runs]), "what is not answered is counted")
        counts = dict.fromkeys(self._requests, 0)
        last = 0
        for run in runs:
            require(run.sequence > last, "events leave in the order of their sequence", sequence=run.sequence)
            last = run.sequence + run.count - 1
            require(run.batch is None or len(run.batch) == run.count, "a run has its events", request=run.request)
            if run.batch is not None:
                counts[run.request] += run.count
        for request, count in counts.items():
            require(count == self._requests[request].remaining, "a request waits for its events", request=request)


def _take_from(runs: deque[_Run], count: int) -> list[_Run]:
    """The first so many events, which are there."""
    taken: list[_Run] = []
    while count:
        run = runs[0]
        if run.count > count:
            taken.append(run.part(0, count))
            runs[0] = run.part(count, run.count)
            break
        taken.append(runs.popleft())
        count -= run.count
    return taken
