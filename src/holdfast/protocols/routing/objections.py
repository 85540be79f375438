"""What is against a change of a network, in words that fit into an answer."""

from __future__ import annotations

from itertools import pairwise
from typing import assert_never

from holdfast.protocols.routing.flaws import MEMBERS_MAX, NAME_BYTES_MAX, NUMBER_MAX, is_name, is_short
from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    HandBack,
    Learn,
    Leave,
    Move,
    NetworkMap,
    RemoveBroker,
    RemoveLink,
    ReplaceBroker,
    StandInMode,
    Withdraw,
    way_around,
)


def objection(network: NetworkMap, change: Change, detours: bool) -> str:
    """What is against a change; empty if nothing is. `detours`: links beside the tree are used."""
    if network.number >= NUMBER_MAX:
        return "so many changes can't be numbered"
    if network.under_way and not _is_held_up(network, change):
        return f"another change is under way: {network.under_way}"
    if network.besides and not isinstance(change, ReplaceBroker | HandBack) and not _is_lost(change):
        beside = network.besides[0]
        return f"{beside.name} shares the work of {beside.faulty}: hand that back first"
    match change:
        case AddBroker():
            return _against_newcomer(network, change)
        case RemoveBroker():
            return _against_going(network, change)
        case AddLink():
            return _against_link(network, change, detours)
        case RemoveLink():
            return _against_cut(network, change, detours)
        case ReplaceBroker():
            return _against_stand_in(network, change, detours)
        case HandBack():
            return _against_hand_back(network, change)
        case _:
            assert_never(change)


def _is_lost(change: Change) -> bool:
    return isinstance(change, RemoveBroker) and change.lost


def _is_held_up(network: NetworkMap, change: Change) -> bool:
    """Whether what is under way will not go on, since it needs a broker that is said to be lost, or is replaced."""
    match change:
        case RemoveBroker(lost=True) | ReplaceBroker(mode=StandInMode.FAILOVER):
            pass
        case _:
            return False
    match network.step:
        case Learn(broker) | Withdraw(broker):
            return change.name == broker
        case Move(broker, old, new):
            return change.name in (broker, old, new)
        case Leave(broker):
            return change.name == broker or change.name in network.spanning_tree.neighbours(broker)
        case _:
            return True


def _short(name: str) -> str:
    """A name in an answer: whatever was asked, the answer fits into a message."""
    return repr(name if len(name) <= NAME_BYTES_MAX else name[:NAME_BYTES_MAX] + "…")


def _unknown(network: NetworkMap, name: str) -> str:
    shown = ", ".join(network.names[:20]) + (", …" if len(network.members) > 20 else "")
    return f"there is no broker {_short(name)} in this network; there is {shown}"


def _against_newcomer(network: NetworkMap, new: AddBroker) -> str:
    if network.find(new.name) is not None:
        return f"{new.name} is a member already"
    if problem := _against_name(network, new.name, new.client_address, new.peer_address):
        return problem
    for end in (new.at, new.between):
        if end and network.find(end) is None:
            return _unknown(network, end)
    if not new.at:
        return f"say which broker {new.name} is joined with"
    if new.between and new.between not in network.spanning_tree.neighbours(new.at):
        return f"no link that events are routed along joins {new.at} and {new.between}"
    return ""


def _against_name(network: NetworkMap, name: str, *addresses: str) -> str:
    """What is against a new member."""
    if name in network.former:
        return f"{name} was a member before, and what it kept may be old: give it a new id and an empty folder"
    if not is_name(name):
        return f"{_short(name)} is no name of a broker"
    if len(network.members) >= MEMBERS_MAX:
        return f"a network has at most {MEMBERS_MAX} brokers"
    for address in addresses:
        if not address or not is_short(address):
            return f"{name} has no address that others could dial"
        for member in network.members:
            if address in (member.client_address, member.peer_address):
                return f"{name} has the address {address}, which {member.name} has"
    return ""


