"""The story of one event in plain text: where it went, who got it, who did not and what the trace says of why.

Takes the rows of a run once, in their order, and keeps only what concerns the event, the subscriptions and the faults.
It tells what the trace says and concludes nothing: promises are for the checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from holdfast.trace.errors import UnknownEvent
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import (
    Acknowledged,
    Confirmed,
    Delivered,
    Expired,
    Fault,
    Header,
    Hop,
    Missed,
    Published,
    Refused,
    Row,
    Subscribed,
    Unsubscribed,
)

WELL = ("up", "healed")  # states of components that explain nothing
APART = "apart"  # of `missed`: the broker was not in its network, and knows the subscription
TO_CLIENTS = ("Deliver", "CursorEvents")  # messages that bring events to subscribers
IDS_KEPT = 20_000  # ids among which a mistyped one is looked for


def story(header: Header, rows: Iterable[Row], event: str, moment: Callable[[int], str] | None = None) -> list[str]:
    """The story of an event, line by line. Raises UnknownEvent if the trace does not tell of it. `moment` says when a
    time was, for people; else it is milliseconds of the run."""
    notes = _Notes(event)
    for row in rows:
        notes.see(row)
    if notes.published is None and not notes.way:
        raise UnknownEvent(event, get_close_matches(event, notes.ids))
    return _tell(header, notes, moment or _ms)


class _Interest:
    """One subscription, and what became of it."""

    def __init__(self, subscribed: Subscribed, existed_before: bool) -> None:
        self.subscribed = subscribed
        self.existed_before = existed_before  # the event
        self.confirmed: list[int] = []
        self.was_confirmed_before = False
        self.is_over = False  # before the event
        self.got: list[Delivered] = []
        self.expired = False  # the event, on its way to it
        self.reasons: list[str] = []

    @property
    def subscription(self) -> str:
        return self.subscribed.subscription


class _Notes:
    """What the rows say about one event."""

    def __init__(self, event: str) -> None:
        self.event = event
        self.published: Published | None = None
        self.way: list[tuple[int, Row]] = []  # (running number, row) of all that happened to the event itself
        self.faults: list[tuple[int, Fault]] = []
        self.interests: dict[str, _Interest] = {}
        self.strays: list[Delivered] = []  # to subscriptions that nobody asked for
        self.ids: list[str] = []
        self._own_ids = 0
        self._number = 0
        self.end = 0

    def see(self, row: Row) -> None:
        self._number += 1
        self.end = row.t
        match row:
            case Published():
                self._on_published(row)
            case Hop():
                if self.event in row.events:
                    self.way.append((self._number, row))
            case Acknowledged() | Refused():
                if row.event == self.event:
                    self.way.append((self._number, row))
            case Delivered():
                if row.event == self.event:
                    self._on_delivered(row)
            case Expired():
                if row.event == self.event:
                    self._on_expired(row)
            case Fault():
                self._on_fault(row)
            case Subscribed():
                self.interests[row.subscription] = _Interest(row, self.published is None)
            case Confirmed() | Unsubscribed() | Missed():
                interest = self.interests.get(row.subscription)
                if interest is not None:
                    self._on_change(interest, row)

    def _on_published(self, row: Published) -> None:
        if row.event == self.event:
            self.published = self.published or row
            self.way.append((self._number, row))
        elif len(self.ids) < IDS_KEPT:
            self.ids.append(row.event)
        elif self._own_ids < IDS_KEPT and row.publisher == self.event.partition("/")[0]:
            self.ids[self._own_ids] = row.event  # its publisher's events look more like it than the first of the run
            self._own_ids += 1

    def _on_delivered(self, row: Delivered) -> None:
        self.way.append((self._number, row))
        interest = self.interests.get(row.subscription)
        if interest is None:
            self.strays.append(row)
        else:
            interest.got.append(row)

    def _on_expired(self, row: Expired) -> None:
        self.way.append((self._number, row))
        interest = self.interests.get(row.subscription)
        if interest is not None and not interest.expired:  # a broker may say so, and the client when it comes
            interest.expired = True
            interest.reasons.append(self._said(row.t, f"at {row.node}, it had expired"))

    def _on_fault(self, row: Fault) -> None:
        self.faults.append((self._number, row))
        if row.state == "crashed":
            for interest in self.interests.values():
                if interest.subscribed.subscriber == row.component:
                    self._end(interest, row.t, f"{row.component} crashed")

    def _on_change(self, interest: _Interest, row: Confirmed | Unsubscribed | Missed) -> None:
        match row:
            case Confirmed():
                interest.confirmed.append(row.t)
                if self.published is None:
                    interest.was_confirmed_before = True
                    interest.reasons.clear()
            case Unsubscribed():
                self._end(interest, row.t, "it was unsubscribed" + (f" ({row.reason})" if row.reason else ""))
            case Missed(count=None):
                if self.published is None:
                    interest.was_confirmed_before = False
                lost = "something is missing" if row.reason == APART else "its broker had lost it"
                interest.reasons.append(self._said(row.t, f"its owner was told that {lost} ({row.reason})"))
            case Missed():
                if self.published is not None:
                    text = f"its owner was told of {row.count} missed events ({row.reason})"
                    interest.reasons.append(self._said(row.t, text))

    def _end(self, interest: _Interest, t: int, why: str) -> None:
        if self.published is None:
            interest.is_over = True
        else:
            interest.reasons.append(self._said(t, why))

    def _said(self, t: int, text: str) -> str:
        """A reason with its time. Times before the publication can't be told relative to it yet."""
        return f"{text} at {_ms(t - self.published.t)}" if self.published else f"{text} before that"


