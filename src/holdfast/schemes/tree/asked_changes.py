"""Changes of a network in scenarios: what operators may ask for there, and what checkers are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    HandBack,
    RemoveBroker,
    RemoveLink,
    ReplaceBroker,
    StandInMode,
    StandInProtocol,
)
from holdfast.schemes.tree.operations import asked_of
from holdfast.schemes.tree.settings import SLA
from holdfast.sim.scenario import Operate, Scenario, lost_by
from holdfast.sim.swarm import Refuse

# How long a word takes at most from one broker to the next, where nothing fails and links carry much: on its way,
# on two disks and in the inputs that a broker gathers.
PROMPT_MS: Final = 500


def change_of(action: str, told: Mapping[str, str]) -> Change | None:
    """What an operator asks for, as a value; None if it is nothing that there is."""
    places = (told.get("address", ""), told.get("peer_address", ""))
    match action:
        case "add-broker":
            return AddBroker(told.get("id", ""), *places, told.get("at", ""), told.get("between", ""))
        case "remove-broker":
            return RemoveBroker(told.get("id", ""), bool(told.get("lost")), told.get("at", ""))
        case "add-link":
            one, _, other = told.get("instead_of", "").partition(",")
            return AddLink(told.get("one", ""), told.get("other", ""), (one, other) if one else None)
        case "remove-link":
            return RemoveLink(told.get("one", ""), told.get("other", ""))
        case "replace":
            protocol = StandInProtocol(told.get("protocol", StandInProtocol.SYNCH.value))
            mode = StandInMode(told.get("mode", StandInMode.FAILOVER.value))
            return ReplaceBroker(told.get("id", ""), told.get("by", ""), *places, protocol, mode, asked=True)
        case "relieve":
            mode = StandInMode.HAND_OVER
            return ReplaceBroker(told.get("id", ""), told.get("by", ""), *places, mode=mode, asked=True)
        case "hand-back":
            return HandBack(told.get("id", ""), *places)
        case _:
            return None


def operation_of(change: Change, at_ms: int, ends_after_ms: int | None = None) -> Operate:
    """How an operator asks for a change; a broker that goes is ended so long after it has gone."""
    action, told = asked_of(change)
    if not isinstance(change, RemoveBroker) or change.lost or ends_after_ms is None:
        return Operate(at_ms=at_ms, action=action, told=told)
    return Operate(at_ms=at_ms, action=action, told=told, ends=change.name, ends_after_ms=ends_after_ms)


def wanderers(scenario: Scenario) -> list[str]:
    """Clients that may come to another broker: they have several, or theirs may be a member for part of the run only,
    and sends them away."""
    if scenario.settings.get(SLA):
        return [client.id for client in scenario.clients]  # any broker may come to be replaced
    passing = {broker.id for broker in scenario.brokers if broker.spare}
    passing |= {operation.told.get("id", "") for operation in scenario.operations}
    return [client.id for client in scenario.clients if len(client.brokers) > 1 or set(client.brokers) & passing]


def check_operations(scenario: Scenario, refuse: Refuse) -> None:
    """Refuses what nobody could carry out, and what would break a network that its checkers expect to be whole."""
    names = {broker.id for broker in scenario.brokers}
    lost = lost_by(scenario.faults)
    for operation in scenario.operations:
        told, change = operation.told, change_of(operation.action, operation.told)
        if isinstance(change, ReplaceBroker | HandBack) and not set(told.values()) & names:
            refuse(f"an operator asks for {told}, and there are no such brokers", "name brokers of the scenario")
        if isinstance(change, AddBroker) and not {change.name, change.client_address, change.peer_address} <= names:
            remedy = "name brokers of the scenario; their addresses are their names"
            refuse(f"an operator adds {told}, and there is no such broker", remedy)
        if (
            isinstance(change, RemoveBroker)
            and change.lost
            and lost.get(change.name, operation.at_ms) >= operation.at_ms
        ):
            refuse(f"{change.name!r} is declared lost, and is not", "let a fault take it for ever before that")
        if operation.ends and (not isinstance(change, RemoveBroker) or operation.ends != change.name):
            refuse(f"an operator ends {operation.ends!r} after {operation.action!r}", "end a broker that is removed")


def header_of_changes(scenario: Scenario) -> dict[str, Any]:
    """What checkers have to know of a run in which the network changes."""
    said: dict[str, Any] = {"changes": True}
    by_itself = bool(scenario.settings.get(SLA))
    taking = [operation for operation in scenario.operations if operation.action in ("replace", "relieve")]
    replaced = [operation.told.get("id", "") for operation in taking]
    replaced += [broker.id for broker in scenario.brokers] if by_itself else []
    if replaced:
        said["replaced"] = list(dict.fromkeys(replaced))
    said["spares"] = [broker.id for broker in scenario.brokers if broker.spare]
    said["forgetful"] = [broker.id for broker in scenario.brokers if not broker.durable]
    if not scenario.network.bytes_per_second:
        said["prompt_ms"] = PROMPT_MS
    return said
