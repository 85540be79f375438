"""What a client publishes: waiting, in flight, answered.

Events wait in order; at most a window of them is in flight, numbered from 1 in their session. The broker answers with a
number up to which it has taken them in. A request is done when all its events are.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice, repeat, takewhile

from holdfast.kernel.node import require
from holdfast.model.event import EventBytes
from holdfast.protocols.sessions.messages import Refusal

_GIVEN_UP = -1  # in place of a request: answered already, as lost
_NOTHING = EventBytes(b"")  # in place of an event that was given up

_Event = tuple[int, int, int, EventBytes, bool]  # sequence, request, place in the request, bytes, retry

Refused = list[tuple[int, Refusal | None, str]]


def _is_given_up(event: _Event) -> bool:
    return event[1] == _GIVEN_UP


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
        self._events: deque[_Event] = deque()
        self._taken = 0  # of those, so many are sent
        self._sent_once = 0  # the highest number of this session that was ever sent
        self._tombstones = 0  # events that were given up and keep their numbers
        self._requests: dict[int, _Request] = {}

    @property
    def sent(self) -> int:
        """The highest number that was sent in this session."""
        return self._sent_once

    def __len__(self) -> int:
        """How many events are not answered."""
        return len(self._events)

    @property
    def in_flight(self) -> int:
        return self._taken

    @property
    def ready(self) -> bool:
        """Whether something waits that the window has room for."""
        return self._taken < len(self._events) and self._taken < self.window

    def add(self, request: int, made: list[tuple[int, int, EventBytes]], refused: Refused, retry: bool) -> None:
        """Adds a request's events: (place in the request, sequence, bytes)."""
        if made:
            self._requests[request] = _Request(len(made), refused)
            self._events.extend((sequence, request, place, data, retry) for place, sequence, data in made)

    def add_all(self, request: int, first: int, events: list[EventBytes], retry: bool) -> None:
        """Adds a request's events when none is refused: their sequences go on from `first`."""
        self._requests[request] = _Request(len(events), [])
        places = range(len(events))
        sequences = range(first, first + len(events))
        self._events.extend(zip(sequences, repeat(request), places, events, repeat(retry), strict=False))

    def take(self, count_max: int, bytes_max: int) -> tuple[int, list[EventBytes], int]:
        """The next events to send, as far as the window allows, and the session's number of the first; or no events,
        and how many numbers from the first on are skipped, since what had them was given up."""
        first = self.answered + self._taken + 1
        count = min(count_max, len(self._events) - self._taken, self.window - self._taken)
        if count <= 0:
            return first, [], 0
        if self._tombstones:
            following = list(islice(self._events, self._taken, self._taken + count))
            skipped = len(list(takewhile(_is_given_up, following)))
            if skipped:
                self._taken += skipped
                self._sent_once = max(self._sent_once, self.answered + self._taken)
                return first, [], skipped
            count = len(list(takewhile(lambda event: not _is_given_up(event), following)))
        events = [event[3] for event in islice(self._events, self._taken, self._taken + count)]
        size = sum(map(len, events))
        while size > bytes_max and len(events) > 1:
            size -= len(events.pop())
        self._taken += len(events)
        self._sent_once = max(self._sent_once, self.answered + self._taken)
        return first, events, 0

    def resend_all(self) -> None:
        """The broker has said what it has: everything else is taken again."""
        self._taken = 0

    def set_window(self, window: int) -> None:
        self.window = window

    def restart(self) -> None:
        """A new session: numbers begin again, and what was given up in the old one needs none."""
        self.answered = self._taken = self._sent_once = 0
        if self._tombstones:
            self._events = deque(event for event in self._events if not _is_given_up(event))
            self._tombstones = 0

    def answer(self, accepted: int) -> Iterator[tuple[int, int, int, int]]:
        """Takes out what is answered now: (number in the session, sequence, request, place)."""
        while self.answered < accepted and self._events:
            self.answered += 1
            sequence, request, place, _, _ = self._events.popleft()
            self._taken = max(0, self._taken - 1)
            if request == _GIVEN_UP:
                self._tombstones -= 1
            else:
                yield self.answered, sequence, request, place

    def answer_all(self, accepted: int) -> list[tuple[int, Refused]]:
        """Takes out what is answered now, all of it accepted; the requests that are done with it."""
        done: list[tuple[int, Refused]] = []
        events, requests = self._events, self._requests
        count = min(accepted - self.answered, len(events))
        for request, answered in Counter([events.popleft()[1] for _ in range(count)]).items():
            if request == _GIVEN_UP:
                self._tombstones -= answered
                continue
            entry = requests[request]
            if entry.settle(answered):
                del requests[request]
                done.append((request, sorted(entry.refused, key=lambda refused: refused[0])))
        if count > 0:
            self.answered += count
            self._taken = max(0, self._taken - count)
        return done

    def settle(self, request: int, place: int, why: tuple[Refusal | None, str] | None) -> Refused | None:
        """One event of a request is done. What was refused of the request, if that was the last of its events."""
        entry = self._requests[request]
        if why is not None:
            entry.refused.append((place, *why))
        if not entry.settle(1):
            return None
        del self._requests[request]
        return sorted(entry.refused, key=lambda refused: refused[0])

    def give_up_unretried(self) -> list[tuple[int, int, int]]:
        """Gives up, after a lost link, what is not to be sent again: (sequence, request, place).

        What was sent keeps its number: it may still be under way, and would be taken for what came under it later.
        """
        self._taken = 0
        sent = self._sent_once - self.answered
        given_up: list[tuple[int, int, int]] = []
        kept: deque[_Event] = deque()
        for place, event in enumerate(self._events):
            if event[4] or event[1] == _GIVEN_UP:
                kept.append(event)
                continue
            given_up.append(event[:3])
            if place < sent:
                kept.append((event[0], _GIVEN_UP, event[2], _NOTHING, False))
                self._tombstones += 1
        self._events = kept
        return given_up

    def give_up_sent(self) -> list[tuple[int, int, int]]:
        """Takes out everything that was sent in this session and not answered."""
        sent = self._sent_once - self.answered
        given_up = []
        for _ in range(min(sent, len(self._events))):
            event = self._events.popleft()
            if event[1] == _GIVEN_UP:
                self._tombstones -= 1
            else:
                given_up.append(event[:3])
        self._taken = 0
        return given_up

    def give_up_all(self) -> list[tuple[int, int, int]]:
        given_up = [event[:3] for event in self._events if event[1] != _GIVEN_UP]
        self._events.clear()
        self._taken = self._tombstones = 0
        return given_up

    def check_invariants(self) -> None:
        require(0 <= self._taken <= min(self.window, len(self._events)), "the window bounds what is in flight")
        counts = dict.fromkeys(self._requests, 0)
        last = 0
        for sequence, request, _, _, _ in self._events:
            require(sequence > last, "events leave in the order of their sequence", sequence=sequence)
            last = sequence
            if request != _GIVEN_UP:
                counts[request] += 1
        for request, count in counts.items():
            require(count == self._requests[request].remaining, "a request waits for its events", request=request)
