"""Who belongs to a network and who is joined with whom: a value that all of its brokers come to have, and its changes.

A network begins with the map of its site file, number 0. Each change makes a map with the next number, and a higher
number wins wherever two meet, also over the site file. One broker at a time may make the next one: of a map on which
nothing is under way the *keeper*, its first member; else the broker whose link moves by the first of the `steps`, or
the neighbour of the one that leaves, when that is done. So there is one history of maps, without a vote.

Everything is made of moves: a link of the tree that joins a broker with `old` comes to join it with `new`, a neighbour
of `old`. An inner broker is taken out by moving its neighbours to one of them, until it is a leaf; a link is replaced
by moving one end after the other along the tree; a broker is put between two by joining one as a leaf, to which the
other is moved. A member that is lost for good can't take part in that: an operator says so, the map without it counts
at once, and every broker reconciles itself with it. Nor does one that a stand-in takes the place of (D0): the map with
the stand-in in its place counts at once, and the step that is under way then is what the stand-in learns.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from holdfast.errors import TopologyError
from holdfast.topology.graph import BrokerGraph, SpanningTree

LOST_ABOVE: Final = 1_000  # how far the number of a map without a lost member is above that of the one before

Link: TypeAlias = tuple[str, str]


class NetworkMember(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One broker, where clients find it and where other brokers do. By the map with the number `since` it came to the
    network, or came back; 0: it was there from the beginning, or that was never written down."""

    name: str
    client_address: str
    peer_address: str
    since: int = 0


class Move(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The broker's link to `old` becomes one to `new`; those two are neighbours in the tree."""

    broker: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.broker} moves from {self.old} to {self.new}"


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """The broker, a leaf, goes when nothing waits there any more; with `rests`, it may come again. With `to`, that one
    stands in for it then."""

    broker: str
    rests: bool = False
    to: str = ""

    def __str__(self) -> str:
        return f"{self.broker} is on its way out"


class StandInProtocol(enum.Enum):
    """How events go on while a stand-in learns what is wanted (D0-A33)."""

    BASIC = "basic"  # at once, as far as it knows
    SYNCH = "synch"  # when it knows everything
    INCREM = "increm"  # each when it knows of a subscription that wants it


class StandInMode(enum.Enum):
    """What a stand-in is for (D0-A33)."""

    FAILOVER = "failover"  # it takes the place of a broker that failed
    SHARE = "ms"  # it shares the work of one that is slow: message scheduling
    ORDERED = "ms-ro"  # … and who gets events from both puts them in order
    HAND_OVER = "hand-over"  # it takes the place of one that runs, and is to be stopped for a while

    @property
    def shares(self) -> bool:
        return self in (StandInMode.SHARE, StandInMode.ORDERED)

    @property
    def orders(self) -> bool:
        return self is StandInMode.ORDERED


# How operators let a broker be replaced.
REPLACING: Final = (StandInMode.FAILOVER, StandInMode.SHARE, StandInMode.ORDERED)


