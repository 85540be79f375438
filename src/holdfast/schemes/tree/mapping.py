"""The map of the network at one broker: kept on its disk, told by others, changed by operators.

A map that has a higher number than the one that a broker has takes its place, whoever tells it; who may make one is a
matter of `NetworkMap.maker`. The first map is the site file's, until the disk or a neighbour knows a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Fields
from typing import ClassVar, Final, Protocol

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import Started
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.desks.overlay import ClientsSentElsewhere
from holdfast.protocols.failure.detector import FailureDetector
from holdfast.protocols.operating.changes import shown
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.messages import RECORD_FORMAT, MapAdopted
from holdfast.protocols.routing.network_map import (
    Change,
    HandBack,
    Learn,
    Leave,
    Move,
    NetworkMap,
    RemoveBroker,
    ReplaceBroker,
    StandInMode,
    StandInProtocol,
    planned,
)
from holdfast.protocols.routing.notices import MapChanged, MapHeard
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.operations import asked_of, change_of, lost_beside

STREAM: Final = "map"
ELSEWHERE_MAX: Final = 8  # addresses that clients are told at once


class KeepsNear(Protocol):
    def keep_near(self, out: Outbox) -> None:
        """The disk is to know who the neighbours are, before they change for the first time."""
        ...


def recovered_map(settings: RoutingSettings, streams: StoredStreams) -> NetworkMap:
    """The map that the disk has; else that of the site file."""
    network = settings.founding_map
    for record in streams.get(STREAM, ()):
        if not isinstance(record, MapAdopted):
            broken("the map on the disk is one", record=type(record).__name__)
        require(record.format == RECORD_FORMAT, "the map's format is known", format=record.format)
        network = record.map
    return network


def held_up(roster: Roster, up: Sequence[str], suspected: Sequence[str], unheard: Sequence[str] = ()) -> str:
    """What the step that is under way waits for, as one of those sees it who carry it out; empty if it sees nothing, or
    is none of them. `up` are the neighbours that it has a link with, `unheard` those that it has still to learn from.
    """
    match roster.map.step:
        case Move(broker, old, new):
            takes_part: tuple[str, ...] = (broker, old, new)
        case Leave(broker):
            takes_part = (broker, roster.map.maker)
        case Learn(broker) if broker == roster.name:
            takes_part = (broker, *roster.near)
        case Learn(broker) if broker in roster.near:
            takes_part = (broker, roster.name)
        case _:
            return ""
    if roster.name not in takes_part:
        return ""
    others = [name for name in takes_part if name != roster.name]
    down = [name for name in others if name not in up]
    silent = [name for name in others if name in up and name in suspected]
    said = [f"{roster.name} has no link with {' and '.join(down)}"] if down else []
    said += [f"{roster.name} hears nothing from {' and '.join(silent)}"] if silent else []
    slow = [name for name in unheard if name not in (*down, *silent)]
    said += [f"{roster.name} has not heard everything from {' and '.join(slow)}"] if slow else []
    return "; ".join(said)


class Mapping(Part):
    """Tells when the map has changed: others look into the roster then."""

    name: ClassVar[str] = "mapping"
    notices: ClassVar[tuple[type[Notice], ...]] = (MapHeard,)
    due = False

    def __init__(
        self,
        settings: RoutingSettings,
        roster: Roster,
        acquaintances: Acquaintances,
        detector: FailureDetector,
        near: KeepsNear,
        durable: bool,
    ) -> None:
        self._settings = settings
        self._roster = roster
        self._acquaintances = acquaintances
        self._detector = detector
        self._near = near
        self._durable = durable

    def on_started(self, started: Started, out: Outbox) -> None:
        self._note(out)
        if self._has_gone:
            self._report_gone(out)

    def on_map_heard(self, heard: MapHeard, out: Outbox) -> None:
        if heard.map.number <= self._roster.map.number:
            return
        if problem := flaw(heard.map):
            raise ProtocolError(f"in NetworkMapTold, {problem}")
        self._adopt(heard.map, self._roster.adopt, out)

    def make(self, network: NetworkMap, out: Outbox) -> None:
        """The next map is made here, and on the disk before anyone hears of it."""
        self._adopt(network, self._roster.make, out)

    def _adopt(self, network: NetworkMap, adopt: Callable[[NetworkMap], None], out: Outbox) -> None:
        before = self._roster.map
        self._near.keep_near(out)
        if self._durable:
            out.snapshot(STREAM, MapAdopted(network))
        was_member, since = self._roster.is_member, self._roster.member_since
        watched = self._roster.linked
        adopt(network)
        self._acquaintances.greeted.clear()  # until they have the map, too
        for peer in self._roster.linked:
            self._detector.add(peer, out)
        for peer in watched:
            if peer not in self._roster.linked:
                self._detector.remove(peer)
        self._note(out)
        out.tell(MapChanged(before))
        if was_member and not self._roster.is_member:
            self._report_gone(out)
        came_back = was_member and self._roster.is_member and self._roster.member_since > since  # and heard of neither
        if self.elsewhere or came_back:
            out.tell(ClientsSentElsewhere())

    def _report_gone(self, out: Outbox) -> None:
        out.report("no-member-any-more", Level.WARNING, broker=self._settings.name, map=self._roster.map.number)

    def _note(self, out: Outbox) -> None:
        network = self._roster.map
        detail = {
            "node": self._settings.name,
            "number": network.number,
            "members": list(network.names),
            "tree": [list(link) for link in network.tree],
            "beside": [list(link) for link in network.beside],
            "steps": [str(step) for step in network.steps],
        }
        if network.besides:
            detail["sharing"] = [[one.name, one.faulty] for one in network.besides]
        out.note("control", what="map-adopted", detail=detail)

    # ---------------------------------------------------------------------------------------------------- operators
    def change(self, action: str, told: Fields[str, str], out: Outbox) -> str:
        """Begins a change; gives what is against it."""
        roster, network = self._roster, self._roster.map
        if not roster.is_member:
            return f"{roster.name} is no member of this network; ask one of {', '.join(network.names[:20])}"
        change = change_of(action, told)
        if isinstance(change, str):
            return change
        detours = self._settings.reliability.detours
        if isinstance(change, ReplaceBroker | HandBack) and not self._settings.stand_ins.enabled and not detours:
            return "nobody stands in for brokers of this network: the site file has no [standin]"
        if isinstance(change, ReplaceBroker) and (problem := self.against(change.mode, change.protocol)):
            return problem
        if problem := objection(network, change, detours):
            return problem
        lost: list[str] = []  # those that are not to make the map
        match change:
            case ReplaceBroker(name, mode=StandInMode.FAILOVER) | RemoveBroker(name, lost=True):
                lost = [name, *lost_beside(told)]
            case _:
                pass
        if unknown := [name for name in lost if not roster.knows(name)]:
            return f"there is no broker {shown(unknown[0])} in this network"
        keeper = next((name for name in network.names if name not in lost), "nobody")
        if roster.name != keeper:
            return f"{keeper} keeps the map of this network: ask it"
        if not self._durable:
            # Restarted, it would know nothing of the map that it made, and make another one with its number.
            problem = "keeps the map of this network, and nothing on a disk: give it 'data' in the site file"
            return f"{roster.name} {problem}"
        after = planned(network, change)
        if problem := flaw(after):
            return problem
        out.report("network-change", Level.INFO, action=action, asked=dict(told), map=after.number)
        self.make(after, out)
        return ""

    def against(self, mode: StandInMode, protocol: StandInProtocol) -> str:
        """What is against replacing brokers in such a way, at this level."""
        if self._settings.reliability.buffers and _mixes(mode, protocol):
            return "where events are stored, they keep their order: take basic or synch, and failover or ms"
        return ""

    def want(self, change: Change, out: Outbox) -> None:
        """Says that brokers want a change by themselves, before they make a map of it."""
        action, told = asked_of(change)
        out.report("change-wanted", Level.INFO, node=self._settings.name, action=action, told=told)

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Where clients are to go, if they are not to stay here: a broker that is no member, or is on its way out,
        would hand them nothing."""
        roster = self._roster
        match roster.map.step:
            case Leave(broker) if broker == roster.name:
                return roster.client_addresses(roster.near)
            case _ if roster.shares is not None:  # of what its broker's clients want, it knows nothing
                return roster.client_addresses([roster.shares.faulty, *roster.map.names][:ELSEWHERE_MAX])
            case _ if roster.is_member:
                return ()
            case _:
                names = dict.fromkeys([roster.map.stand_in(roster.name), *roster.map.names])
                return roster.client_addresses(list(names)[:ELSEWHERE_MAX])

    @property
    def _has_gone(self) -> bool:
        """Whether this broker was a member, and will never be one again."""
        return self._roster.name in self._roster.map.former

    def facts(self) -> dict[str, str]:
        roster, network = self._roster, self._roster.map
        keeper = network.members[0]
        facts = {
            "map": str(network.number),
            "members": ", ".join(network.names),
            "keeper": keeper.name,
            "keeper_address": keeper.client_address,
            "next_keeper_address": network.members[1].client_address if len(network.members) > 1 else "",
            "links": ", ".join(f"{one}-{other}" for one, other in network.graph.links),
        }
        if self._settings.stand_ins.enabled:
            facts["stand_ins"] = "yes"
        if network.steps:
            facts["change"] = network.under_way
        if network.resting:
            facts["resting"] = ", ".join(_rests(one.name, network.stand_in(one.name)) for one in network.resting)
        if network.besides:
            facts["sharing"] = ", ".join(f"{one.faulty} by {one.name}" for one in network.besides)
        if not roster.is_member and (stand_in := network.stand_in(roster.name)):
            facts["problem"] = f"{stand_in} stands in for it: `holdfast standin hand-back` gives it its place again"
        elif network.rests(roster.name):
            facts["problem"] = "no member for now: it may stand in again, or be added"
        elif not roster.is_member:
            facts["problem"] = "no member any more: stop it" if self._has_gone else "no member of this network yet"
        if difference := self._difference():
            facts["difference"] = difference
        return facts

    def _difference(self) -> str:
        """How the site file differs from the map; empty if it does not. That one stands in for another for a while, or
        shares its work, is no difference."""
        network = self._roster.map
        besides = [beside.name for beside in network.besides]
        members = [name for name in network.names if name not in besides]
        known = self._settings.addresses.keys() | set(self._settings.graph.brokers)
        instead = {one.name: network.stand_in(one.name) or one.name for one in network.resting}
        listed = [instead.get(name, name) for name in self._settings.graph.brokers]
        said = []
        if gone := [name for name in listed if name not in members]:
            said.append(f"lists {', '.join(gone)}, no member{'s' * (len(gone) > 1)} of the network")
        if new := [name for name in members if name not in known]:
            said.append(f"does not list {', '.join(new)}, {_members(new)}")
        if joined := [name for name in members if name in known and name not in listed]:
            said.append(f"lists {', '.join(joined)}, {_members(joined)}, as spare")
        links = [(instead.get(one, one), instead.get(other, other)) for one, other in self._settings.graph.links]
        now = [link for link in network.graph.links if not set(link) & set(besides)]
        if not said and self._links(links) != self._links(now):
            said.append("has other links")
        return f"the site file {'; it '.join(said)}" if said else ""

    @staticmethod
    def _links(links: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
        return {frozenset(link) for link in links}


def _mixes(mode: StandInMode, protocol: StandInProtocol) -> bool:
    """Whether events leave in another order than they came, or are held back before they are taken in."""
    return protocol is StandInProtocol.INCREM or mode.orders


def _rests(name: str, by: str) -> str:
    return f"{name} by {by}" if by else name


def _members(names: Sequence[str]) -> str:
    return "a member" if len(names) == 1 else "members"
