"""The way of events from broker to broker.

An event goes to every neighbour on whose side someone wants it, once, never back to where it came from (D0-B1, D1-B2).
What comes from a neighbour is handed to the core if someone here wants it, and goes on.

Each neighbour has a feed, with numbers. It acknowledges what it has taken in, and so much and no more is under way. A
broker that has no room for what comes, since one of its own neighbours is slow, does not acknowledge it: so the
publisher's broker gets to know, and makes its publishers wait. In a tree that can't turn in a circle.

At the levels that buffer, what was taken in is in the store first (`EventStore`), and what is not acknowledged is sent
again, also after a crash (D1-B4). At the others it is lost with its link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import Durable, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.desks.home import Home
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.around import Around
from holdfast.protocols.routing.batches import FeedBatch, in_messages
from holdfast.protocols.routing.dividing import Divides, OneWay, Orders
from holdfast.protocols.routing.feed_changes import FeedChanges
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.hearing import Hearing
from holdfast.protocols.routing.links import BROKERS
from holdfast.protocols.routing.messages import AcknowledgeEvents, Forward, Introduction, checked_last, read_events
from holdfast.protocols.routing.notices import (
    Detoured,
    FeedsRecovered,
    NeighbourAccepted,
    NeighbourAnswered,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
    RoomMade,
    TopicsRecovered,
)
from holdfast.protocols.routing.progress import Progress
from holdfast.protocols.routing.room import Room
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.taken_in import TakenIn
from holdfast.protocols.routing.ways import Ways

# That wait for one neighbour: more of what came around is dropped, since it is stored elsewhere.
AROUND_BYTES_MAX: Final = 16 * 1024 * 1024


class Forwarding(Part):
    """Behind the sequencer, whose journal comes before the store."""

    name: ClassVar[str] = "forwarding"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Forward: BROKERS, AcknowledgeEvents: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (
        NeighbourConnected,
        NeighbourLinked,
        NeighbourAccepted,
        NeighbourUnlinked,
        NeighbourAnswered,
        Detoured,
    )

    def __init__(
        self,
        settings: RoutingSettings,
        roster: Roster,
        home: Home,
        router: Router,
        feeds: Feeds,
        acquaintances: Acquaintances,
        hearing: Hearing,
        ways: Ways,
        store: EventStore | None = None,
        divides: Divides | None = None,
        orders: Orders | None = None,
    ) -> None:
        self._divides: Divides = divides or OneWay()
        self._orders: Orders = orders or OneWay()
        self._settings = settings
        self._roster = roster
        self._home = home
        self._router = router
        self._acquaintances = acquaintances
        self._hearing = hearing
        self._store = store
        self._changes = FeedChanges(feeds, store)
        self._ways = ways
        self._feed_id = ""
        self.feeds = feeds
        self._introductions: dict[str, Introduction] = {}  # of all that are linked, neighbours in the tree or not
        self._open: dict[str, None] = {}  # those whose link can be used
        self._unaware: dict[str, None] = {}  # those that may have an older map, by which they are no neighbours
        self._held: dict[str, None] = {}  # those that first have to say what they want of what was kept for them
        self.ended: dict[str, str] = {}  # neighbours of before, whose last events are under way → who took their place
        self._taken = TakenIn()
        self.progress = Progress(feeds, self._taken)
        self._due: dict[str, None] = {}  # those that are to be told how far
        self.room = Room(settings, feeds, self._open, self.ended, store is not None)
        self._congested = False
        self.due = True  # something may have to be stored, sent or acknowledged
        self._ticking = False
        self._around = Around()
        # Of what waits for a neighbour that can't be reached, in case somebody takes its place (D0-A34).
        self._keeps_bytes = settings.stand_ins.kept
        self.forwarded_total = self.arrived_total = self.lost_total = self.expired_total = self.repeated_total = 0

    # ------------------------------------------------------------------------------------------------------- start
    def on_started(self, started: Started, out: Outbox) -> None:
        self._feed_id = started.log_id
        if self._store is not None:
            self._taken.recover(self._store.recover_into(self.feeds))
        out.tell(FeedsRecovered())  # before anything is routed
        if self._store is not None:
            recovered, topics = self._store.take_recovered()
            if recovered or not all(feed.is_idle for feed in self.feeds.values()):
                out.tell(TopicsRecovered(topics))  # before they are routed: it depends on what is advertised
            for output in recovered:
                self.entered(output, out)
            self.due = True
            self._keep_ticking(out)

    def on_neighbour_connected(self, connected: NeighbourConnected, out: Outbox) -> None:
        """Says how far the neighbour's feed is on our disk, not how far it is taken in: the neighbour forgets so much
        (D1-A11), and an introduction does not wait for the disk."""
        stored = self._taken.durably(connected.peer)
        known = self._roster.map
        near = connected.peer in self._roster.linked
        introduction = Introduction(self._settings.network_id, self._feed_id, *stored, known.number, known.digest, near)
        out.send(connected.peer, introduction, after=NOW)

    def on_durable(self, durable: Durable, out: Outbox) -> None:
        self._taken.become_durable(durable.token)

    # ------------------------------------------------------------------------------------------------------- links
    def on_neighbour_linked(self, linked: NeighbourLinked, out: Outbox) -> None:
        """A neighbour is there, and has said how far it has our feed."""
        self.due = True
        peer, introduction = linked.peer, linked.introduction
        self._introductions[peer] = introduction
        if (feed := self.feeds.get(peer)) is None:
            return
        if peer not in self._acquaintances.greeted:
            self._unaware[peer] = None
        if self._store is None:
            self._taken.begin_anew(peer)
        else:
            if not introduction.feed:
                raise ProtocolError(f"{peer} stores events at this level, and does not name its log of them")
            self._taken.meet(peer, introduction.feed)
            if introduction.stored_feed == self._feed_id:
                if introduction.stored >= feed.following:
                    raise ProtocolError(f"{peer} has stored {introduction.stored}, and there are {feed.following - 1}")
                feed.acknowledge(introduction.stored)
            feed.resume()
        if self._hearing.owes_answers(peer) and not feed.is_idle:
            # What was kept for it in case it is wanted would go through all of the network: it is asked first.
            self._held[peer] = None
            out.set_timer((self.name, "held", peer), self._settings.settle)
        else:
            self._open[peer] = None

    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        if self._unaware.pop(accepted.peer, accepted.peer) is None:
            self.due = True

    def on_neighbour_answered(self, answered: NeighbourAnswered, out: Outbox) -> None:
        """What a neighbour wants is known: what was kept for it in case it does may turn out to be for nobody. It gets
        what somebody waits for it to have, all the same."""
        peer = answered.peer
        if peer not in self._held:
            return
        feed = self.feeds[peer]
        kept: list[FeedBatch] = []
        for batch in feed.pending():
            if batch.first <= feed.promised:
                kept.append(batch)
                continue
            kept += batch.parts(self._router.match(LOCAL, batch.events).get(peer, ()))
        feed.replace(kept)
        self._let_go(peer, out)

    def _let_go(self, peer: str, out: Outbox) -> None:
        self.due = True
        del self._held[peer]
        out.cancel_timer((self.name, "held", peer))
        self._open[peer] = None

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        self.due = True
        peer = unlinked.peer
        self._introductions.pop(peer, None)
        self._open.pop(peer, None)
        self._unaware.pop(peer, None)
        self._held.pop(peer, None)
        self._due.pop(peer, None)
        if (feed := self.feeds.get(peer)) is None:
            return
        if self._store is not None:
            feed.rewind()
        elif self._keeps_bytes:
            self.lost_total += feed.lose_sent()
        else:
            self.lost_total += feed.clear()

    # ------------------------------------------------------------------------------------------------------ events
    def entered(self, entered: Entered, out: Outbox) -> None:
        """Events were published here."""
        self.due = True
        if out.tracing:
            out.note("accepted", node=self._settings.name, events=entered.batch.ids)
        self._route(LOCAL, entered.batch, out)
        if self._store is not None:
            self._store.entered(entered.number)

    def on_forward(self, peer: str, message: Forward, out: Outbox) -> None:
        problem = "events are forwarded by neighbours in the tree, behind an introduction"
        if not self._acquaintances.hears(peer, problem):
            return  # what it stores for us goes to whoever takes our place
        if not self._knows(peer):
            if peer in self._acquaintances.greeted:
                raise ProtocolError(problem)
            return  # by an older map, which it has, it is one: it does not hear that anything has come
        batch = read_events(message, "Forward")
        if not batch:
            raise ProtocolError("Forward has no events")
        if message.first == 0 and self._store is not None and self._settings.reliability.detours:
            self.arrive(peer, "", 0, batch, out)  # came around, and is stored elsewhere
            return
        feed, received = self._taken.of(peer)
        first, last = message.first, checked_last(message.first, len(batch))
        self._due[peer] = None
        self.due = True
        skipped = max(0, received + 1 - first)
        self.repeated_total += min(skipped, len(batch))
        if last <= received:
            return
        if peer not in self.feeds:
            raise ProtocolError(f"{peer} is no neighbour in the tree any more, and sends something new")
        self._taken.take(peer, last)
        if self._store is not None:
            self._store.received(peer, feed, last)
        batch = batch.behind(skipped)
        ordered = self._orders.came(peer, batch)
        if ordered is None:
            self.arrive(peer, feed, first + skipped, batch, out)
        for side, events in ordered or ():
            self.arrive(side, "", 0, events, out)

    def _knows(self, peer: str) -> bool:
        """Whether it is a neighbour in the tree; or was one, and may repeat what it sent then."""
        if peer in self.feeds:
            return True
        introduction = self._introductions.get(peer)
        return introduction is not None and self._taken.has_been_told(peer, introduction.feed)

    def arrive(self, source: str, feed: str, first: int, batch: EventBatch, out: Outbox) -> None:
        """Events from the side of a neighbour; without a number if `first` is 0."""
        self.due = True
        self.arrived_total += len(batch)
        sound, late = self._home.arrive(source, feed, first, batch, out)
        self.expired_total += late
        if sound and first == 0 and self._store is not None:
            self._pass_on(source, sound, out)
        elif sound:
            self._route(source, sound, out)

    def _pass_on(self, source: str, batch: EventBatch, out: Outbox) -> None:
        """Of what came around a failure, the copy that is stored for the tree is the one that is kept (D1-C5). This one
        is to be quick: it goes on as it came, without a number and without a place in the store. Were it stored, too,
        each broker behind would get two that nothing tells apart."""
        for peer, rows in self._router.match(self.ended.get(source, source), batch).items():
            chosen = batch.take(rows)
            if self._is_held_back(peer):
                continue  # what is stored comes later
            if not self._is_usable(peer):
                self._around.put(peer, chosen)
                continue
            for part in in_messages(chosen):
                if peer in out.queues and out.queues[peer].bytes > AROUND_BYTES_MAX:
                    break
                out.send(peer, Forward(0, part.encoded), Lane.USER, NOW)

    def _route(self, source: str, batch: EventBatch, out: Outbox) -> None:
        rows = self._divides.divide(batch, self._router.match(self.ended.get(source, source), batch))
        if self._store is not None:
            self._store.put(batch, rows)
        for peer, wanted in rows.items():
            chosen = batch.take(wanted)
            usable = self._is_usable(peer)
            if usable and self._around:
                self._bring_back(peer)
            keeps = self._store is None and not usable and self.feeds[peer].bytes < self._keeps_bytes
            if self._store is not None or usable or keeps:
                self.feeds[peer].put(chosen)
            if not usable and not keeps:
                self._around.put(peer, chosen)

    def _is_usable(self, peer: str) -> bool:
        return peer in self._open and self._ways.carries_events(peer)

    def _is_held_back(self, peer: str) -> bool:
        """Whether a neighbour is sent nothing new over its link: it may not know yet that it is our neighbour."""
        return peer in self._unaware or (peer in self.feeds and self.feeds[peer].is_suspended)

    def _bring_back(self, peer: str) -> None:
        """The link to a neighbour has become good in this turn. Where nothing is stored, what was to go around it goes
        over it, before anything newer."""
        for events in self._around.take(peer) if self._store is None else ():
            self.feeds[peer].put(events)

    def _go_around(self, peer: str, events: EventBatch, out: Outbox) -> None:
        """What is not stored for a neighbour, or not for it alone: the way around is not acknowledged (D1-B6)."""
        if self._store is not None and self._is_held_back(peer) and self._ways.carries_events(peer):
            return  # what is stored comes later
        for part in in_messages(events):
            found = self._ways.send_around(peer, Forward(0, part.encoded), out)
            if not found and self._store is None:
                self.lost_total += len(part)

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        """Events that came around a neighbour, or around the link to it."""
        message = detoured.message
        if not isinstance(message, Forward):
            return  # word of tables, which is not this part's affair
        if batch := read_events(message, "a detoured Forward"):
            self.arrive(detoured.source, "", 0, batch, out)

    def on_acknowledge_events(self, peer: str, message: AcknowledgeEvents, out: Outbox) -> None:
        feed = self.feeds.get(peer)
        if feed is None and (peer in self._roster.map.former or message.number < self.feeds.former.get(peer, 0)):
            return  # it was a neighbour when it said so
        if feed is None or message.number >= feed.following:
            raise ProtocolError(f"{message.number} is acknowledged, and was never sent")
        if feed.advance(message.number, out.now):
            self.due = True

    # ----------------------------------------------------------------------------------------------------- changes
    def add(self, peer: str, out: Outbox) -> None:
        """There is a new neighbour in the tree, to whom there may be a link already. In the turn in which the broker
        starts it gets what the disk has for it."""
        self._changes.add(peer)
        self.due = True
        if (introduction := self._introductions.get(peer)) is not None:
            if introduction.stored_feed == self._feed_id:
                self.feeds[peer].number_from(introduction.stored + 1)
            self.on_neighbour_linked(NeighbourLinked(peer, introduction), out)

    def keep(self, peer: str, out: Outbox) -> None:
        """There is a feed to it from now on, if there was none."""
        if peer not in self.feeds:
            self.add(peer, out)

    def end(self, peer: str, taker: str) -> None:
        """It is no neighbour to whom events go: what is in its feed is still sent, and what comes from it is taken in,
        as from the side of who has taken its place."""
        self.ended[peer] = taker

    def suspend(self, peer: str, through: int | None = None) -> None:
        """Until `go_on` a neighbour is sent nothing above a number of its feed; where none is said, nothing new."""
        self.feeds[peer].suspend(through)

    def look(self) -> None:
        """Someone else has put something into a feed, or let it leave."""
        self.due = True

    def stay_suspended(self, peer: str, through: int | None = None) -> None:
        """The same after a restart: of what is above a number of the feed nobody has heard; where none is said, of
        nothing that is in it."""
        feed = self.feeds[peer]
        feed.stay_suspended(feed.acknowledged if through is None else through)

    def go_on(self, peer: str, out: Outbox) -> None:
        self.ended.pop(peer, None)  # whose place it has again, if it was taken
        self.feeds[peer].go_on()
        self.due = True

    def reaches(self, peer: str) -> bool:
        """Whether the link to a broker can be used for events, if it is a neighbour or becomes one."""
        return peer in self._introductions and self._ways.carries_events(peer)

    def move(self, old: str, new: str, out: Outbox) -> int:
        """What was never sent to one neighbour goes to another; gives `sent_through` of the old one. Where events are
        stored, others may be told of it when this part's turn is finished, and not before."""
        self._move(old, new, False, out)
        return self.progress.sent_through(old)

    def move_all(self, old: str, new: str, out: Outbox) -> None:
        """The same with what was sent and not acknowledged, of a neighbour that is lost for good: it may come twice."""
        self._move(old, new, True, out)

    def copy_all(self, old: str, new: str) -> None:
        """All that is not acknowledged of one neighbour goes to another one, too; it stays where it is."""
        self._changes.copy(old, new)
        self.due = True

    def _move(self, old: str, new: str, all_of_it: bool, out: Outbox) -> None:
        self._changes.move(old, new, all_of_it)
        self.due = True
        for events in self._around.take(old) if self._store is None and self._is_usable(new) else ():
            self.feeds[new].put(events)
        self._around.redirect(old, new)

    def drop(self, peer: str, out: Outbox) -> None:
        """It is no neighbour in the tree any more. What waits for it is given up; what it sent is acknowledged."""
        self.ended.pop(peer, None)
        if (feed := self.feeds.find(peer)) is None:
            return
        self.expired_total += feed.expired
        self.lost_total += self._changes.drop(peer)
        self.due = True
        self._open.pop(peer, None)
        if self._held.pop(peer, peer) is None:
            out.cancel_timer((self.name, "held", peer))

    def forget_gone(self) -> None:
        self._changes.forget(self._taken, self._roster.remembers)  # who has left is never a neighbour again

    # -------------------------------------------------------------------------------------------------------- turns
    def finish(self, out: Outbox) -> None:
        self.due = False
        if self.feeds.aside:
            self.feeds.forget_aside()
            self.forget_gone()
        if self._store is not None and self._store.finish(self.feeds, out):
            self._taken.write(out.token)
        for peer in self._open if self._around else ():
            if self._is_usable(peer):
                self._bring_back(peer)
        for peer, events in self._around.take_all():
            self._go_around(peer, events, out)  # behind the store: what leaves is accepted
        after = NOW if self._store is None else LATEST
        for peer in self._open:
            feed = self.feeds[peer]
            if peer in self._unaware:
                continue  # it is told of the map first
            if self._store is not None and peer in self._hearing.lacking:
                self.due = True  # advertisements and subscriptions may be under way around its link
            elif feed.has_unsent and self._ways.sends(peer):
                for count, message in feed.leaving(out.wall, out.now, self._settings.window_bytes):
                    self.forwarded_total += count
                    out.send(peer, message, Lane.USER, after)
        self._keep_ticking(out)
        congested = self.room.is_congested()
        for peer in list(self._due):
            if not congested or self.room.is_left_beside(peer):
                del self._due[peer]
                out.send(peer, AcknowledgeEvents(self._taken.through(peer)), after=after)
        was_congested, self._congested = self._congested, congested
        if was_congested and not congested:
            out.tell(RoomMade())

    def _keep_ticking(self, out: Outbox) -> None:
        """While something is stored: it is to be sent again, or expires."""
        if not self._ticking and self._store is not None and not all(feed.is_idle for feed in self.feeds.values()):
            self._ticking = True
            out.set_timer((self.name, "retransmit"), self._settings.retransmit)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        """Sends again what was not acknowledged in time (D1-B4), and gives up what has expired."""
        if key[1] == "held":
            if key[2] in self._held:
                self._let_go(key[2], out)  # someone beyond it is slow; whoever gets what it does not want drops it
            return
        self._ticking, self.due = False, True
        for peer, feed in self.feeds.items():
            feed.drop_expired(out.wall)
            if peer in self._open:
                self.repeated_total += feed.repeat(out.now, self._settings.retransmit)

    def measure(self) -> dict[str, int]:
        return {
            "events_forwarded_total": self.forwarded_total,
            "events_arrived_total": self.arrived_total,
            "events_lost_total": self.lost_total,
            "events_expired_under_way_total": self.expired_total + sum(feed.expired for feed in self.feeds.values()),
            "events_retransmitted_total": self.repeated_total,
            "feeds_events": sum(len(feed) for feed in self.feeds.values()),
            "feeds_bytes": self.room.bytes_taken,
        }

    def check_invariants(self) -> None:
        for feed in self.feeds.values():
            feed.check_invariants()
            require(self._store is None or feed.is_numbered, "what is stored has numbers")
