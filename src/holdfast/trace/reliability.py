"""Real-time reliability, measured: of the events that a subscription wanted, the share that came on time (D1-B10).

An event is *of interest* if the filter matches and it was published between the subscription's first `Confirmed` and
its end, whether a broker was there to take it or not. It is *on time* if it was handed over before its deadline, which
is its publication and its lifetime by the run's clock (D1-A4); an event without a lifetime is on time whenever it
comes. However often it comes, it counts once.

Events whose deadline lies behind the end count for nothing, on time or not: the run, or the subscription, was over
before their fate was decided (right censoring).

A subscription ends when its owner was told so, asked for it or crashed, and else with the run. One with a name is one
for all of its owners, as long as its filter stays the same: it goes on when another one opens it, with what was kept
meanwhile. If nobody has it at the end, what was not handed over and has no lifetime may still be.

Memory grows with the number of events, and by a byte for each event and subscription that wants it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from holdfast.errors import EventError, FilterError
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.trace.filters import NOTHING
from holdfast.trace.schema import Confirmed, Delivered, Fault, Published, Row, Subscribed, Unsubscribed

_FOR_EVER = 2**63 - 1


class Reliability(msgspec.Struct, frozen=True):
    """Of one subscription, or of all: events of interest whose fate was decided, and those of them on time."""

    subscription: str
    subscriber: str
    filter: str
    wanted: int
    on_time: int

    @property
    def ratio(self) -> float | None:
        """None if nothing was of interest."""
        return self.on_time / self.wanted if self.wanted else None


class _Interest:
    """What one filter wants, for all subscriptions that have it: places count its events in their order."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = array("q")  # of the events, ascending


class _Subscription:
    __slots__ = ("begin", "end", "ended_at", "got", "interest", "owner", "row")

    def __init__(self, row: Subscribed) -> None:
        self.row = row
        self.owner = row.subscription  # of one with a name, that of the client that opened it last
        self.interest: _Interest | None = None  # once it is confirmed
        self.begin = 0  # the first place that concerns it
        self.end = -1  # the first that does not any more; -1: it lives
        self.ended_at = 0
        self.got = bytearray()  # a byte for each place: 1 if that event came on time


