"""What operators ask of a network, as values of its map. Whether they go with the map, the map says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from holdfast.protocols.operating.changes import misunderstood, shown
from holdfast.protocols.routing.network_map import (
    REPLACING,
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
# broker `by`, which is found at these addresses, stands in for another that has failed or is slow, or with `relieve`
# for one that runs and is to be stopped; `hand-back` says where that one is found.
ACTIONS: Final = {
    "add-broker": ("id", "address", "peer_address", "at", "between"),
    "remove-broker": ("id", "lost", "also_lost", "at"),
    "add-link": ("one", "other", "instead_of"),
    "remove-link": ("one", "other"),
    "replace": ("id", "by", "address", "peer_address", "protocol", "mode", "also_lost"),
    "relieve": ("id", "by", "address", "peer_address"),
    "hand-back": ("id", "address", "peer_address"),
}
_NEEDED: Final = {
    "add-broker": ("id", "address", "peer_address", "at"),
    "remove-broker": ("id",),
    "add-link": ("one", "other"),
    "remove-link": ("one", "other"),
    "replace": ("id", "by", "address", "peer_address"),
    "relieve": ("id", "by", "address", "peer_address"),
    "hand-back": ("id", "address", "peer_address"),
}
YES: Final = "yes"
NOBODY: Final = "-"  # that is named


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
            mode = next((each for each in REPLACING if each.value == wanted), None)
            if mode is None:
                known = ", ".join(each.value for each in REPLACING)
                return f"'mode' is {shown(wanted)}, and has to be one of {known}"
            places = (told["address"], told["peer_address"])
            return ReplaceBroker(told["id"], told["by"], *places, protocol, mode, asked=True)
        case "relieve":
            places = (told["address"], told["peer_address"])
            return ReplaceBroker(told["id"], told["by"], *places, mode=StandInMode.HAND_OVER, asked=True)
        case "hand-back":
            return HandBack(told["id"], told["address"], told["peer_address"])
        case _:
            return RemoveLink(told["one"], told["other"])


def unnamed_replacement(action: str, told: Mapping[str, str]) -> tuple[str, StandInMode, StandInProtocol] | str:
    """Which broker is to be replaced, and how, by whoever is free; or why that is nothing."""
    change = change_of(action, {**told, "by": NOBODY, "address": NOBODY, "peer_address": NOBODY})
    if isinstance(change, str):
        return change
    if not isinstance(change, ReplaceBroker) or lost_beside(told):
        return "who is 'also_lost' is said with the stand-in: name it by 'by'"
    return change.name, change.mode, change.protocol


def asked_of(change: Change) -> tuple[str, dict[str, str]]:
    """The action, and what is told of it: how an operator would ask for a change."""
    match change:
        case AddBroker(name, client_address, peer_address, at, between):
            told = {"id": name, "address": client_address, "peer_address": peer_address, "at": at, "between": between}
            action = "add-broker"
        case RemoveBroker(name, lost, at):
            action, told = "remove-broker", {"id": name, "lost": YES if lost else "", "at": at}
        case AddLink(one, other, instead_of):
            action, told = "add-link", {"one": one, "other": other, "instead_of": ",".join(instead_of or ())}
        case RemoveLink(one, other):
            action, told = "remove-link", {"one": one, "other": other}
        case ReplaceBroker(name, by, client_address, peer_address, protocol, mode):
            action, told = "relieve", {"id": name, "by": by, "address": client_address, "peer_address": peer_address}
            if mode is not StandInMode.HAND_OVER:
                action, told = "replace", {**told, "protocol": protocol.value, "mode": mode.value}
        case HandBack(name, client_address, peer_address):
            action, told = "hand-back", {"id": name, "address": client_address, "peer_address": peer_address}
        case _:
            assert_never(change)
    return action, {name: text for name, text in told.items() if text}


def lost_beside(told: Mapping[str, str]) -> list[str]:
    """Who is lost for good beside the one that is declared so: none of them makes the next map."""
    return [name.strip() for name in told.get("also_lost", "").split(",") if name.strip()]


def _link(text: str) -> Link | None:
    one, comma, other = text.partition(",")
    one, other = one.strip(), other.strip()
    return (one, other) if comma and one and other and "," not in other else None
