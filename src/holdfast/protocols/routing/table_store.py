"""What neighbours told, on the disk: at the levels that buffer a broker may not forget it (D1-B4.1).

A broker that has lost its tables would find nobody to send an event to, acknowledge it, and lose it. So it keeps them,
and it knows of which neighbours it has a complete telling: what is meant for any other is kept until that has come.

It keeps, too, which topics it advertises for its own clients: neighbours that hear nothing of them any more take back
what they wanted, and what is published after the next failure would be for nobody. And which advertisements neighbours
have answered (`Answers`): of the others, everything is kept for them.
"""

from __future__ import annotations

from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.model import Filter
from holdfast.protocols.routing.answers import AnswerChange
from holdfast.protocols.routing.messages import (
    RECORD_FORMAT,
    AdvertisementsAnswered,
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


class TableStore:
    """Its records are what was told, in order; now and then a snapshot of the tables takes their place."""

    def __init__(self, router: Router) -> None:
        self.complete: dict[str, None] = {}  # neighbours that have told everything on their side
        self.topics: dict[str, TopicAdvertised] = {}  # entry → what is advertised under it for clients of our own
        self.answered: dict[str, dict[str, None]] = {}  # neighbour → filters of advertisements that it has answered
        self._bytes = 0
        self._snapshot_bytes = 0
        self._router = router

    def recover(self, streams: StoredStreams) -> None:
        """Brings the router to where the records end."""
        router = self._router
        for record in streams.get(STREAM, ()):
            if not isinstance(
                record, RoutesTold | TableState | TopicAdvertised | TopicUnadvertised | AdvertisementsAnswered
            ):
                broken("the routes on the disk are known records", record=type(record).__name__)
            require(record.format == RECORD_FORMAT, "the routes' format is known", format=record.format)
            match record:
                case TableState():
                    self.complete = dict.fromkeys(record.complete)
                    self.topics = {advertised.entry: advertised for advertised in record.topics}
                    self.answered = {peer: dict.fromkeys(filters) for peer, filters in record.answered.items()}
                    self._snapshot_bytes = self._size_of_all(record.told)
                    self._bytes = 0
                    for source, (advertisements, subscriptions) in record.told.items():
                        if source in router.neighbours:
                            router.replace(source, _parsed(advertisements), _parsed(subscriptions))
                case TopicAdvertised():
                    self.topics[record.entry] = record
                    self._bytes += _size(record)
                case TopicUnadvertised():
                    self.topics.pop(record.entry, None)
                    self._bytes += _size(record)
                case AdvertisementsAnswered():
                    self._answer(record)
                case RoutesTold():
                    if record.source in router.neighbours:
                        routes = record.routes
                        telling = Telling(_parsed(routes.advertisements), _parsed(routes.subscriptions))
                        apply_routes(router, record.source, routes, telling)
                        self._count(record.source, routes)

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
            self._answer(record)
        if changed:
            self._keep_short(out)

    def _answer(self, record: AdvertisementsAnswered) -> None:
        answered = self.answered.setdefault(record.peer, {})
        answered |= dict.fromkeys(record.filters)
        for text in record.taken_back:
            answered.pop(text, None)
        self._bytes += sum(map(len, (*record.filters, *record.taken_back)))

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
        out.snapshot(
            STREAM, TableState(told, list(self.complete), topics=list(self.topics.values()), answered=answered)
        )
        self._snapshot_bytes, self._bytes = self._size_of_all(told), 0

    def _size_of_all(self, told: dict[str, tuple[list[Told], list[Told]]]) -> int:
        answered = sum(len(text) for filters in self.answered.values() for text in filters)
        return _weight(told) + sum(map(_size, self.topics.values())) + answered


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


def _weight(told: dict[str, tuple[list[Told], list[Told]]]) -> int:
    return sum(Routes(advertisements, subscriptions).weight() for advertisements, subscriptions in told.values())