class ReliabilityMeter:
    """Takes the rows of a run in their order, live or from a file; `finish` gives what was measured."""

    def __init__(self) -> None:
        self._deadlines = array("q")  # of events, which are numbered in the order of their publication
        self._numbers: dict[str, int] = {}
        self._interests: dict[str, _Interest] = {}
        self._index: FilterIndex[str] = FilterIndex()
        self._subscriptions: dict[str, _Subscription] = {}
        self._named: dict[str, list[_Subscription]] = {}  # name → one for each filter that it had in turn
        self._last = 0

    def see(self, row: Row) -> None:
        self._last = row.t
        match row:
            case Published():
                self._on_published(row)
            case Delivered():
                self._on_delivered(row)
            case Subscribed():
                self._subscriptions[row.subscription] = _Subscription(row)
            case Confirmed():
                self._on_confirmed(row)
            case Unsubscribed():
                self._leave(row.subscription, row.t)
            case Fault(state="crashed"):
                for id, subscription in self._subscriptions.items():
                    if subscription.row.subscriber == row.component:
                        self._leave(id, row.t)

    def _on_published(self, row: Published) -> None:
        if row.event in self._numbers:
            return  # each replica tells of what its application made; it was published when the first did
        number = self._numbers[row.event] = len(self._deadlines)
        self._deadlines.append(min(row.t + row.lifetime, _FOR_EVER) if row.lifetime else _FOR_EVER)
        try:
            wanted = self._index.match(row.attributes, row.topic)
        except EventError:
            return  # brokers refuse such an event, too: nobody can want it
        for text in wanted:
            self._interests[text].numbers.append(number)

    def _on_confirmed(self, row: Confirmed) -> None:
        subscription = self._subscriptions.get(row.subscription)
        if subscription is None or subscription.interest is not None:
            return
        name = subscription.row.name
        if name and self._goes_on(subscription, self._named.setdefault(name, []), row.t):
            return
        text = subscription.row.filter
        if text not in self._interests:
            self._interests[text] = _Interest()
            self._index.add(text, _filter(text))
        subscription.interest = self._interests[text]
        subscription.begin = len(subscription.interest.numbers)

    @staticmethod
    def _goes_on(opened: _Subscription, before: list[_Subscription], t: int) -> bool:
        """Whether what was opened by a name is what the name was before; else it begins now, and that has ended."""
        last = before[-1] if before else None
        if last is not None and last.row.filter == opened.row.filter:
            last.owner, last.end = opened.owner, -1
            return True
        if last is not None and last.interest is not None:
            last.owner, last.end, last.ended_at = "", len(last.interest.numbers), t
        before.append(opened)
        return False

    def _on_delivered(self, row: Delivered) -> None:
        subscription, number = self._subscriptions.get(row.subscription), self._numbers.get(row.event)
        if subscription is None or number is None or row.t >= self._deadlines[number]:
            return
        for one in self._named.get(subscription.row.name, [subscription]):
            self._count(one, number)

    @staticmethod
    def _count(subscription: _Subscription, number: int) -> None:
        if subscription.interest is None:
            return
        numbers = subscription.interest.numbers
        place = bisect_left(numbers, number)
        offset = place - subscription.begin
        if offset < 0 or place == len(numbers) or numbers[place] != number or 0 <= subscription.end <= place:
            return  # not of interest, or published before it was confirmed
        if offset >= len(subscription.got):
            subscription.got.extend(bytes(offset + 1 - len(subscription.got)))
        subscription.got[offset] = 1

    def _leave(self, id: str, t: int) -> None:
        """An owner does; a name may have another one by then."""
        subscription = self._subscriptions.get(id)
        if subscription is not None and subscription.row.name:
            subscription = self._named.get(subscription.row.name, [subscription])[-1]
        if subscription is not None and subscription.owner == id and subscription.end < 0:
            subscription.owner = ""
            subscription.end = 0 if subscription.interest is None else len(subscription.interest.numbers)
            subscription.ended_at = t

    def finish(self, end: int | None = None) -> list[Reliability]:
        """One for each subscription, and for each name and filter, in the order of the run, which ended then, or with
        its last row."""
        end = self._last if end is None else end
        counted = [one for one in self._subscriptions.values() if not one.row.name or one.interest is not None]
        return [self._measure(subscription, end) for subscription in counted]

    def _measure(self, subscription: _Subscription, end: int) -> Reliability:
        row, interest = subscription.row, subscription.interest
        wanted = on_time = 0
        if interest is not None:
            over = subscription.end >= 0
            until = min(subscription.ended_at, end) if over else end
            numbers = interest.numbers[subscription.begin : subscription.end if over else len(interest.numbers)]
            got, deadlines = subscription.got.ljust(len(numbers), b"\0"), self._deadlines
            is_kept = bool(row.name) and not subscription.owner
            for offset, number in enumerate(numbers):
                is_decided = deadlines[number] <= until or (deadlines[number] == _FOR_EVER and not is_kept)
                if is_decided or (deadlines[number] == _FOR_EVER and got[offset]):
                    wanted += 1
                    on_time += got[offset]
        return Reliability(row.subscription, row.subscriber, row.filter, wanted, on_time)


def _filter(text: str) -> Filter:
    try:
        return Filter(text)
    except FilterError:
        return NOTHING


def measure_reliability(rows: Iterable[Row], end: int | None = None) -> list[Reliability]:
    """The reliability of every subscription of a run."""
    meter = ReliabilityMeter()
    for row in rows:
        meter.see(row)
    return meter.finish(end)


def total(measured: Iterable[Reliability]) -> Reliability:
    """All subscriptions taken together: each event counts once for each that wanted it."""
    wanted = on_time = 0
    for one in measured:
        wanted += one.wanted
        on_time += one.on_time
    return Reliability("", "", "", wanted, on_time)


def told(measured: list[Reliability]) -> list[str]:
    """For people: a line for each subscription, and one for all."""
    rows = [(one.subscription, one.filter or "every event", one) for one in measured]
    rows.append((f"all {len(measured)}", "", total(measured)))
    width, wider = max(len(name) for name, _, _ in rows), max(len(text) for _, text, _ in rows)
    return [
        f"{name:{width}}  {text:{wider}}  {_ratio(one):>7}  {one.on_time:,} of {one.wanted:,} on time"
        for name, text, one in rows
    ]


def _ratio(one: Reliability) -> str:
    return "-" if one.ratio is None else f"{one.ratio:.5f}"
