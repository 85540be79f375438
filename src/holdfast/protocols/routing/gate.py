"""Which publications are taken in now, and which wait for the network.

A publisher that has not said what it will publish advertises each topic when it first uses it; one that has, advertises
what it said. Either way those who want it are far away, and what is published before the news has reached them would
miss them: the publication waits until the network has settled, or for as long as the settings allow. It waits, too,
while a broker that was restarted does not know its tables yet, and while the way out of this broker is congested.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final, Protocol

from holdfast.errors import FilterError
from holdfast.kernel.inputs import LinkDown, Started, TimerKey
from holdfast.kernel.node import require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.overlay import PublicationReleased
from holdfast.protocols.routing.local import LocalInterests
from holdfast.protocols.routing.notices import (
    BecameReady,
    BecomingReady,
    RoomMade,
    TicketsSettled,
    TopicsRecovered,
)
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.table_store import TableStore
from holdfast.protocols.sessions.messages import Publish

TOPICS_MAX: Final = 1_000  # that are advertised for one client; one that uses more is taken to publish anything
# Advertisements of topics outlive their clients for a while: the next one that publishes there, perhaps from the same
# shell, finds the ways made, also while a broker on them is down.
LINGER: Final = 600 * SECOND
LINGERING_MAX: Final = 10_000  # topics; then the oldest go
HELD_BYTES_MAX: Final = 8 * 1024 * 1024  # of one client; what is not held comes again


class _Held:
    """Publications that wait, of a client's session, over one link."""

    __slots__ = ("bytes", "epoch", "messages", "since")

    def __init__(self, epoch: int, now: int) -> None:
        self.epoch = epoch
        self.messages: deque[Publish] = deque()
        self.bytes = 0
        self.since = now

    def put(self, *messages: Publish) -> None:
        self.messages.extend(messages)
        self.bytes += sum([len(message.events) for message in messages])

    def wait_anew(self, now: int) -> None:
        self.since = now


class Readiness(Protocol):
    is_ready: bool  # the tables are known, or were waited for long enough


class WayOut(Protocol):
    def is_congested(self) -> bool:
        """Whether publishers have to wait, since the way out of this broker is full."""
        ...


