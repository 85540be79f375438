"""What neighbours told, on the disk: at the levels that buffer a broker may not forget it (D1-B4.1).

A broker that has lost its tables would find nobody to send an event to, acknowledge it, and lose it. So it keeps them,
and it knows of which neighbours it has a complete telling: what is meant for any other is kept until that has come.

It keeps, too, which topics it advertises for its own clients: neighbours that hear nothing of them any more take back
what they wanted, and what is published after the next failure would be for nobody. And which advertisements neighbours
have answered (`Answers`): of the others, everything is kept for them. And the neighbours themselves, if they are others
than the site file's, with how far this broker is in a move of a link.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.model import Filter
from holdfast.protocols.routing.answers import AnswerChange
from holdfast.protocols.routing.messages import (
    RECORD_FORMAT,
    AdvertisementsAnswered,
    MoveStage,
    NeighboursChanged,
    Routes,
    RoutesTold,
    TableState,
    Told,
    TopicAdvertised,
    TopicUnadvertised,
)
from holdfast.protocols.routing.router import Router, parse_filter
from holdfast.protocols.routing.tellings import Telling, texts

STREAM: Final = "routes"
SNAPSHOT_BYTES: Final = 1024 * 1024  # of records, before a snapshot takes their place
RoutingRecord: TypeAlias = (
    RoutesTold | TableState | TopicAdvertised | TopicUnadvertised | AdvertisementsAnswered | NeighboursChanged
)


class _Tables:
    """What the records come to, before there is a router: neighbours may have changed meanwhile."""

    def __init__(
        self,
        near: list[str] | None = None,
        complete: dict[str, None] | None = None,
        answered: dict[str, dict[str, None]] | None = None,
    ) -> None:
        self.near = near  # None: those of the site file
        self.stage: MoveStage | None = None
        self.told: dict[str, Telling] = {}
        self.complete = complete or {}
        self.topics: dict[str, TopicAdvertised] = {}
        self.answered = answered or {}
        self.bytes = 0
        self.snapshot_bytes = 0

    def of(self, source: str) -> Telling:
        return self.told.setdefault(source, Telling({}, {}))

    def take_over(self, state: TableState) -> None:
        self.near, self.stage = state.near, state.stage
        self.complete = dict.fromkeys(state.complete)
        self.topics = {advertised.entry: advertised for advertised in state.topics}
        self.answered = {peer: dict.fromkeys(filters) for peer, filters in state.answered.items()}
        self.told = {source: Telling(*map(_parsed, tables)) for source, tables in state.told.items()}
        self.snapshot_bytes, self.bytes = _size_of_all(state.told, self.answered, self.topics), 0

    def hear(self, source: str, routes: Routes) -> None:
        self.bytes += routes.weight()
        advertisements, subscriptions = _parsed(routes.advertisements), _parsed(routes.subscriptions)
        if routes.full and routes.complete:
            self.complete[source] = None
            self.told[source] = Telling(advertisements, subscriptions)
            return
        tables = self.of(source)
        for table, told, gone in (
            (tables.advertisements, advertisements, routes.unadvertised),
            (tables.subscriptions, subscriptions, routes.unsubscribed),
        ):
            for entry, filter in told.items():
                table.setdefault(entry, filter)
            for entry in gone:
                table.pop(entry, None)

    def change(self, changed: NeighboursChanged) -> None:
        """Who takes the place of a neighbour takes over what it told and answered; who had a place already keeps what
        it told and answered itself, and has the other's entries, too."""
        before = self.near or ()
        for old, taker in changed.moved.items():
            tables, answered = self.told.pop(old, Telling({}, {})), self.answered.pop(old, {})
            was_complete = self.complete.pop(old, old) is None
            for table, more in zip(self.of(taker), tables, strict=True):
                for entry, filter in more.items():
                    table.setdefault(entry, filter)
            if taker not in before:
                self.answered[taker] = answered
                self.complete |= {taker: None} if was_complete else {}
        self.near, self.stage = changed.near, changed.stage
        for gone in [source for source in (*self.told, *self.answered, *self.complete) if source not in changed.near]:
            self.told.pop(gone, None)
            self.answered.pop(gone, None)
            self.complete.pop(gone, None)

    def answer(self, record: AdvertisementsAnswered) -> None:
        self.bytes += _answer(self.answered, record)

    def advertise(self, record: TopicAdvertised) -> None:
        self.topics[record.entry] = record
        self.bytes += _size(record)

    def unadvertise(self, record: TopicUnadvertised) -> None:
        self.topics.pop(record.entry, None)
        self.bytes += _size(record)


def recovered_tables(streams: StoredStreams) -> _Tables:
    tables = _Tables()
    for record in streams.get(STREAM, ()):
        if not isinstance(record, RoutingRecord):
            broken("the routes on the disk are known records", record=type(record).__name__)
        require(record.format == RECORD_FORMAT, "the routes' format is known", format=record.format)
        match record:
            case TableState():
                tables.take_over(record)
            case TopicAdvertised():
                tables.advertise(record)
            case TopicUnadvertised():
                tables.unadvertise(record)
            case AdvertisementsAnswered():
                tables.answer(record)
            case RoutesTold():
                tables.hear(record.source, record.routes)
            case NeighboursChanged():
                tables.change(record)
    return tables


