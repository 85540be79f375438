"""A neighbour of a broker whose work a stand-in shares: the second way to that one's side (D0-B13).

Events for that side go by the broker or by the stand-in, as `Sharing` chooses. What comes from the stand-in comes from
the broker's side. The stand-in is told what the broker is told, and what it tells is kept apart (`Relief`).

With re-ordering, what comes by both ways is put in order (`Order`), which needs to know how far each of them is:
`Signals` says so. When the stand-in is to go, nothing more is given to it, and it is told when it may: when it has
taken in all that it was given, and nothing is held back that waits for what it still has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.dividing import Orders
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.local import broker_of
from holdfast.protocols.routing.messages import Settled
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.network_map import Beside, Learn, StandInProtocol, Withdraw
from holdfast.protocols.routing.notices import (
    FeedsRecovered,
    MapChanged,
    NeighbourAccepted,
    NeighbourUnlinked,
    TablesChanged,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.tellings import changes, in_parts, parse, texts
from holdfast.protocols.routing.words import ENTRIES_MAX
from holdfast.schemes.tree.standin.messages import StandInLeft, StandInOwn, StandInSignal, Through
from holdfast.schemes.tree.standin.order import Order
from holdfast.schemes.tree.standin.relief import Relief
from holdfast.schemes.tree.standin.sharing import Openness, Share, Sharing

BROKERS: Final = frozenset({Role.BROKER})


class Ordering(Orders):
    """What comes by two ways, of all stand-ins beside neighbours."""

    def __init__(self) -> None:
        self.orders: dict[str, Order] = {}  # by the broker whose work is shared
        self._sides: dict[str, str] = {}  # that broker and its stand-in → the broker

    def begin(self, relief: Relief) -> None:
        self.orders[relief.side] = Order(relief.side, relief.name)
        self._sides |= {relief.side: relief.side, relief.name: relief.side}

    def end(self, relief: Relief) -> list[EventBatch]:
        order = self.orders.pop(relief.side, None)
        for name in (relief.side, relief.name):
            self._sides.pop(name, None)
        return [] if order is None else order.flush()

    def of(self, peer: str) -> Order | None:
        """Who puts in order what comes from a neighbour."""
        return self.orders.get(self._sides.get(peer, ""))

    def came(self, peer: str, batch: EventBatch) -> list[tuple[str, EventBatch]] | None:
        order = self.of(peer)
        if order is None:
            return None
        return [(self._sides[peer], events) for events in order.came(peer, batch)]


class Relieving(Part):
    """Behind `Neighbours`, before `Teaching`."""

    name: ClassVar[str] = "relieving"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {StandInOwn: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (
        FeedsRecovered,
        MapChanged,
        NeighbourAccepted,
        NeighbourUnlinked,
        TablesChanged,
    )
    due = False

    def __init__(
        self,
        settings: RoutingSettings,
        roster: Roster,
        acquaintances: Acquaintances,
        neighbours: Neighbours,
        forwarding: Forwarding,
        sharing: Sharing,
        ordering: Ordering,
    ) -> None:
        self._settings = settings
        self._roster = roster
        self._acquaintances = acquaintances
        self._neighbours = neighbours
        self._router = neighbours.router
        self._forwarding = forwarding
        self._sharing = sharing
        self._ordering = ordering
        self.reliefs: dict[str, Relief] = {}  # by the stand-in
        self._opening: dict[str, Openness] = {}  # stand-ins whose brokers do not know of them yet
        self._left: dict[str, int] = {}  # stand-ins that were told that they may go → the map's number

    # ---------------------------------------------------------------------------------------------- coming and going
    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        self._look_at_map(out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._look_at_map(out)

    def _look_at_map(self, out: Outbox) -> None:
        besides = self._roster.besides
        for name in [name for name in self.reliefs if name not in besides]:
            self._end(self.reliefs[name], out)
        for name, beside in besides.items():
            if name not in self.reliefs:
                self._begin(beside, out)
        match self._roster.map.step:
            case Withdraw(broker) if broker in self.reliefs:
                relief = self.reliefs[broker]
                self._opening.pop(broker, None)
                if not self._share(relief).is_over:
                    self._share(relief).end()
                    self._say_over(relief)
                if not self._settings.reliability.buffers:  # else what is stored for it is sent to it
                    self._forwarding.feeds[broker].use(None)
            case _:
                pass
        self.due = bool(self.reliefs)

    def _share(self, relief: Relief) -> Share:
        return self._sharing.shares[relief.side]

    def _begin(self, beside: Beside, out: Outbox) -> None:
        relief = Relief(self._router, beside, self._settings.covering)
        self.reliefs[relief.name] = relief
        self._neighbours.set_aside(relief.name, relief)
        self._forwarding.keep(relief.name, out)
        self._forwarding.end(relief.name, relief.side)
        self._sharing.shares[relief.side] = Share(relief)
        if relief.mode.orders:
            self._ordering.begin(relief)
        if self._settings.reliability.expires:
            out.set_timer((self.name, "refresh", relief.name), self._settings.refresh)

    def _end(self, relief: Relief, out: Outbox) -> None:
        """It is not beside the broker any more: it is gone, or has a place of its own."""
        name = relief.name
        del self.reliefs[name], self._sharing.shares[relief.side]
        self._left.pop(name, None)
        self._opening.pop(name, None)
        self._neighbours.set_aside(name, None)
        for events in self._ordering.end(relief):
            self._forwarding.arrive(relief.side, "", 0, events, out)
        if name not in self._router.neighbours:
            if relief.side in self._forwarding.feeds:
                self._forwarding.move_all(name, relief.side, out)
            self._forwarding.drop(name, out)
        out.cancel_timer((self.name, "refresh", name))

    # ------------------------------------------------------------------------------------------------------- sharing
    def requested(self, peer: str, protocol: StandInProtocol) -> None:
        """The stand-in has been told what is advertised."""
        if protocol is StandInProtocol.BASIC:
            self._open(self.reliefs[peer], Openness.ANY_NAMED)
        elif protocol is StandInProtocol.INCREM:
            self._open(self.reliefs[peer], Openness.ALL)

    def taught(self, peer: str, out: Outbox) -> None:
        """The stand-in knows everything."""
        if peer in self.reliefs and not self._share(self.reliefs[peer]).is_over:
            self._open(self.reliefs[peer], Openness.ALL_NAMED)

    def _open(self, relief: Relief, openness: Openness) -> None:
        """From now on the stand-in is given events: when the broker knows of it, too, through which signals go."""
        if relief.side not in self._acquaintances.greeted or not self._share(relief).knows_own:
            self._opening[relief.name] = openness
            return
        self._opening.pop(relief.name, None)
        share = self._share(relief)
        # What waits is indexed, too (D0-B11); and what goes by the broker nevertheless goes behind the first signal.
        waiting = self._forwarding.feeds[relief.side].cut() if openness is Openness.ALL else []
        if share.openness is Openness.CLOSED:
            self.say(share, relief.side)
        share.open(openness)
        self._sharing.put(relief.side, waiting)
        self._forwarding.look()

    def on_stand_in_own(self, peer: str, message: StandInOwn, out: Outbox) -> None:
        """What clients of a broker whose work is shared want; without knowing that, nothing is shared."""
        problem = "a broker whose work is shared says what its clients want, behind an introduction"
        if not self._acquaintances.hears(peer, problem):
            return
        if message.broker != peer or any(broker_of(entry) != peer for entry, _ in message.subscriptions):
            raise ProtocolError(problem)
        wanted = parse(message.subscriptions)
        for share in self.shares:
            if share.relief.side == peer:
                share.hear_own(wanted, message.gone, message.first, message.last)
                if len(share.own) > ENTRIES_MAX:
                    raise ProtocolError(f"{peer} tells more than {ENTRIES_MAX} entries")
                if share.knows_own and share.relief.name in self._opening:
                    self._open(share.relief, self._opening[share.relief.name])

    @property
    def shares(self) -> list[Share]:
        return list(self._sharing.shares.values())

    def say(self, share: Share, way: str, ends: bool = False) -> None:
        """How far events have been given to the two, where order is kept."""
        feed = self._forwarding.feeds.get(way)
        if share.relief.mode.orders and feed is not None:
            through = [Through(name, *number[:2]) for name, number in share.through.items()]
            feed.say(StandInSignal(share.relief.name, self._roster.name, through, ends))
            self._forwarding.look()

    def _say_over(self, relief: Relief) -> None:
        for way in (relief.side, relief.name):
            self.say(self._share(relief), way, ends=True)

    def signalled(self, peer: str, signal: StandInSignal, out: Outbox) -> None:
        """A signal has come through the broker or its stand-in: all that was before it has come."""
        order, relief = self._ordering.of(peer), self.reliefs.get(signal.stand_in)
        if order is None or relief is None:
            return
        through = {one.publisher: (one.incarnation, one.sequence) for one in signal.through}
        released = order.signalled(peer, through)
        if signal.ends and peer == relief.name:
            near = self._roster.map.spanning_tree.neighbours(relief.side)
            released += order.ended(signal.origin, [one for one in near if one != self._roster.name])
        for events in released:
            self._forwarding.arrive(relief.side, "", 0, events, out)

    def _withdraws(self, peer: str) -> bool:
        step = self._roster.map.step
        return isinstance(step, Withdraw) and step.broker == peer

    def _learns(self, peer: str) -> bool:
        step = self._roster.map.step
        return isinstance(step, Learn) and step.broker == peer

    # --------------------------------------------------------------------------------------------------------- links
    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        peer = accepted.peer
        if (order := self._ordering.of(peer)) is not None:
            order.open(peer)
            out.cancel_timer((self.name, "closed", peer))
        for share in self.shares:
            if share.relief.side == peer:
                self._meet_broker(share)
        relief = self.reliefs.get(peer)
        if relief is not None and self._share(relief).is_over:
            self._say_over(relief)
        if relief is not None and not self._learns(peer):
            self._tell_all(relief, out)
            self.taught(peer, out)

    def _meet_broker(self, share: Share) -> None:
        """The link to a broker whose work is shared is new, or it has a new map."""
        if share.relief.name in self._opening:
            self._open(share.relief, self._opening[share.relief.name])
        elif share.is_over:
            self._say_over(share.relief)
        elif share.openness is not Openness.CLOSED:
            self.say(share, share.relief.side)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        peer = unlinked.peer
        if self._ordering.of(peer) is not None:
            out.set_timer((self.name, "closed", peer), self._settings.stand_ins.patience)
        if peer in self.reliefs:
            relief = self.reliefs[peer]
            self._share(relief).open(Openness.CLOSED)
            self._opening.pop(peer, None)
            if not self._settings.reliability.buffers and not relief.mode.orders:
                self._forwarding.move(peer, relief.side, out)  # nothing waits for it that has another way

    # ------------------------------------------------------------------------------------------------------- telling
    def _tell_all(self, relief: Relief, out: Outbox) -> None:
        relief.sync()
        told = in_parts(texts(relief.advertisements.told()), texts(relief.subscriptions.told()))
        for message in told:
            out.send(relief.name, message, after=self._neighbours.teller.after)

    def on_tables_changed(self, changed: TablesChanged, out: Outbox) -> None:
        for relief in self.reliefs.values():
            relief.follow(changed.changes)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        peer = key[2]
        order, relief = self._ordering.of(peer), self.reliefs.get(peer)
        if key[1] == "closed" and order is not None:
            for events in order.close(peer):  # others do not wait for what it may have
                self._forwarding.arrive(self._roster.side(peer), "", 0, events, out)
        elif key[1] == "refresh" and relief is not None:
            out.set_timer(key, self._settings.refresh)
            if relief.is_synced:
                self._tell_all(relief, out)

    def finish(self, out: Outbox) -> None:
        """Tells stand-ins what the turn has changed, and that they may go."""
        for relief in self.reliefs.values():
            if relief.is_synced:
                advertised, subscribed = relief.take()
                if advertised or subscribed:
                    for message in changes(advertised, subscribed, 0):
                        out.send(relief.name, message, after=self._neighbours.teller.after)
            for ticket in relief.take_tickets():
                out.send(relief.name, Settled(ticket), after=self._neighbours.teller.after)
            self._let_go(relief, out)

    def _let_go(self, relief: Relief, out: Outbox) -> None:
        number, peer = self._roster.map.number, relief.name
        if not self._withdraws(peer) or self._left.get(peer) == number or peer not in self._acquaintances.greeted:
            return
        order = self._ordering.orders.get(relief.side)
        if self._forwarding.feeds[peer].is_idle and (order is None or order.is_over):
            self._left[peer] = number
            out.send(peer, StandInLeft(number), after=self._neighbours.teller.after)

    def measure(self) -> dict[str, int]:
        return {"stand_in_events_held": sum(map(len, self._ordering.orders.values()))}