class Learn(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """The broker stands in for one that failed, and learns from the neighbours what is wanted on their sides."""

    broker: str
    faulty: str
    protocol: StandInProtocol

    def __str__(self) -> str:
        return f"{self.broker} learns the tables of {self.faulty} ({self.protocol.value})"


class Withdraw(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A stand-in that shared a broker's work goes when nothing waits there any more; it may come again."""

    broker: str

    def __str__(self) -> str:
        return f"{self.broker} gives its share back"


class Beside(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A member that shares the work of another: joined with that one's neighbours, and no part of the tree itself.
    `asked`: as an operator wanted, who gives the work back, too."""

    name: str
    faulty: str
    mode: StandInMode
    asked: bool = False


class Resting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker that is no member for now, and may be one again: where it was, `by` stands in; nobody, if that is
    empty. `asked`: as an operator wanted, who gives the place back, too."""

    name: str
    by: str = ""
    asked: bool = False


Step: TypeAlias = Move | Leave | Learn | Withdraw


class NetworkMap(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`tree` are the links along which events are routed, `beside` those by which they go around what failed. `steps`
    are under way, the first of them now; `former` were members, and never will be again; `resting` ones may. Those in
    `besides` share the work of others."""

    number: int
    members: tuple[NetworkMember, ...]
    tree: tuple[Link, ...]
    beside: tuple[Link, ...] = ()
    steps: tuple[Step, ...] = ()
    former: tuple[str, ...] = ()
    resting: tuple[Resting, ...] = ()
    besides: tuple[Beside, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @property
    def keeper(self) -> str:
        """Who makes the next map, if nothing is under way."""
        return self.members[0].name

    @property
    def maker(self) -> str:
        """Who makes the next map now. It belongs to the network then, too."""
        match self.step:
            case Move(broker, _, _):
                return broker
            case Leave(broker):
                return self.spanning_tree.neighbours(broker)[0]
            case Learn(broker) | Withdraw(broker):
                return broker
            case _:
                return self.keeper

    @property
    def step(self) -> Step | None:
        return self.steps[0] if self.steps else None

    @property
    def under_way(self) -> str:
        """What has begun and is not done yet; empty if nothing has."""
        if not self.steps:
            return ""
        more = len(self.steps) - 1
        return str(self.steps[0]) + (f"; {more} more step{'s' if more > 1 else ''}" if more else "")

    def find(self, name: str) -> NetworkMember | None:
        return next((member for member in self.members if member.name == name), None)

    def rests(self, name: str) -> bool:
        return any(resting.name == name for resting in self.resting)

    def stand_in(self, name: str) -> str:
        """The member that stands where a broker was; empty if there is none."""
        by = {resting.name: resting.by for resting in self.resting}
        while name in by:
            name = by[name]
        return name if self.find(name) is not None else ""

    @property
    def graph(self) -> BrokerGraph:
        """All links, those of the tree first."""
        tree = {frozenset(link) for link in self.tree}
        links = [*self.tree, *(link for link in self.beside if frozenset(link) not in tree)]
        for beside in self.besides:
            links += [(peer, beside.name) for peer in self.spanning_tree.neighbours(beside.faulty)]
        return BrokerGraph(self.names, links)

    def beside_of(self, faulty: str) -> Beside | None:
        """Who shares a broker's work."""
        return next((beside for beside in self.besides if beside.faulty == faulty), None)

    def shares(self, name: str) -> Beside | None:
        """Whose work a broker shares."""
        return next((beside for beside in self.besides if beside.name == name), None)

    def seen_by(self, name: str) -> SpanningTree:
        """The tree that events go along, for one broker: who shares another's work is in its place."""
        beside = self.shares(name)
        return self.spanning_tree if beside is None else _tree_of(*self._with(beside.faulty, name))

    def _with(self, old: str, new: str) -> tuple[tuple[str, ...], tuple[Link, ...]]:
        apart = [beside.name for beside in self.besides]  # it, and those that share the work of others
        names = tuple(new if one == old else one for one in self.names if one not in apart)
        return names, _renamed(self.tree, old, new)

    @property
    def spanning_tree(self) -> SpanningTree:
        """TopologyError if the links of the tree make none."""
        besides = [beside.name for beside in self.besides]
        return _tree_of(tuple(name for name in self.names if name not in besides), self.tree)

    @property
    def digest(self) -> str:
        """Tells maps with one number apart. Where brokers are found does not matter: each site file may say it in its
        own way."""
        said = [self.number, self.names, self.tree, self.beside, self.steps, self.former, self.resting, self.besides]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:32]


def _tree_of(names: tuple[str, ...], links: tuple[Link, ...]) -> SpanningTree:
    graph = BrokerGraph(names, links)
    if graph.has_cycle:
        raise TopologyError("the links of the tree form a cycle", "tree")
    return graph.spanning_tree()


def _renamed(links: tuple[Link, ...], old: str, new: str) -> tuple[Link, ...]:
    return tuple((new if one == old else one, new if other == old else other) for one, other in links)


def founding_map(members: Iterable[NetworkMember], links: Sequence[Link]) -> NetworkMap:
    """How a network begins: by its site file."""
    listed = tuple(members)
    graph = BrokerGraph([member.name for member in listed], links)
    tree = graph.spanning_tree()
    routed = tuple(link for link in graph.links if link[1] in tree.neighbours(link[0]))
    return NetworkMap(0, listed, routed, tuple(link for link in graph.links if link not in routed))


# ------------------------------------------------------------------------------------------------------------- changes
class AddBroker(msgspec.Struct, frozen=True, gc=False):
    """A new broker, joined with the member `at`; with `between`, it comes to stand between that one and this."""

    name: str
    client_address: str
    peer_address: str
    at: str
    between: str = ""


class RemoveBroker(msgspec.Struct, frozen=True, gc=False):
    """A broker goes; its neighbours are joined at `at`, one of them, or the first. `lost`: it is gone already, for
    good."""

    name: str
    lost: bool = False
    at: str = ""


class AddLink(msgspec.Struct, frozen=True, gc=False):
    """A link between two members. In the tree, in the place of another link of the cycle that it would close."""

    one: str
    other: str
    instead_of: Link | None = None


class RemoveLink(msgspec.Struct, frozen=True, gc=False):
    one: str
    other: str


class ReplaceBroker(msgspec.Struct, frozen=True, gc=False):
    """A broker that is no member takes the place of another, or shares the work of one that is slow (D0). `asked`: an
    operator wants it."""

    name: str
    by: str
    client_address: str
    peer_address: str
    protocol: StandInProtocol = StandInProtocol.SYNCH
    mode: StandInMode = StandInMode.FAILOVER
    asked: bool = False


class HandBack(msgspec.Struct, frozen=True, gc=False):
    """A broker that was replaced is there again, and has its place back, or its work; its stand-in leaves."""

    name: str
    client_address: str
    peer_address: str


Change: TypeAlias = AddBroker | RemoveBroker | AddLink | RemoveLink | ReplaceBroker | HandBack


def planned(network: NetworkMap, change: Change) -> NetworkMap:
    """The next map, of a change that nothing is against: what counts at once, and the steps to the rest."""
    match change:
        case AddBroker():
            member = NetworkMember(change.name, change.client_address, change.peer_address, network.number + 1)
            steps: tuple[Step, ...] = (Move(change.between, change.at, change.name),) if change.between else ()
            members = (*network.members, member)
            resting = tuple(one for one in network.resting if one.name != change.name)
            tree = (*network.tree, (change.at, change.name))
            return _next(network, members=members, tree=tree, steps=steps, resting=resting)
        case RemoveBroker():
            return _without(network, change)
        case AddLink(one, other, instead_of):
            if instead_of is None:
                return _next(network, beside=(*network.beside, (one, other)))
            return _next(network, steps=_slides(network, instead_of, (one, other)))
        case RemoveLink(one, other):
            left = tuple(link for link in network.beside if frozenset(link) != {one, other})
            if one not in network.spanning_tree.neighbours(other):
                return _next(network, beside=left)
            by = way_around(network, (one, other))
            return _next(network, beside=left, steps=() if by is None else _slides(network, (one, other), by))
        case ReplaceBroker():
            return _replaced(network, change)
        case HandBack():
            return _handed_back(network, change)
        case _:
            assert_never(change)


def done(network: NetworkMap) -> NetworkMap:
    """The next map: the first step is done."""
    match network.step:
        case Move(broker, old, new):
            tree = tuple((broker, new) if frozenset(link) == {broker, old} else link for link in network.tree)
            return _next(network, tree=tree, steps=network.steps[1:])
        case Leave(broker, rests, to):
            return _next(_let_go(network, broker, rests, to), steps=network.steps[1:])
        case Learn():
            return _next(network, steps=network.steps[1:])
        case Withdraw(broker):
            besides = tuple(beside for beside in network.besides if beside.name != broker)
            return _next(_let_go(network, broker, rests=True), steps=network.steps[1:], besides=besides)
        case None:
            return network
        case _:
            assert_never(network.step)


def _next(network: NetworkMap, **fields: Any) -> NetworkMap:
    changed = msgspec.structs.replace(network, number=network.number + 1, **{"steps": (), **fields})
    if changed.steps:
        return changed  # what is moved over a link beside the tree leaves it again
    tree = {frozenset(link) for link in changed.tree}
    beside = tuple(link for link in changed.beside if frozenset(link) not in tree)
    return msgspec.structs.replace(changed, beside=beside)


def _let_go(network: NetworkMap, name: str, rests: bool = False, to: str = "") -> NetworkMap:
    """Without a member and its links. Nobody stands where those are that it stood in for, unless another does for it;
    with `to`, as an operator wanted."""
    resting = network.resting
    if not to:
        resting = tuple(Resting(one.name) if one.by == name else one for one in resting)
    return msgspec.structs.replace(
        network,
        members=tuple(member for member in network.members if member.name != name),
        tree=tuple(link for link in network.tree if name not in link),
        beside=tuple(link for link in network.beside if name not in link),
        former=network.former if rests else (*network.former, name),
        resting=(*resting, Resting(name, to, asked=bool(to))) if rests else resting,
    )


def _replaced(network: NetworkMap, change: ReplaceBroker) -> NetworkMap:
    """The stand-in is where the other was, also in the order of the members; or beside it."""
    name, by = change.name, change.by
    member = NetworkMember(by, change.client_address, change.peer_address, network.number + 1)
    resting = tuple(one for one in network.resting if one.name != by)
    steps = (Learn(by, name, change.protocol),)
    if change.mode.shares:
        besides = (*network.besides, Beside(by, name, change.mode, change.asked))
        return _next(network, members=(*network.members, member), steps=steps, resting=resting, besides=besides)
    if change.mode is StandInMode.HAND_OVER:
        return _comes_after(msgspec.structs.replace(network, resting=resting), member, name, by)
    # What was under way may have made a map that has not come here: this one is above it.
    above = msgspec.structs.replace(network, number=network.number + LOST_ABOVE)
    member = msgspec.structs.replace(member, since=above.number + 1)
    return _next(
        above,
        members=tuple(member if one.name == name else one for one in network.members if one.name != by),
        tree=_renamed(network.tree, name, by),
        beside=_renamed(network.beside, name, by),
        steps=(*steps, *_left_of_hand_over(network, name, by)),
        resting=(*resting, Resting(name, by, change.asked)),
        besides=tuple(beside for beside in network.besides if beside.name != by),
    )


def _left_of_hand_over(network: NetworkMap, name: str, by: str) -> tuple[Step, ...]:
    """What is left to do when a broker is replaced while a place is handed over or back: the same, with the stand-in.
    Else one of the two brokers of that place would stay for good, though nobody wants it. What else was under way ends
    where it stands."""
    match network.steps:
        case (*_, Leave(_, True)):
            return tuple(_step_renamed(step, name, by) for step in network.steps if not isinstance(step, Learn))
        case _:
            return ()


def _step_renamed(step: Step, old: str, new: str) -> Step:
    names = {field: new for field in ("broker", "old", "new", "to") if getattr(step, field, None) == old}
    renamed: Step = msgspec.structs.replace(step, **names)
    return renamed


def _handed_back(network: NetworkMap, change: HandBack) -> NetworkMap:
    beside = network.beside_of(change.name)
    if beside is not None:
        return _next(network, steps=(Withdraw(beside.name),))
    member = NetworkMember(change.name, change.client_address, change.peer_address, network.number + 1)
    resting = tuple(one for one in network.resting if one.name != change.name)
    network_without = msgspec.structs.replace(network, resting=resting)
    return _comes_after(network_without, member, network.stand_in(change.name))


def _comes_after(network: NetworkMap, member: NetworkMember, leaver: str, to: str = "") -> NetworkMap:
    """The new member is joined as a leaf of the one that is to leave, whose other neighbours come over to it."""
    moves = [Move(peer, leaver, member.name) for peer in network.spanning_tree.neighbours(leaver)]
    return _next(
        network,
        members=(*network.members, member),
        tree=(*network.tree, (leaver, member.name)),
        steps=(*moves, Leave(leaver, rests=True, to=to)),
    )


def _without(network: NetworkMap, change: RemoveBroker) -> NetworkMap:
    # Of one that is lost, what was under way may have made a map that has not come here: the next one is above it.
    left = msgspec.structs.replace(_let_go(network, change.name), number=network.number + LOST_ABOVE)
    if network.shares(change.name) is not None:
        return _next(left, besides=tuple(beside for beside in network.besides if beside.name != change.name))
    near = network.spanning_tree.neighbours(change.name)
    hub = change.at or near[0]
    others = [peer for peer in near if peer != hub]
    if change.lost:
        return _next(left, tree=(*left.tree, *((hub, other) for other in others)))
    moves = [Move(other, change.name, hub) for other in others]
    return _next(network, steps=(*moves, Leave(change.name)))


def _slides(network: NetworkMap, old: Link, new: Link) -> tuple[Step, ...]:
    """One end after the other is moved along the tree, from one link to the other."""
    here, there = old
    tree = network.spanning_tree
    one, other = new if _side(tree, old, new[0]) == here else (new[1], new[0])
    steps: list[Step] = []
    for mover, path in ((there, tree.path(here, one)), (one, tree.path(there, other))):
        steps += [Move(mover, before, after) for before, after in pairwise(path)]
    return tuple(steps)


def _side(tree: SpanningTree, link: Link, broker: str) -> str:
    """The end of a link of the tree that a broker is on the side of."""
    one, other = link
    return one if broker == one or tree.next_hop(one, broker) != other else other


def way_around(network: NetworkMap, link: Link) -> Link | None:
    """The link beside the tree that can take the place of one in it: of several the one with the shortest way."""
    tree = network.spanning_tree
    crossing = [each for each in network.beside if _side(tree, link, each[0]) != _side(tree, link, each[1])]
    return min(crossing, key=lambda each: len(tree.path(*each)), default=None)
