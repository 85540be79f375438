"""What operators ask of a network, as values of its map. Whether they go with the map, the map says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.protocols.operating.changes import misunderstood, shown
from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    HandBack,
    Link,
    RemoveBroker,
    RemoveLink,
    ReplaceBroker,
    StandInMode,
    StandInProtocol,
)

# What is told of each. `at` is a broker of the network that is to be the neighbour, `between` another one that moves
# behind the new broker, `instead_of` a link: its ends with a comma. `also_lost` are others that will not come back. The
# broker `by`, which is found at these addresses, stands in for another; `hand-back` says where that one is found.
ACTIONS: Final = {
    "add-broker": ("id", "address", "peer_address", "at", "between"),
    "remove-broker": ("id", "lost", "also_lost", "at"),
    "add-link": ("one", "other", "instead_of"),
    "remove-link": ("one", "other"),
    "replace": ("id", "by", "address", "peer_address", "protocol", "mode", "also_lost"),
    "hand-back": ("id", "address", "peer_address"),
}
_NEEDED: Final = {
    "add-broker": ("id", "address", "peer_address", "at"),
    "remove-broker": ("id",),
    "add-link": ("one", "other"),
    "remove-link": ("one", "other"),
    "replace": ("id", "by", "address", "peer_address"),
    "hand-back": ("id", "address", "peer_address"),
}
YES: Final = "yes"


def change_of(action: str, told: Mapping[str, str]) -> Change | str:
    """What is asked for; or why it is nothing, in words that fit into an answer."""
    problem = misunderstood(action, told, ACTIONS)
    if problem:
        return problem
    missing = [name for name in _NEEDED[action] if not told.get(name)]
    if missing:
        return f"a change {action!r} has to say {' and '.join(map(repr, missing))}"
    match action:
        case "add-broker":
            return AddBroker(told["id"], told["address"], told["peer_address"], told["at"], told.get("between", ""))
        case "remove-broker":
            lost = told.get("lost", "")
            if lost not in (YES, ""):
                return f"'lost' is {shown(lost)}, and has to be {YES!r} or left out"
            if lost_beside(told) and not lost:
                return "who is 'also_lost' is so beside one that is 'lost'"
            return RemoveBroker(told["id"], lost == YES, told.get("at", ""))
        case "add-link":
            if "instead_of" not in told:
                return AddLink(told["one"], told["other"])
            replaced = _link(told["instead_of"])
            if replaced is None:
                return (
                    f"'instead_of' is {shown(told['instead_of'])}, and has to be two brokers with a comma between them"
                )
            return AddLink(told["one"], told["other"], replaced)
        case "replace":
            said = told.get("protocol", StandInProtocol.SYNCH.value)
            protocol = next((each for each in StandInProtocol if each.value == said), None)
            if protocol is None:
                known = ", ".join(each.value for each in StandInProtocol)
                return f"'protocol' is {shown(said)}, and has to be one of {known}"
            wanted = told.get("mode", StandInMode.FAILOVER.value)
            mode = next((each for each in StandInMode if each.value == wanted), None)
            if mode is None:
                known = ", ".join(each.value for each in StandInMode)
                return f"'mode' is {shown(wanted)}, and has to be one of {known}"
            return ReplaceBroker(told["id"], told["by"], told["address"], told["peer_address"], protocol, mode)
        case "hand-back":
            return HandBack(told["id"], told["address"], told["peer_address"])
        case _:
            return RemoveLink(told["one"], told["other"])


def lost_beside(told: Mapping[str, str]) -> list[str]:
    """Who is lost for good beside the one that is declared so: none of them makes the next map."""
    return [name.strip() for name in told.get("also_lost", "").split(",") if name.strip()]


def _link(text: str) -> Link | None:
    one, comma, other = text.partition(",")
    one, other = one.strip(), other.strip()
    return (one, other) if comma and one and other and "," not in other else None
