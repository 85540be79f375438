"""What can't be of a network's map, whoever says it; and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.errors import TopologyError
from holdfast.protocols.routing.network_map import Learn, Leave, Move, NetworkMap, Withdraw

MEMBERS_MAX: Final = 10_000
NAME_BYTES_MAX: Final = 64
ADDRESS_BYTES_MAX: Final = 256
NUMBER_MAX: Final = 2**62


def flaw(network: NetworkMap) -> str:
    """What can't be of a network, whoever says it; empty if nothing is."""
    if not 0 < len(network.members) <= MEMBERS_MAX or not 0 <= network.number <= NUMBER_MAX:
        return "it has no members, or too many, or so many changes were never made"
    names, resting = network.names, [resting.name for resting in network.resting]
    known = (*names, *network.former, *resting)
    if len(set(known)) != len(known):
        return "a name is there twice"
    if any(not is_name(name) for name in known):
        return "a name is none"
    if any(not is_short(text) for member in network.members for text in (member.client_address, member.peer_address)):
        return "an address is none"
    if any(not 0 <= member.since <= network.number for member in network.members):
        return "a member came by a map that is not there yet"
    shared = [beside.faulty for beside in network.besides]
    sharing = [beside.name for beside in network.besides]
    if not {*shared, *sharing} <= set(names) or len({*shared, *sharing}) != len(shared) + len(sharing):
        return "who shares another's work is no member, or does so twice"
    try:
        tree, _ = network.spanning_tree, network.graph
    except TopologyError as error:
        return error.problem
    if _goes_in_a_circle({one.name: one.by for one in network.resting}):
        return "who stands in for whom goes in a circle"
    for step in network.steps:
        if step.broker not in names or (isinstance(step, Move) and not {step.old, step.new} <= set(names)):
            return "a step is of a broker that is no member"
    match network.step:
        case Move(broker, old, new) if old not in tree.neighbours(broker) or new not in tree.neighbours(old):
            return "a move leads to a broker that is not near"
        case Move(broker, _, new) if broker == new:
            return "a move leads to the broker itself"
        case Leave(broker) if len(tree.neighbours(broker)) != 1:
            return "who leaves is no leaf"
        case Learn(broker, faulty) if network.stand_in(faulty) != broker and network.shares(broker) is None:
            return "who learns stands in for nobody"
        case Withdraw(broker) if network.shares(broker) is None:
            return "who gives its share back has none"
    return ""


def _goes_in_a_circle(by: Mapping[str, str]) -> bool:
    """Then whoever follows it to the member that stands where a broker was does so for ever."""
    seen: set[str] = set()
    for name in by:
        way: set[str] = set()
        while name in by and name not in seen:
            seen.add(name)
            way.add(name)
            name = by[name]
        if name in way:
            return True
    return False


def is_name(name: str) -> bool:
    return 0 < len(name.encode()) <= NAME_BYTES_MAX and name.isprintable()


def is_short(address: str) -> bool:
    return len(address.encode()) <= ADDRESS_BYTES_MAX and address.isprintable()
