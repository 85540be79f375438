"""A neighbour of a broker that was replaced: what it tells the stand-in, and what becomes of events meanwhile.

When it hears of the map with the stand-in in the place of the other, all that was beyond that one is beyond the
stand-in, in one stroke: its tables are rewritten, and what waited for the one waits for the other, before anything
newer (D0-B8, D0-B8.1; `Moving` does that for every neighbour that is lost). Then the stand-in asks. It is told all that
is advertised here but for what comes from itself, since that would go in a circle (D0-B4, D0-B4.1); of each
advertisement that it tells in turn, what is wanted here (D0-B9). When it is done, what it has not named is what only
the other's own clients advertised or wanted, and goes.

Events go on (D0-A33)

- `basic`: when the stand-in has heard what is advertised: it passes them on as far as it knows by then (D0-B5);
- `synch`: when it is done (D0-B10);
- `increm`: each when one of the subscriptions that want it has come from there (D0-B11). In which order these had best
  come, it is told first, if that is asked for (D0-F2).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.model import Filter
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.messages import Routes, Told
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.network_map import Learn, StandInProtocol
from holdfast.protocols.routing.notices import FeedsRecovered, MapChanged, NeighbourUnlinked, RoutesHeard
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import StandInSettings
from holdfast.protocols.routing.tellings import texts
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.messages import (
    StandInAdvertised,
    StandInDone,
    StandInPreferred,
    StandInRequest,
    StandInSubscribed,
)
from holdfast.schemes.tree.standin.pieces import in_pieces
from holdfast.schemes.tree.standin.preferences import Preferences, check, that_fit
from holdfast.schemes.tree.standin.relieving import Relieving
from holdfast.schemes.tree.standin.sides import Apart, InPlace, Side
from holdfast.schemes.tree.standin.wait_ready import WaitReady

BROKERS: Final = frozenset({Role.BROKER})


class _Pupil:
    """The stand-in, as its neighbour knows it while it learns."""

    __slots__ = ("advertised", "name", "number", "preferences", "protocol", "queue", "sent", "side", "subscribed")

    def __init__(
        self,
        number: int,
        name: str,
        protocol: StandInProtocol,
        side: Side,
        advertised: Iterable[str],
        subscribed: Iterable[str],
        queue: WaitReady | None,
    ) -> None:
        self.number = number
        self.name = name
        self.protocol = protocol
        self.side = side
        # What was beyond the other, and the stand-in has not named yet.
        self.advertised = dict.fromkeys(advertised)
        self.subscribed = dict.fromkeys(subscribed)
        self.sent: dict[str, None] = {}  # subscriptions that it was told
        self.preferences = Preferences()  # that it has passed on
        self.queue = queue

    def has_named(self, advertisements: Iterable[Told], subscriptions: Iterable[Told]) -> None:
        for left, named in ((self.advertised, advertisements), (self.subscribed, subscriptions)):
            for entry, _ in named:
                left.pop(entry, None)


class Teaching(Part):
    """Behind `Moving` and `Neighbours`; hands on to `Learning` what a stand-in hears."""

    name: ClassVar[str] = "teaching"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {
        StandInRequest: BROKERS,
        StandInPreferred: BROKERS,
        StandInAdvertised: BROKERS,
        StandInSubscribed: BROKERS,
        StandInDone: BROKERS,
    }
    notices: ClassVar[tuple[type[Notice], ...]] = (FeedsRecovered, MapChanged, NeighbourUnlinked, RoutesHeard)
    due = False

    def __init__(
        self,
        settings: StandInSettings,
        roster: Roster,
        acquaintances: Acquaintances,
        neighbours: Neighbours,
        forwarding: Forwarding,
        learning: Learning,
        relieving: Relieving,
    ) -> None:
        self._order = settings.order
        self._roster = roster
        self._acquaintances = acquaintances
        self._neighbours = neighbours
        self._router = neighbours.router
        self._forwarding = forwarding
        self._learning = learning
        self._relieving = relieving
        self._pupil: _Pupil | None = None
        self._peaks = (0, 0)  # of the last wait-ready queue: events that waited, places in it

    # --------------------------------------------------------------------------------------------- beginning, ending
    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        self._look_at_map(out)
        pupil = self._pupil
        if pupil is not None and pupil.queue is None and pupil.name in self._router.neighbours:
            # All that the disk has for it may have been sent before; but it goes behind what is advertised.
            self._forwarding.stay_suspended(pupil.name)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._look_at_map(out)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        """On its next link the stand-in asks again. Told everything there as any neighbour is, it would take for news
        what the others know already, and what those want of it would never be said."""
        pupil = self._pupil
        if pupil is not None and pupil.name == unlinked.peer and pupil.name in self._router.neighbours:
            self._neighbours.keep_quiet(pupil.name)

    def _look_at_map(self, out: Outbox) -> None:
        number, pupil = self._roster.map.number, self._pupil
        match self._roster.map.step:
            case Learn(broker, _, protocol) if broker in self._router.neighbours or broker in self._relieving.reliefs:
                if pupil is None or pupil.number != number:
                    self._end(out, False)
                    self._begin(number, broker, protocol)
            case _:
                self._end(out, False)

    def _begin(self, number: int, peer: str, protocol: StandInProtocol) -> None:
        relief, router = self._relieving.reliefs.get(peer), self._router
        queue = None
        if protocol is StandInProtocol.INCREM:
            queue = WaitReady(router.targets, peer if relief is None else relief.side)
            self._forwarding.feeds[peer].use(queue)
            self._peaks = (0, 0)
        if relief is not None:
            self._pupil = _Pupil(number, peer, protocol, Apart(self._roster, relief), (), (), queue)
            return
        if queue is None:
            self._forwarding.suspend(peer)
        advertised, subscribed = router.advertisements.by_source[peer], router.subscriptions.by_source[peer]
        side = InPlace(self._neighbours, peer)
        self._pupil = _Pupil(number, peer, protocol, side, advertised, subscribed, queue)
        self._neighbours.keep_quiet(peer)

    def _end(self, out: Outbox, is_done: bool) -> None:
        """Nothing that is special stays (D0-C17). A stand-in that goes on without having heard us out is told anew."""
        pupil, self._pupil = self._pupil, None
        if pupil is None:
            return
        if pupil.queue is not None:
            self._peaks = (pupil.queue.waiting_peak, pupil.queue.indexed_peak)
        if pupil.queue is not None and pupil.name in self._forwarding.feeds:
            self._forwarding.feeds[pupil.name].use(None)
            self._forwarding.look()
        if pupil.name in self._router.neighbours:
            self._forwarding.go_on(pupil.name, out)
            if not is_done:
                self._neighbours.keep_quiet(pupil.name)
            self._neighbours.speak_up(pupil.name, out)

    def _hears(self, peer: str, number: int) -> _Pupil | None:
        """The stand-in that says something, if that is of the map that counts."""
        if not self._acquaintances.hears(peer, "of tables is spoken behind an introduction"):
            return None
        pupil = self._pupil
        return pupil if pupil is not None and (pupil.name, pupil.number) == (peer, number) else None

    # ------------------------------------------------------------------------------------------------------- answers
    def on_stand_in_request(self, peer: str, request: StandInRequest, out: Outbox) -> None:
        pupil = self._hears(peer, request.number)
        if pupil is None:
            return
        number, after = request.number, self._neighbours.teller.after
        out.report("stand-in-asked", Level.DEBUG, stand_in=peer)
        pupil.sent.clear()
        pupil.side.begin(out)
        if not self._router.is_advertised:
            self._tell_subscriptions(pupil, pupil.side.wanted(), [], out)
        named = [] if pupil.queue is None else that_fit(pupil.queue.preferred(self._order))
        if named:
            out.send(peer, StandInPreferred(number, named), after=after)
        pieces = list(in_pieces(texts(pupil.side.advertised())))
        for place, piece in enumerate(pieces, 1):
            out.send(peer, StandInAdvertised(number, piece, last=place == len(pieces)), after=after)
        if peer in self._relieving.reliefs:
            self._relieving.requested(peer, pupil.protocol)
        elif pupil.protocol is StandInProtocol.BASIC:
            self._forwarding.go_on(peer, out)

    def on_stand_in_preferred(self, peer: str, message: StandInPreferred, out: Outbox) -> None:
        check(message)
        if self._learning.is_told(peer, message.number):
            self._learning.hear_preferred(peer, message, out)
            return
        pupil = self._hears(peer, message.number)
        if pupil is not None:
            tables = list(self._router.subscriptions.by_source.values())
            pupil.preferences.hear(message.subscriptions, lambda entry: any(entry in table for table in tables))

    def on_stand_in_advertised(self, peer: str, message: StandInAdvertised, out: Outbox) -> None:
        if self._learning.is_told(peer, message.number):
            self._learning.hear_advertised(peer, message, out)
            return
        pupil = self._hears(peer, message.number)
        if pupil is None:
            return
        self._neighbours.teller.tell_changes(out)  # what is news in this turn
        pupil.has_named(message.advertisements, ())
        known = pupil.side.hear_advertised(message.advertisements, out)
        pulled = pupil.side.take_pulled(out)
        wanted = {entry: filter for entry, filter in pulled.items() if entry not in pupil.sent}
        wanted |= self._wanted_under(pupil, known.values())
        self._tell_subscriptions(pupil, wanted, [entry for entry, _ in message.advertisements], out)

    def _wanted_under(self, pupil: _Pupil, advertised: Iterable[Filter]) -> dict[str, Filter]:
        """What is wanted here of what is advertised beyond the stand-in, and it has not heard of. Who was there before
        it had."""
        all_wanted, side = pupil.side.wanted(), self._roster.side(pupil.name)
        return {
            entry: all_wanted[entry]
            for filter in advertised
            for entry, _ in self._router.intersecting_beside(side, filter)
            if entry in all_wanted and entry not in pupil.sent
        }

    def _tell_subscriptions(self, pupil: _Pupil, wanted: Fields[str, object], answered: list[str], out: Outbox) -> None:
        """What is wanted here that the stand-in has not heard of, and which advertisements that answers (D0-B9)."""
        pupil.sent.update(dict.fromkeys(wanted))
        told: list[Told] = [(entry, str(filter)) for entry, filter in pupil.preferences.in_order(wanted).items()]
        pieces = list(in_pieces(told))
        for place, piece in enumerate(pieces, 1):
            said = StandInSubscribed(pupil.number, piece, answered if place == len(pieces) else [])
            out.send(pupil.name, said, after=self._neighbours.teller.after)

    def on_stand_in_subscribed(self, peer: str, message: StandInSubscribed, out: Outbox) -> None:
        if self._learning.is_told(peer, message.number):
            self._learning.hear_subscribed(peer, message, out)
            return
        pupil = self._hears(peer, message.number)
        if pupil is None:
            return
        pupil.has_named((), message.subscriptions)
        pupil.side.hear_subscribed(message.subscriptions, out)
        if pupil.queue is not None:
            pupil.queue.arrived([entry for entry, _ in message.subscriptions])
            self._forwarding.look()

    def on_routes_heard(self, heard: RoutesHeard, out: Outbox) -> None:
        """News, of which something may have been known before: what is wanted under it was told to the broker whose
        place the stand-in has, and not to this one."""
        pupil, told = self._pupil, heard.routes
        if pupil is None or heard.peer != pupil.name:
            return
        pupil.has_named(told.advertisements, told.subscriptions)
        if pupil.queue is not None and told.subscriptions:
            pupil.queue.arrived([entry for entry, _ in told.subscriptions])
            self._forwarding.look()
        if wanted := self._wanted_under(pupil, pupil.side.known(told.advertisements).values()):
            self._tell_subscriptions(pupil, wanted, [], out)

    def on_stand_in_done(self, peer: str, done: StandInDone, out: Outbox) -> None:
        pupil = self._hears(peer, done.number)
        if pupil is None:
            return
        unnamed = (list(pupil.advertised), list(pupil.subscribed))
        out.report("stand-in-knows", Level.INFO, stand_in=peer, unnamed=sum(map(len, unnamed)))
        if any(unnamed):
            self._neighbours.heard.hear(peer, Routes(unadvertised=unnamed[0], unsubscribed=unnamed[1]), out)
        self._end(out, True)
        self._relieving.taught(peer, out)

    # -------------------------------------------------------------------------------------------------------- people
    def measure(self) -> dict[str, int]:
        queue = None if self._pupil is None else self._pupil.queue
        return {
            "stand_in_events_waiting": 0 if queue is None else len(queue),
            "stand_in_events_indexed": 0 if queue is None else queue.indexed,
            "stand_in_events_waiting_peak": self._peaks[0] if queue is None else queue.waiting_peak,
            "stand_in_events_indexed_peak": self._peaks[1] if queue is None else queue.indexed_peak,
        }