def _against_stand_in(network: NetworkMap, change: ReplaceBroker, detours: bool) -> str:
    if detours:
        return "at levels that detour, events go around a broker that fails, and nobody stands in for it"
    if network.find(change.name) is None:
        return _unknown(network, change.name)
    sharing = network.beside_of(change.name)
    if change.mode.shares and sharing is not None:
        return f"{sharing.name} shares the work of {change.name} already"
    if network.shares(change.name) is not None:
        return f"{change.name} shares another broker's work itself: hand that back"
    if change.mode is StandInMode.HAND_OVER and network.besides:
        shared = network.besides[0]
        return f"{shared.name} shares the work of {shared.faulty}: hand that back first"
    near = network.spanning_tree.neighbours(change.name)
    close = next((beside for beside in network.besides if beside.faulty in near), None)
    if close is not None and change.mode.shares:
        return f"{close.name} shares the work of {close.faulty}, its neighbour: hand that back first"
    beside = network.shares(change.by)
    if beside is not None and beside.faulty == change.name:
        return ""  # who shared its work takes its place
    if network.find(change.by) is not None:
        return f"{_short(change.by)} is a member already: a stand-in is a broker that runs, and is none"
    return _against_name(network, change.by, change.client_address, change.peer_address)


def _against_hand_back(network: NetworkMap, change: HandBack) -> str:
    if network.beside_of(change.name) is not None:
        return ""
    if network.find(change.name) is not None:
        return f"{_short(change.name)} is a member, and nobody stands in for it"
    if not network.stand_in(change.name):
        return f"nobody stands in for {_short(change.name)}"
    if network.besides:
        beside = network.besides[0]
        return f"{beside.name} shares the work of {beside.faulty}: hand that back first"
    return _against_name(network, change.name, change.client_address, change.peer_address)


def _against_going(network: NetworkMap, going: RemoveBroker) -> str:
    if network.find(going.name) is None:
        return _unknown(network, going.name)
    if network.shares(going.name) is not None:
        return ""
    sharing = network.beside_of(going.name)
    if sharing is not None:
        return f"{sharing.name} shares the work of {going.name}: let it take its place"
    if len(network.members) < 3:
        return "a network has two brokers or more: stop it, and describe a site of one broker"
    near = network.spanning_tree.neighbours(going.name)
    if going.at and going.at not in near:
        return f"the neighbours of {going.name} are {', '.join(near)}; they can't be joined at {_short(going.at)}"
    return ""


def _against_link(network: NetworkMap, new: AddLink, detours: bool) -> str:
    for end in (new.one, new.other, *(new.instead_of or ())):
        if network.find(end) is None:
            return _unknown(network, end)
    if new.one == new.other:
        return f"a link joins two brokers, and not {new.one} with itself"
    if new.other in network.graph.neighbours(new.one) and (
        new.instead_of is None or new.other in network.spanning_tree.neighbours(new.one)
    ):
        return f"{new.one} and {new.other} are joined already"
    path = network.spanning_tree.path(new.one, new.other)
    links = list(pairwise(path))
    if new.instead_of is None:
        if detours:
            return ""
        cycle = ", ".join(f"{a}-{b}" for a, b in links)
        return f"at this level only a tree is used: say which link it is instead of, one of {cycle}"
    if frozenset(new.instead_of) not in {frozenset(link) for link in links}:
        cycle = ", ".join(f"{a}-{b}" for a, b in links)
        return f"only a link of the way between {new.one} and {new.other} can be replaced by it: one of {cycle}"
    return ""


def _against_cut(network: NetworkMap, gone: RemoveLink, detours: bool) -> str:
    for end in (gone.one, gone.other):
        if network.find(end) is None:
            return _unknown(network, end)
    if gone.one == gone.other or gone.other not in network.graph.neighbours(gone.one):
        return f"no link joins {gone.one} and {gone.other}"
    if gone.other in network.spanning_tree.neighbours(gone.one) and (
        not detours or way_around(network, (gone.one, gone.other)) is None
    ):
        return (
            f"without the link between {gone.one} and {gone.other} the network falls apart: add another instead of it"
        )
    return ""
