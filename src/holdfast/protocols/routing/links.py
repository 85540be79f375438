"""Links to the neighbours in the graph: dialled again and again, and good for nothing before an introduction.

Of two neighbours the one that comes first among the members dials. Neighbours come and go with the map of the network.
Brokers of other networks are refused. Two brokers are acquainted when each knows that the other has a map in which
they are neighbours: whoever has an older one is told first, also a stranger, which may be a neighbour by then, or learn
that it is a member no more. While a neighbour is not there, others are looked for, too, in a network that has changed:
whoever was the only way to a part of it may be lost, and have told only some of the last map. What is said on a link
behind that is not this part's affair: it tells others that there is one, and that it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import LATEST, NOW, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.links.link_set import DIAL, Came, LinkSet
from holdfast.protocols.links.pauses import SteadyPauses
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.messages import Introduction, NetworkMapKnown, NetworkMapTold
from holdfast.protocols.routing.network_map import Learn
from holdfast.protocols.routing.notices import (
    BrokerIntroduced,
    MapChanged,
    MapHeard,
    NeighbourAccepted,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings

BROKERS: Final = frozenset({Role.BROKER})
STRANGERS_MAX: Final = 16  # links to brokers that are no neighbours, or not yet; where they call each other: no members
PATIENT: Final = 5  # times as long a broker waits that is to be dialled by the other
STRANGER_FOR: Final = 10 * SECOND  # so long such a link is kept
LOOK_AFTER: Final = 10  # times the pause between two dials, after which another member is looked for


class _Known(NamedTuple):
    """What a broker has said of itself on its link, which map it has, and whether we are its neighbour by that."""

    introduction: Introduction
    number: int
    digest: str
    neighbour: bool


class Links(Part):
    """One link to each neighbour, the newest."""

    name: ClassVar[str] = "links"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {
        Introduction: BROKERS,
        NetworkMapTold: BROKERS,
        NetworkMapKnown: BROKERS,
    }
    notices: ClassVar[tuple[type, ...]] = (MapChanged,)
    due = False  # nothing is left to the end of a turn

    def __init__(self, settings: RoutingSettings, roster: Roster) -> None:
        self._settings = settings
        self._roster = roster
        self._network = settings.network_id
        self.acquaintances = Acquaintances()
        self._known: dict[str, _Known] = {}  # all that have introduced themselves on their links
        self._said: dict[str, tuple[int, bool]] = {}  # the same as we said it, on the links that there are
        self._pauses = SteadyPauses(settings.dial_every)
        self._long_pauses = SteadyPauses(PATIENT * settings.dial_every)
        # A member that sees to a stand-in calls all others, and all neighbours of a broker that failed call it.
        guests = roster.remembers if settings.stand_ins.levels.enabled else None
        self._links = LinkSet(self.name, strangers_max=STRANGERS_MAX, is_guest=guests)
        self._looked_for = 0  # the place among the members of the last one

    def reaches(self, peer: str) -> bool:
        """Whether a broker has introduced itself on the link that it has, neighbour or not."""
        return peer in self._known

    def wants(self, peer: str) -> bool:
        """Whether it is dialled, or dials, as a neighbour does."""
        return self._links.wants(peer)

    def knows_map(self, peer: str, number: int) -> bool:
        """Whether a broker that can be reached has the map of that number, or a later one."""
        return self.reaches(peer) and self._known[peer].number >= number

    def has_map(self, peer: str, number: int) -> bool:
        """Whether an acquaintance has the map of that number, or a later one."""
        return peer in self.acquaintances and self._known[peer].number >= number

    # --------------------------------------------------------------------------------------------------- neighbours
    def on_started(self, started: Started, out: Outbox) -> None:
        self._want_neighbours(out)
        self._look_later(out)

    @property
    def _may_have_changed(self) -> bool:
        """Whether others may have another map. Where brokers are replaced, who comes back may have missed that it was,
        and nobody looks for it."""
        return bool(self._roster.map.number) or self._settings.stand_ins.enabled

    def _look_later(self, out: Outbox) -> None:
        if self._may_have_changed:
            out.set_timer((self.name, "look"), LOOK_AFTER * self._settings.dial_every)

    def _look_around(self, out: Outbox) -> None:
        """Dials a member that is no neighbour, one after the other, if a neighbour is not there; and spares of the
        site, which may be members by now, when all others that are known are gone."""
        self._look_later(out)
        roster = self._roster
        if all(peer in self.acquaintances for peer in roster.linked):
            return
        names = list(dict.fromkeys((*roster.map.names, *self._settings.addresses)))
        for step in range(1, len(names) + 1):
            place = (self._looked_for + step) % len(names)
            name = names[place]
            if name != roster.name and not self._links.wants(name) and not self._links.link_of(name):
                self._looked_for = place
                out.connect(name, roster.peer_address(name))
                return

    def _want_neighbours(self, out: Outbox) -> None:
        roster = self._roster
        wanted = roster.linked
        self._present(out)
        for peer in wanted:
            dials = roster.dials(peer) or roster.is_learning  # of whom its neighbours may not have heard
            # Who is to dial may not know yet that we are its neighbour, or know that we are none any more.
            pauses = self._pauses if dials else self._long_pauses if self._may_have_changed else None
            self._links.want(peer, roster.peer_address(peer), pauses, out, at_once=dials)
        for peer in self._links.wanted:
            if peer not in wanted:
                # Its link stays for a while: the other side may have to hear of it first.
                self._links.unwant(peer, out)
                if peer in self.acquaintances:
                    self.acquaintances.part(peer)
                    out.tell(NeighbourUnlinked(peer))
                if self._links.link_of(peer):
                    out.set_timer((self.name, "stranger", peer), STRANGER_FOR)

    def _present(self, out: Outbox) -> None:
        """The keeper sees to it that a stand-in hears of the map in which it is one: to its neighbours, it may be the
        only way."""
        roster = self._roster
        match roster.map.step:
            case Learn(broker) if roster.name in roster.map.names[:2] and roster.name != broker:
                known = self._known.get(broker)
                if known is not None and known.number >= roster.map.number:
                    return
                if not self._links.wants(broker) and not self._links.link_of(broker):
                    out.connect(broker, roster.peer_address(broker))
                out.set_timer((self.name, "present"), self._settings.dial_every)
            case _:
                pass

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._want_neighbours(out)
        self._looked_for = 0
        self._look_later(out)
        for peer in list(self._known):
            self._say_map(peer, out)
            self._look_at(peer, out)

    def _forget(self, peer: str) -> None:
        """What was said on its link: it is gone, or another one takes its place."""
        self._known.pop(peer, None)
        self._said.pop(peer, None)
        self.acquaintances.lose(peer)

    # -------------------------------------------------------------------------------------------------------- links
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if key[1] == DIAL:
            self._links.timer_fired(key, out)
        elif key[1] == "look":
            self._look_around(out)
        elif key[1] == "present":
            self._present(out)
        elif not self._links.wants(key[2]):
            self._forget(key[2])
            self.acquaintances.close(key[2])
            self._links.close(key[2], f"{key[2]} is no neighbour of {self._settings.name}", out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._links.connect_failed(failed, out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        came = self._links.link_up(up, out)
        if came is Came.REFUSED or up.peer == self._settings.name:
            out.disconnect(up.link, f"{up.peer} is no neighbour of {self._settings.name}")
            return
        self._forget(up.peer)
        self.acquaintances.connect(up.peer)
        if came is Came.REPLACED:
            out.drop_queue(up.peer)
            out.tell(NeighbourUnlinked(up.peer))
        if came is Came.STRANGER:
            out.set_timer((self.name, "stranger", up.peer), STRANGER_FOR)
        self._say(up.peer)
        out.tell(NeighbourConnected(up.peer))

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._links.link_down(down, out):
            self._forget(down.peer)
            out.tell(NeighbourUnlinked(down.peer))

    # ------------------------------------------------------------------------------------------------ introductions
    def on_introduction(self, peer: str, introduction: Introduction, out: Outbox) -> None:
        link = self._links.link_of(peer)
        if not link:
            return  # it was given up in this turn
        if peer in self._known:
            raise ProtocolError("an introduction is the first message of a neighbour, and comes once")
        if introduction.network != self._network:
            out.report("other-network", Level.WARNING, peer=peer)
            out.disconnect(link, f"{peer} belongs to another network, or to one of another level")
            return
        number, digest = introduction.map_number, introduction.map_digest
        self._known[peer] = _Known(introduction, number, digest, introduction.neighbour)
        self.acquaintances.introduce(peer)
        out.tell(BrokerIntroduced(peer))
        self._say_map(peer, out)
        self._look_at(peer, out)

    def on_network_map_told(self, peer: str, told: NetworkMapTold, out: Outbox) -> None:
        if not self._is_known(peer):
            return
        out.tell(MapHeard(peer, told.map))  # and, if it is newer than ours, that the map has changed

    def on_network_map_known(self, peer: str, known: NetworkMapKnown, out: Outbox) -> None:
        if not self._is_known(peer):
            return
        self._known[peer] = _Known(self._known[peer].introduction, known.number, known.digest, known.neighbour)
        self._look_at(peer, out)

    def _is_known(self, peer: str) -> bool:
        """Whether what a broker says of maps counts; ProtocolError if it may not say it."""
        if not self._links.link_of(peer):
            return False  # it was given up in this turn
        if peer not in self._known:
            raise ProtocolError("maps of the network are told behind an introduction")
        return True

    def _say(self, peer: str) -> bool:
        """What we say of our map; whether that is another word than before."""
        near = self._links.wants(peer)
        if near:
            self.acquaintances.invite(peer)
        before, self._said[peer] = self._said.get(peer), (self._roster.map.number, near)
        return before != self._said[peer]

    def _say_map(self, peer: str, out: Outbox) -> None:
        """That we have another map than we said before; and which, to whom has an older one."""
        own = self._roster.map
        if self._say(peer):
            # Before everything that follows from it, also what waits for nothing.
            out.send(peer, NetworkMapKnown(own.number, own.digest, self._said[peer][1]), after=NOW)
        if self._known[peer].number < own.number:
            # Who made a map has it on the disk before others hear of it, or it might make another one with its number.
            waits = self._settings.reliability.buffers or self._roster.made == own.number
            out.send(peer, NetworkMapTold(own), after=LATEST if waits else NOW)

    def _look_at(self, peer: str, out: Outbox) -> None:
        """Whether the other side of a link is a neighbour now, and we are its."""
        known, own = self._known.get(peer), self._roster.map
        if known is None:
            return
        link, is_wanted = self._links.link_of(peer), self._links.wants(peer)
        if known.number == own.number and known.digest != own.digest:
            out.report("other-map", Level.WARNING, peer=peer, number=own.number)
            out.disconnect(link, f"{peer} has another map of the network, or another site file")
            return
        if known.number == own.number and not is_wanted and not self._settings.stand_ins.levels.enabled:
            out.disconnect(link, f"{peer} is no neighbour of {self._settings.name}")
            return
        if is_wanted and known.neighbour and peer not in self.acquaintances:
            out.cancel_timer((self.name, "stranger", peer))
            self.acquaintances.make(peer)
            out.tell(NeighbourLinked(peer, known.introduction))
        if peer in self.acquaintances and peer not in self.acquaintances.greeted and known.number >= own.number:
            self.acquaintances.greet(peer)
            out.tell(NeighbourAccepted(peer, self._links.incarnation_of(peer)))

    def measure(self) -> dict[str, int]:
        return {"neighbours_linked": len(self.acquaintances)}

    def check_invariants(self) -> None:
        self._links.check_invariants()
        for peer in self.acquaintances:
            require(self._links.link_of(peer), "who is known has a link", peer=peer)