class Gate(Part):
    """Before `Neighbours`, which tells what is advertised here."""

    name: ClassVar[str] = "gate"
    notices: ClassVar[tuple[type[Notice], ...]] = (
        TicketsSettled,
        BecomingReady,
        BecameReady,
        RoomMade,
        TopicsRecovered,
    )

    def __init__(
        self,
        settings: RoutingSettings,
        home: Home,
        local: LocalInterests,
        table: TableStore,
        readiness: Readiness,
        way_out: WayOut,
    ) -> None:
        self._settings = settings
        self._home = home
        self._local = local
        self._table = table if settings.reliability.buffers else None
        # Client → topic or ANYTHING → the entry of its advertisement.
        self._advertised: dict[str, dict[str | None, str]] = {}
        self._tickets: dict[int, str] = {}  # of advertisements that have not settled → client
        # Topic → the entry of an advertisement without a client, and until when it stays; the first to end first.
        self._lingering: dict[str | None, tuple[str, int]] = {}
        self._recovered: list[str] = []  # advertisements of what was stored when the broker started
        self._held: dict[str, _Held] = {}
        self._readiness = readiness
        self._way_out = way_out

    def on_started(self, started: Started, out: Outbox) -> None:
        """Advertises what was advertised before (D1-B4), for the clients that are still known, and else for a while:
        who forgot it would make neighbours forget who wants it."""
        for entry, advertised in list(self._table.topics.items()) if self._table is not None else ():
            client, topic = advertised.client, advertised.topic
            filter = None if topic is None else filter_of(topic)
            self._local.advertise(Filter("") if filter is None else filter, entry)
            if self._home.is_known(client):
                self._advertised.setdefault(client, {})[topic] = entry
            else:
                self._linger({topic: entry}, out)

    def interests_changed(self, out: Outbox) -> None:
        self._local.update()
        self.due = True

    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        """Whether a publication may be taken in. If not, it is held, and told of when it may."""
        client = session.client
        held = self._held.get(client)
        if held is None:
            self._advertise_topics(session, batch, out)
            if not self._must_wait(client):
                return True
            held = self._held[client] = _Held(session.epoch, out.now)
            out.set_timer((self.name, "patience"), self._settings.settle)
        if held.bytes + len(message.events) <= HELD_BYTES_MAX or not held.messages:
            held.put(message)
        return False

    def _must_wait(self, client: str) -> bool:
        self._take_tickets()  # what the client has just advertised, perhaps in this turn, is waited for
        return not self._readiness.is_ready or client in self._tickets.values() or self._way_out.is_congested()

    def _take_tickets(self) -> None:
        self._tickets |= self._local.take_asked()

    def _advertise_topics(self, session: Session, batch: EventBatch, out: Outbox) -> None:
        if session.advertised is not None or not self._settings.advertisements:
            return
        advertised = self._advertised.setdefault(session.client, {})
        if ANYTHING in advertised:
            return
        for topic in batch.topics():
            if topic in advertised:
                continue
            filter = filter_of(topic)
            if filter is None or len(advertised) >= TOPICS_MAX:
                self._advertise(session.client, ANYTHING, Filter(""), out)
                return
            self._advertise(session.client, topic, filter, out)

    def _advertise(self, client: str, topic: str | None, filter: Filter, out: Outbox) -> None:
        """Takes over an advertisement that has lost its client, or makes one and waits for the network to settle."""
        if topic in self._lingering:
            entry = self._lingering.pop(topic)[0]
        else:
            entry = self._local.advertise(filter)
            self._tickets[self._local.ask()] = client
        self._advertised[client][topic] = entry
        if self._table is not None:
            self._table.advertised(entry, client, topic, out)

    def _unadvertise(self, entry: str, out: Outbox) -> None:
        self._local.unadvertise(entry)
        if self._table is not None:
            self._table.unadvertised(entry, out)

    def on_topics_recovered(self, recovered: TopicsRecovered, out: Outbox) -> None:
        """What the broker has stored was published under advertisements that it may have forgotten. They are made
        again, for until it is sent (D1-B4): without, those who want it would be forgotten before it gets to them."""
        topics = recovered.topics
        filters = [filter_of(topic) for topic in topics] if len(topics) <= TOPICS_MAX else [None]
        for filter in filters:
            self._recovered.append(self._local.advertise(Filter("") if filter is None else filter))
        self.due = True

    # ---------------------------------------------------------------------------------------------------- releasing
    def on_tickets_settled(self, settled: TicketsSettled, out: Outbox) -> None:
        self._take_tickets()
        for ticket in settled.tickets:
            self._tickets.pop(ticket, None)
        self._release_soon(out)

    def on_became_ready(self, ready: BecameReady, out: Outbox) -> None:
        self._release_soon(out)

    def on_room_made(self, room: RoomMade, out: Outbox) -> None:
        self._release_soon(out)

    def on_becoming_ready(self, becoming: BecomingReady, out: Outbox) -> None:
        """The tables are about to be known, and neighbours to be told what is advertised here: those who wait for that
        wait for its answer, too."""
        for client, held in self._held.items():
            self._tickets[self._local.ask()] = client
            held.wait_anew(out.now)
            out.set_timer((self.name, "patience"), self._settings.settle)

    def _release_soon(self, out: Outbox) -> None:
        """Those who wait may not have to any more. Not at once: the turn may be journalled already."""
        if self._held:
            out.set_timer((self.name, "release"), 0)

    def _release(self, client: str, out: Outbox) -> None:
        if client not in self._held or self._must_wait(client):
            return
        held = self._held.pop(client)
        if self._home.session(client, held.epoch) is None:
            return  # the client has begun anew
        while held.messages:
            out.tell(PublicationReleased(client, held.messages.popleft()))
            again = self._held.get(client)
            if again is not None:  # the rest goes behind what waits again
                again.put(*held.messages)
                return

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        """What waited dies with its link: its client says again what it still wants, under the same numbers or in a
        session of its next life; and of what it has given up it does not want to hear."""
        self._held.pop(down.peer, None)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        """Lets those go on who need not wait; whoever has waited long enough for the network to settle need not."""
        if key[1] == "linger":
            self._end_lingering(out)
            return
        if key[1] == "release":
            for client in list(self._held):
                self._release(client, out)
            return
        soonest = 0
        for client, held in list(self._held.items()):
            left = held.since + self._settings.settle - out.now
            if left <= 0:
                self._tickets = {ticket: other for ticket, other in self._tickets.items() if other != client}
                self._release(client, out)
            else:
                soonest = min(soonest or left, left)
        if soonest:
            out.set_timer((self.name, "patience"), soonest)

    def finish(self, out: Outbox) -> None:
        self.due = False
        recovered, self._recovered = self._recovered, []
        for entry in recovered:
            self._local.unadvertise(entry)  # which waits until it is sent
        self._local.update()
        for client in self._local.take_left() if self._local.left else ():
            self._held.pop(client, None)
            self._tickets = {ticket: other for ticket, other in self._tickets.items() if other != client}
            self._linger(self._advertised.pop(client, {}), out)

    def _linger(self, advertised: dict[str | None, str], out: Outbox) -> None:
        for topic, entry in advertised.items():
            if topic is ANYTHING or topic in self._lingering:
                self._unadvertise(entry, out)
                continue
            if not self._lingering:
                out.set_timer((self.name, "linger"), LINGER)
            self._lingering[topic] = (entry, out.now + LINGER)
            if len(self._lingering) > LINGERING_MAX:
                oldest = next(iter(self._lingering))
                self._unadvertise(self._lingering.pop(oldest)[0], out)

    def _end_lingering(self, out: Outbox) -> None:
        for topic, (entry, until) in list(self._lingering.items()):
            if until > out.now:
                out.set_timer((self.name, "linger"), until - out.now)
                return
            del self._lingering[topic]
            self._unadvertise(entry, out)

    def check_invariants(self) -> None:
        unseen = self._recovered or self._local.left or self._home.interests.have_changed
        require(self.due or not unseen, "what clients want and advertise is looked at when it changes")

    def measure(self) -> dict[str, int]:
        topics = sum(map(len, self._advertised.values())) + len(self._lingering)
        return {"publishers_held": len(self._held), "topics_advertised": topics}


ANYTHING: Final = None  # stands for all topics


def filter_of(topic: str) -> Filter | None:
    """The filter of all events of a topic; of those without one, if it is empty. None if there is none: a topic may be
    longer than a filter."""
    quoted = topic.replace("'", "''")
    try:
        return Filter(f"topic = '{quoted}'" if topic else "topic IS NULL")
    except FilterError:
        return None