def _tell(header: Header, notes: _Notes, moment: Callable[[int], str]) -> list[str]:
    published = notes.published
    begin = published.t if published else notes.way[0][1].t
    sampled = ", sampled: rows are left out" if header.sampled else ""
    lines = [f"event {_plain(notes.event)} in run {_plain(header.run)} ({_plain(header.system)}{sampled})", ""]
    if published is None:
        lines.append(f"Nobody published it, as far as the trace tells; times are from {moment(begin)} on.")
    else:
        lines.append(f"published by {_plain(published.publisher)} at {moment(begin)}; times below count from then")
        lines += _table(_attributes(published), "  ")
    interested = _interested(notes)
    open_ends = any(not interest.got and _heir(notes, interest) is None for interest in interested)
    lines += ["", *_table(_way(notes, begin, open_ends), "")]
    if header.is_live:
        return [*lines, "", _sent(notes)]
    lines += ["", _heading(notes, interested), *_table(_fates(notes, interested, begin), "  ")]
    return lines


def _sent(notes: _Notes) -> str:
    """Of brokers' own traces: to which clients it was sent. Whether they got it, and who wanted it, is not in them."""
    hops = [row for _, row in notes.way if isinstance(row, Hop) and row.what in TO_CLIENTS]
    clients = list(dict.fromkeys(f"{_plain(hop.target)} by {_plain(hop.source)}" for hop in hops))
    to = f"sent to {', '.join(clients)}" if clients else "sent to no client"
    return f"{to}; brokers' traces do not say who wanted it, and what clients handed on"


def _attributes(published: Published) -> list[tuple[str, ...]]:
    found = [("topic", repr(published.topic))] if published.topic else []
    found += [(_plain(name), repr(value)) for name, value in published.attributes.items()]
    if published.lifetime:
        found.append(("lifetime", _ms(published.lifetime)))
    return [(name, "=", value) for name, value in found]


def _way(notes: _Notes, begin: int, open_ends: bool) -> list[tuple[str, ...]]:
    """What happened to the event, and to the components on its way, by time."""
    visited = {name for _, row in notes.way for name in _places(row)}
    end = notes.end if open_ends else max(row.t for _, row in notes.way)
    first = notes.way[0][0]
    happened = list(notes.way)
    state: dict[str, tuple[int, Fault]] = {}
    for number, fault in notes.faults:
        # A link concerns the nodes at its two ends: what was cut next to the event's way may be why it went no further.
        if not visited.isdisjoint(fault.component.split(">")) and fault.t <= end:
            if number > first:
                happened.append((number, fault))
            else:
                state[fault.component] = (number, fault)
    # What was wrong already when the event was published belongs to its story too.
    happened += [(number, fault) for number, fault in state.values() if fault.state not in WELL]
    happened.sort(key=lambda entry: entry[0])
    return [(f"{(row.t - begin) / 1e6:12.3f} ms", *_step(row)) for _, row in happened]


def _places(row: Row) -> tuple[str, ...]:
    match row:
        case Published():
            return (row.publisher,)
        case Hop():
            return (row.source, row.target)
        case Delivered():
            return (row.subscriber, row.via) if row.via else (row.subscriber,)
        case Expired():
            return (row.node,)
    return ()