class TableStore:
    """Its records are what was told, in order; now and then a snapshot of the tables takes their place."""

    def __init__(self, router: Router, recovered: _Tables | None = None) -> None:
        """Brings the router to where the records end."""
        tables = recovered or _Tables()
        self.near, self.stage = tables.near, tables.stage
        self.complete = tables.complete  # neighbours that have told everything on their side
        self.topics = tables.topics  # entry → what is advertised under it for clients of our own
        self.answered = tables.answered  # neighbour → filters of advertisements that it has answered
        self._bytes = tables.bytes
        self._snapshot_bytes = tables.snapshot_bytes
        self._router = router
        for source, telling in tables.told.items():
            if source in router.neighbours:
                router.replace(source, *telling)

    def change(self, changed: NeighboursChanged, out: Outbox) -> None:
        """The neighbours are others now, and so is what they told."""
        out.append(STREAM, changed)
        tables = _Tables(self.near, self.complete, self.answered)
        tables.change(changed)
        self.near, self.stage = tables.near, tables.stage
        self.complete, self.answered = tables.complete, tables.answered
        self._bytes += 64 + sum(map(len, changed.near))
        self._keep_short(out)

    def told(self, source: str, routes: Routes, telling: Telling, out: Outbox) -> None:
        """A neighbour told something; of a full telling that came in parts, all of it."""
        record = RoutesTold(
            source,
            Routes(
                texts(telling.advertisements),
                texts(telling.subscriptions),
                routes.unadvertised,
                routes.unsubscribed,
                routes.full,
                True,
                routes.complete,
            ),
        )
        out.append(STREAM, record)
        self._count(source, record.routes)
        self._keep_short(out)

    def advertised(self, entry: str, client: str, topic: str | None, out: Outbox) -> None:
        """A topic is advertised for a client of our own; or an advertisement that is there is for another one now."""
        self._add(TopicAdvertised(entry, client, topic), out)

    def unadvertised(self, entry: str, out: Outbox) -> None:
        if entry in self.topics:
            self._add(TopicUnadvertised(entry), out)

    def keep_answers(self, changed: list[AnswerChange], out: Outbox) -> None:
        """Before anyone is told of advertisements that are taken back: their answers are worth nothing from then on."""
        for peer in dict.fromkeys([change.peer for change in changed]):
            last = {change.filter: change.answered for change in changed if change.peer == peer}
            record = AdvertisementsAnswered(
                peer,
                [text for text, answered in last.items() if answered],
                [text for text, answered in last.items() if not answered],
            )
            out.append(STREAM, record)
            self._bytes += _answer(self.answered, record)
        if changed:
            self._keep_short(out)

    def _add(self, record: TopicAdvertised | TopicUnadvertised, out: Outbox) -> None:
        if isinstance(record, TopicAdvertised):
            self.topics[record.entry] = record
        else:
            del self.topics[record.entry]
        out.append(STREAM, record)
        self._bytes += _size(record)
        self._keep_short(out)

    def _keep_short(self, out: Outbox) -> None:
        if self._bytes > max(SNAPSHOT_BYTES, 2 * self._snapshot_bytes):
            self._snapshot(out)

    def _count(self, source: str, routes: Routes) -> None:
        self._bytes += routes.weight()
        if routes.full and routes.complete:
            self.complete[source] = None

    def _snapshot(self, out: Outbox) -> None:
        router = self._router
        told = {
            source: (
                texts(router.advertisements.by_source[source]),
                texts(router.subscriptions.by_source[source]),
            )
            for source in router.neighbours
        }
        answered = {peer: list(filters) for peer, filters in self.answered.items()}
        topics = list(self.topics.values())
        state = TableState(
            told, list(self.complete), topics=topics, answered=answered, near=self.near, stage=self.stage
        )
        out.snapshot(STREAM, state)
        self._snapshot_bytes, self._bytes = _size_of_all(told, self.answered, self.topics), 0


def apply_routes(router: Router, source: str, routes: Routes, telling: Telling) -> None:
    """What a neighbour told, with its filters parsed; of a full telling, all of them."""
    if routes.full and routes.complete:
        router.replace(source, *telling)
        return
    router.merge(source, *telling)
    for entry in routes.unadvertised:
        router.unadvertise(source, entry)
    for entry in routes.unsubscribed:
        router.unsubscribe(source, entry)


def _parsed(told: list[tuple[str, str]]) -> dict[str, Filter]:
    return {entry: parse_filter(text) for entry, text in told}


def _size(record: TopicAdvertised | TopicUnadvertised) -> int:
    words = len(record.entry)
    return words + len(record.client) + len(record.topic or "") if isinstance(record, TopicAdvertised) else words


def _answer(answered: dict[str, dict[str, None]], record: AdvertisementsAnswered) -> int:
    """Takes a record in, and gives its size."""
    filters = answered.setdefault(record.peer, {})
    filters |= dict.fromkeys(record.filters)
    for text in record.taken_back:
        filters.pop(text, None)
    return sum(map(len, (*record.filters, *record.taken_back)))


def _size_of_all(
    told: dict[str, tuple[list[Told], list[Told]]],
    answered: dict[str, dict[str, None]],
    topics: dict[str, TopicAdvertised],
) -> int:
    texts_answered = sum(len(text) for filters in answered.values() for text in filters)
    return _weight(told) + sum(map(_size, topics.values())) + texts_answered


def _weight(told: dict[str, tuple[list[Told], list[Told]]]) -> int:
    return sum(Routes(advertisements, subscriptions).weight() for advertisements, subscriptions in told.values())
