"""A stand-in learns what the broker knew whose place it has: from that broker's neighbours, and from nobody else.

It asks each neighbour for advertisements (D0-B3), tells the others what it hears, and what is wanted of that goes back
the way the advertisement came. It knows everything when each neighbour has said `last`, and has `answered` every
advertisement that it was told: sets of what is pending, and no counters, so that an advertisement that is new meanwhile
is waited for like any other (D0-B7, D0-B7.1). Then it says so, and makes the next map (D0-A21).

What it is told by `Routes` meanwhile is news, and goes on as news does (D0-B6). A neighbour that says nothing more for
`patience` is left out, and reported (D0-B7.4): it tells everything when it is back, as any neighbour does. A link that
was lost is asked again from the beginning, which does no harm (D0-B4.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.model import Filter
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.messages import Forward, Routes, Told, read_events
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.network_map import Learn, done
from holdfast.protocols.routing.notices import (
    FeedsRecovered,
    MapChanged,
    NeighbourAccepted,
    NeighbourUnlinked,
    RoutesHeard,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import LOCAL
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.tellings import texts
from holdfast.schemes.tree.mapping import Mapping
from holdfast.schemes.tree.standin.messages import (
    StandInAdvertised,
    StandInDone,
    StandInForward,
    StandInPreferred,
    StandInRequest,
    StandInSubscribed,
)
from holdfast.schemes.tree.standin.missed import Missed
from holdfast.schemes.tree.standin.pieces import in_pieces
from holdfast.schemes.tree.standin.preferences import Preferences

BROKERS: Final = frozenset({Role.BROKER})


class Learning(Part):
    """Behind `Neighbours`: what it says about tables leaves before what they tell at the end of the turn."""

    name: ClassVar[str] = "learning"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {StandInForward: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (
        FeedsRecovered,
        MapChanged,
        NeighbourAccepted,
        NeighbourUnlinked,
        RoutesHeard,
    )
    due = False

    def __init__(
        self,
        settings: RoutingSettings,
        roster: Roster,
        mapping: Mapping,
        neighbours: Neighbours,
        forwarding: Forwarding,
        answers: Answers | None,
    ) -> None:
        self._settings = settings.stand_ins
        self._roster = roster
        self._mapping = mapping
        self._neighbours = neighbours
        self._router = neighbours.router
        self._forwarding = forwarding
        self._answers = answers
        self.missed = Missed(settings.covering)
        self._came: dict[str, dict[str, Filter]] = {}  # neighbour → subscriptions that have come from it in this turn
        self._named: dict[str, None] = {}  # subscriptions that have come in this turn, also as news
        # What a neighbour had told before it was asked, and has not told since.
        self._unnamed: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        self._number = 0  # of the map whose step this is; 0: nothing is to be learned
        self._asked: dict[str, None] = {}  # neighbours that have not said `last`: PendingLastAdvs
        # Advertisements that neighbours have not answered → the tickets under which they were told: PendingLastSubs.
        self._pending: dict[tuple[str, str], int] = {}
        self._tickets = 0
        # Neighbours where events wait → what they have named, and its order (D0-F2).
        self._preferred: dict[str, tuple[StandInPreferred, Preferences]] = {}
        self._left_out: dict[str, None] = {}
        self._learned_total = 0

    @property
    def is_learning(self) -> bool:
        return self._number > 0

    def is_told(self, peer: str, number: int) -> bool:
        """Whether what a neighbour says under the map of that number is for the stand-in that this broker is."""
        return 0 < self._number == number and peer in self._router.neighbours

    # --------------------------------------------------------------------------------------------- beginning, ending
    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        self._look_at_map(out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._look_at_map(out)

    def _look_at_map(self, out: Outbox) -> None:
        match self._roster.map.step:
            case Learn(broker, faulty) if broker == self._roster.name:
                if self._number == self._roster.map.number:
                    return
                self._number = self._roster.map.number
                self._asked = dict.fromkeys(self._roster.near)
                self._pending, self._left_out = {}, {}
                for peer in self._asked:
                    self._neighbours.keep_quiet(peer)
                out.report("stand-in-learns", Level.INFO, faulty=faulty, neighbours=list(self._asked))
                out.set_timer((self.name, "patience"), self._settings.patience)
                self._look(out)
            case _:
                self._stop(out)

    def _stop(self, out: Outbox) -> None:
        if not self._number:
            return
        self._number = 0
        out.cancel_timer((self.name, "patience"))
        self.missed.clear()
        self._asked, self._pending, self._came, self._unnamed, self._preferred = {}, {}, {}, {}, {}
        self._named = {}

    def _look(self, out: Outbox) -> None:
        """Whether everything is known."""
        if not self._number or self._asked or self._pending:
            return
        self._serve_missed(self.missed.awaited())  # what is known last, too, before what is kept is given up
        network, near = self._roster.map, self._roster.near
        for peer in near:
            if peer not in self._left_out:
                self._forget_unnamed(peer, out)
                self._neighbours.heard.knows_all(peer, out)
                if self._neighbours.teller.speaks_to(peer):
                    out.send(peer, StandInDone(self._number), after=self._neighbours.teller.after)
        for peer in self._left_out:
            self._neighbours.speak_up(peer, out)  # it is told everything when it is there
        out.report("stand-in-done", Level.INFO, neighbours=list(near), left_out=list(self._left_out))
        self._learned_total += 1
        self._stop(out)
        self._mapping.make(done(network), out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if not self._number:
            return
        silent = dict.fromkeys([*self._asked, *(peer for _, peer in self._pending)])
        for peer in silent:
            out.report("stand-in-without", Level.WARNING, neighbour=peer)
            self._left_out[peer] = None
            self._forget(peer)
        self._look(out)

    def _forget_unnamed(self, peer: str, out: Outbox) -> None:
        """What a neighbour has not told again it has taken back while its link was down."""
        advertised, subscribed = self._unnamed.pop(peer, ({}, {}))
        if advertised or subscribed:
            gone = Routes(unadvertised=list(advertised), unsubscribed=list(subscribed))
            self._neighbours.heard.hear(peer, gone, out)

    def _has_named(self, peer: str, advertisements: Iterable[Told], subscriptions: Iterable[Told]) -> None:
        for left, named in zip(self._unnamed.get(peer, ()), (advertisements, subscriptions), strict=False):
            for entry, _ in named:
                left.pop(entry, None)
        if self.missed:
            self._named.update((entry, None) for entry, _ in subscriptions)
            self.due = True

    def on_routes_heard(self, heard: RoutesHeard, out: Outbox) -> None:
        """News, of which something may have been known before."""
        self._has_named(heard.peer, heard.routes.advertisements, heard.routes.subscriptions)

    def _forget(self, peer: str) -> None:
        self._asked.pop(peer, None)
        for key in [key for key in self._pending if key[1] == peer]:
            del self._pending[key]

    # --------------------------------------------------------------------------------------------------------- links
    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        peer = accepted.peer
        if not self._number or peer not in self._router.neighbours:
            return
        self._left_out.pop(peer, None)
        self._asked[peer] = None
        tables = (self._router.advertisements.by_source[peer], self._router.subscriptions.by_source[peer])
        self._unnamed[peer] = (dict.fromkeys(tables[0]), dict.fromkeys(tables[1]))
        out.set_timer((self.name, "patience"), self._settings.patience)
        out.report("stand-in-asks", Level.DEBUG, neighbour=peer)
        out.send(peer, StandInRequest(self._number), after=self._neighbours.teller.after)
        self._neighbours.teller.begin(peer)
        self._neighbours.teller.take(peer, out)  # it is all in the tables, and told from there
        for source, (preferred, _) in self._preferred.items():
            if source != peer:
                out.send(peer, preferred, after=self._neighbours.teller.after)
        self._tell_of(peer, self._router.advertisement_outlets[peer].told(), out)
        # What is known from before it learned; and on a link before this one it may not have heard what it was told.
        self._tell_wanted(peer, self._router.subscription_outlets[peer].told(), out)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        peer = unlinked.peer
        if not self._number or peer not in self._router.neighbours:
            return
        if peer not in self._left_out:
            self._forget(peer)
            self._asked[peer] = None
        self._neighbours.keep_quiet(peer)

    # ------------------------------------------------------------------------------------------------------ learning
    def hear_preferred(self, peer: str, message: StandInPreferred, out: Outbox) -> None:
        """To the others, before they are told of what this neighbour is about to advertise (D0-F2)."""
        preferences = Preferences()
        preferences.hear(message.subscriptions, lambda entry: True)
        self._preferred[peer] = (message, preferences)
        for other in self._router.neighbours:
            if other != peer and self._neighbours.teller.speaks_to(other):
                out.send(other, message, after=self._neighbours.teller.after)

    def hear_advertised(self, peer: str, message: StandInAdvertised, out: Outbox) -> None:
        """D0-B3, on adv from n: in the table, and to the others. What they want of it that is known already goes to the
        neighbour with it: nobody says it again (D0-B3.2)."""
        self._neighbours.teller.tell_changes(out)  # what is news in this turn
        self._neighbours.heard.hear(peer, Routes(advertisements=message.advertisements), out)
        self._has_named(peer, message.advertisements, ())
        self._spread(peer, out)
        if message.last:
            self._asked.pop(peer, None)
        self._look(out)

    def hear_subscribed(self, peer: str, message: StandInSubscribed, out: Outbox) -> None:
        """D0-B3, on sub from n: in the table, and to where what it matches is advertised, once to each, never back
        (D0-B3.1)."""
        self._neighbours.teller.tell_changes(out)
        self._neighbours.heard.hear(peer, Routes(subscriptions=message.subscriptions), out)
        self._has_named(peer, (), message.subscriptions)
        table = self._router.subscriptions.by_source[peer]
        self._came.setdefault(peer, {}).update({entry: table[entry] for entry, _ in message.subscriptions})
        self.due = True
        self._spread(peer, out)
        for entry in message.answered:
            ticket = self._pending.pop((entry, peer), 0)
            if ticket and self._answers is not None:
                self._answers.answered(self._router, peer, ticket)
        if message.answered:
            self._neighbours.heard.look_at_answers(peer, out)
        self._look(out)

    def _spread(self, source: str, out: Outbox) -> None:
        """Tells the others what has just come, as a part of this conversation; and the source what is wanted of it."""
        out.set_timer((self.name, "patience"), self._settings.patience)
        for peer in self._router.neighbours:
            if not self._neighbours.teller.speaks_to(peer):
                continue  # it is told when it is there
            advertised, subscribed = self._neighbours.teller.take(peer, out)
            self._tell_of(peer, dict(advertised.told), out)
            self._tell_wanted(peer, subscribed.told, out)

    def _tell_wanted(self, peer: str, wanted: Fields[str, Filter], out: Outbox) -> None:
        if peer in self._preferred:
            wanted = self._preferred[peer][1].in_order(wanted)
        for piece in in_pieces(texts(wanted)) if wanted else ():
            out.send(peer, StandInSubscribed(self._number, piece), after=self._neighbours.teller.after)

    def _tell_of(self, peer: str, advertised: Fields[str, object], out: Outbox) -> None:
        """Advertisements from the other sides, each of which the neighbour is to answer."""
        if not advertised:
            return
        for entry in advertised:
            self._tickets += 1
            self._pending[entry, peer] = -self._tickets  # below those of questions that others wait for
            if self._answers is not None:
                self._answers.ask(peer, -self._tickets, [entry])
        told = [(entry, str(filter)) for entry, filter in advertised.items()]
        for piece in in_pieces(told):
            out.send(peer, StandInAdvertised(self._number, piece), after=self._neighbours.teller.after)

    # -------------------------------------------------------------------------------------------------------- events
    def on_stand_in_forward(self, peer: str, message: StandInForward, out: Outbox) -> None:
        """D0-B12, on pub from n: to all that are known to want it; kept for the others."""
        batch = read_events(Forward(message.first, message.events), "StandInForward")
        if len(message.wanted) != len(batch):
            raise ProtocolError(f"in StandInForward, {len(message.wanted)} lists belong to {len(batch)} events")
        self._forwarding.on_forward(peer, Forward(message.first, message.events), out)
        if self._number and peer in self._router.neighbours and not batch.doubtful:
            sent = self._router.match(peer, batch)
            known = [table for source, table in self._router.subscriptions.by_source.items() if source != peer]
            unknown = [
                [entry for entry in entries if not any(entry in table for table in known)] for entries in message.wanted
            ]
            self.missed.passed(peer, batch, sent, unknown)
            self.due = len(self.missed) > 0

    def finish(self, out: Outbox) -> None:
        named, self._named = self._named, {}
        self._serve_missed(named)
        self.due = False

    def _serve_missed(self, entries: Iterable[str]) -> None:
        """Events that these subscriptions were late for follow them (D0-B12), whichever way those came."""
        for entry in entries:
            for peer, table in self._router.subscriptions.by_source.items():
                for event in self.missed.take(entry, peer) if entry in table and peer != LOCAL else ():
                    self._forwarding.feeds[peer].put(event)
                    self._forwarding.look()
        came, self._came = self._came, {}
        for peer, filters in came.items():
            for event in self.missed.matching(filters, peer) if peer in self._forwarding.feeds else ():
                self._forwarding.feeds[peer].put(event)
                self._forwarding.look()

    # -------------------------------------------------------------------------------------------------------- people
    def waits_for(self) -> list[str]:
        return list(dict.fromkeys([*self._asked, *(peer for _, peer in self._pending)]))

    def measure(self) -> dict[str, int]:
        return {
            "stand_in_events_kept": len(self.missed),
            "stand_in_awaited": len(self._asked) + len(self._pending),
            "stand_in_learned_total": self._learned_total,
        }