def _step(row: Row) -> tuple[str, str]:
    """One step of the way: what happened, and more about it."""
    match row:
        case Published():
            return "published", f"by {_plain(row.publisher)}"
        case Hop():
            others = f", with {len(row.events) - 1} more" if len(row.events) > 1 else ""
            return (
                f"{_plain(row.source)} -> {_plain(row.target)}",
                f"{_plain(row.what)} (message {row.message}{others})",
            )
        case Acknowledged():
            return "acknowledged", f"to {_plain(row.publisher)}"
        case Refused():
            return "refused", f"to {_plain(row.publisher)}: {_plain(row.reason)}"
        case Delivered():
            via = f" via {_plain(row.via)}" if row.via else ""
            attempt = f", attempt {row.attempt}" if row.attempt > 1 else ""
            position = f", position {row.position[1]}" if row.position else ""
            return "delivered", f"to {_plain(row.subscription)}{via}{position}{attempt}"
        case Expired():
            return "expired", f"at {_plain(row.node)}, for {_plain(row.subscription)}"
        case Fault():
            return f"! {_plain(row.component)}", _plain(row.state)
    return row.kind, ""


def _interested(notes: _Notes) -> list[_Interest]:
    """The subscriptions that were there at the publication and match."""
    event = notes.published
    if event is None:
        return []
    filters = FilterCache()
    return [
        interest
        for interest in notes.interests.values()
        if interest.existed_before and not interest.is_over
        if filters[interest.subscribed.filter].matches(event.attributes, event.topic)
    ]


def _heir(notes: _Notes, interest: _Interest) -> _Interest | None:
    """Who got the event under the name of a subscription that did not."""
    name = interest.subscribed.name
    got = (other for other in notes.interests.values() if other.got and name and other.subscribed.name == name)
    return None if interest.got else next(got, None)


def _heading(notes: _Notes, interested: list[_Interest]) -> str:
    if notes.published is None:
        return "delivered to"
    if not interested:
        return "No subscription that was there at the time wanted it."
    without = sum(not interest.got and _heir(notes, interest) is None for interest in interested)
    count = "1 subscription" if len(interested) == 1 else f"{len(interested)} subscriptions"
    return f"wanted by {count}, " + (f"{without} of which did not get it" if without else "and delivered to all")


def _fates(notes: _Notes, interested: list[_Interest], begin: int) -> list[tuple[str, ...]]:
    answered = any(isinstance(row, Acknowledged) for _, row in notes.way)
    fates = [_fate(interest, _ending(notes, interest, answered, begin)) for interest in interested]
    unasked = [interest for interest in notes.interests.values() if interest.got and interest not in interested]
    for interest in unasked:
        why = "kept for its name" if interest.subscribed.name else "though it did not wait for it then"
        fates.append(_fate(interest, f"got it at {_ms(interest.got[0].t - begin)}, {why}"))
    for row in notes.strays:
        fates.append((_plain(row.subscription), "?", f"got it at {_ms(row.t - begin)}, though nobody asked for that"))
    return fates


def _fate(interest: _Interest, ending: str) -> tuple[str, ...]:
    return _plain(interest.subscription), _plain(interest.subscribed.filter) or "every event", ending


def _ending(notes: _Notes, interest: _Interest, answered: bool, begin: int) -> str:
    if interest.got:
        again = f", {len(interest.got)} times" if len(interest.got) > 1 else ""
        return f"got it at {_ms(interest.got[0].t - begin)}{again}"
    if heir := _heir(notes, interest):
        return f"{_plain(heir.subscription)} got it under its name at {_ms(heir.got[0].t - begin)}"
    reasons = [_plain(reason) for reason in interest.reasons]
    if not interest.was_confirmed_before:
        later = [t for t in interest.confirmed if t >= begin]
        reasons.append(f"it was confirmed only at {_ms(later[0] - begin)}" if later else "it was never confirmed")
    if notes.published is not None and notes.published.lifetime and not interest.expired:
        reasons.append("the event may have expired")
    if not answered:
        reasons.append("the event was not acknowledged")
    return "did not get it: " + ("; ".join(reasons) or "the trace does not say why")


def _table(cells: list[tuple[str, ...]], indent: str) -> list[str]:
    """Cells in columns as wide as their widest, except the last."""
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns[:-1]]
    return [
        indent + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in cells
    ]


def _ms(t: int) -> str:
    return f"{t / 1e6:.3f} ms"


def _plain(text: str) -> str:
    """Text from a trace, harmless to a terminal."""
    return "".join(character if character.isprintable() else "�" for character in text)
