"""Scenarios as files: written, read and checked; one that can't be played is refused, with what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import NoReturn

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site_text import NAME
from holdfast.errors import ScenarioError, TopologyError
from holdfast.kernel.settings import choices
from holdfast.protocols.operating.changes import misunderstood
from holdfast.sim.scenario import (
    OPERATORS_PATIENCE_MS,
    SCENARIO_FORMAT,
    SCENARIO_VERSION,
    Action,
    Advertise,
    Cut,
    DiskFull,
    DiskSlow,
    Reset,
    Scenario,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    hosts_of,
)
from holdfast.sim.swarm import Refuse, swarm_of
from holdfast.topology.graph import BrokerGraph
from holdfast.trace.checkers import make_checker
from holdfast.trace.errors import UnknownChecker

REMEDY = "correct the file; docs/simulator.md describes its fields"
NAME_REMEDY = "use letters, digits, '_', '.' and '-', up to 64, a letter or digit first"


def scenario_to_json(scenario: Scenario) -> bytes:
    # Defaults are left out inside, but a file says what it is.
    document = {"format": SCENARIO_FORMAT, "version": SCENARIO_VERSION, **msgspec.to_builtins(scenario)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


class _Kind(msgspec.Struct):
    """What a file says that it is; the rest is skipped."""

    format: str = ""
    version: int = 0


def scenario_from_json(text: bytes | str, where: str) -> Scenario:
    """Reads and checks a scenario; ScenarioError says what is wrong and where."""
    try:
        # First of all, since a newer version has fields that this one would take for mistakes.
        kind = msgspec.json.decode(text, type=_Kind)
        if kind.format != SCENARIO_FORMAT or kind.version != SCENARIO_VERSION:
            problem = (
                f"this is {kind.format!r} version {kind.version}, not {SCENARIO_FORMAT!r} version {SCENARIO_VERSION}"
            )
            raise ScenarioError(problem, where, "write it anew with this version of Holdfast")
        scenario = msgspec.json.decode(text, type=Scenario)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ScenarioError(str(error), where, REMEDY) from error
    check_scenario(scenario, where)
    return scenario


def check_scenario(scenario: Scenario, where: str) -> None:
    """Refuses values that can't be, names that no one has, and what a host can't do."""

    def refuse(problem: str, remedy: str) -> NoReturn:
        raise ScenarioError(problem, where, remedy)

    try:
        # One that was made in a program may hold what no file could.
        msgspec.convert(msgspec.to_builtins(scenario), Scenario)
    except (msgspec.ValidationError, TypeError) as error:
        refuse(str(error), REMEDY)
    brokers = {broker.id: broker for broker in scenario.brokers}
    clients = {client.id: client for client in scenario.clients}
    names = Counter([broker.id for broker in scenario.brokers] + [client.id for client in scenario.clients])
    for name, count in names.items():
        if count > 1:
            refuse(f"{count} hosts are called {name!r}", "give every broker and client a name of its own")
        if not NAME.fullmatch(name):
            refuse(f"{name[:64]!r} is no name for a host", NAME_REMEDY)
    for name in scenario.down:
        if name not in brokers:
            refuse(f"{name[:64]!r} is to stay down, and is no broker", "name brokers of the scenario")
    if not NAME.fullmatch(scenario.name):
        refuse(f"{scenario.name[:64]!r} is no name for a scenario", NAME_REMEDY)
    for broker in scenario.brokers:
        if broker.sync_us[0] > broker.sync_us[1]:
            refuse(f"sync_us of broker {broker.id!r} is {broker.sync_us}", "give the shortest time first")
        if broker.starts_ms >= max(scenario.safety_ms, 1):
            refuse(f"broker {broker.id!r} starts at {broker.starts_ms} ms", f"start before {scenario.safety_ms} ms")
    for client in scenario.clients:
        for broker_id in client.brokers:
            if broker_id not in brokers:
                refuse(f"client {client.id!r} connects to {broker_id!r}", f"name one of {_listed(brokers)}")
        if client.light and (client.consume_after_us or client.gather_us):
            refuse(f"client {client.id!r} is light and takes its time", "leave out consume_after_us and gather_us")
        if not client.brokers:
            refuse(f"client {client.id!r} has no broker", f"name one of {_listed(brokers)}")
    for action in scenario.actions:
        actor = clients.get(action.client)
        if actor is None:
            refuse(f"an action is by {action.client!r}", f"name one of {_listed(clients)}")
        elif actor.light and not isinstance(action, Subscribe | Unsubscribe):
            problem = f"client {actor.id!r} does more than subscribe, and is light"
            refuse(problem, "let a client do that which is not light")
    _check_actions(scenario, refuse)
    _check_scheme(scenario, refuse)
    _check_operations(scenario, brokers, refuse)
    for fault in scenario.faults:
        if fault.at_ms >= scenario.safety_ms:
            refuse(f"a fault begins at {fault.at_ms} ms, when all is healed", f"begin before {scenario.safety_ms} ms")
        for host in hosts_of(fault):
            if host not in names:
                refuse(f"a fault concerns {host!r}", f"name one of {_listed(names)}")
        if isinstance(fault, Cut | Reset) and fault.source == fault.target:
            refuse(f"a fault lies between {fault.source!r} and itself", "name two hosts")
        if isinstance(fault, DiskFull | DiskSlow) and not (fault.host in brokers and brokers[fault.host].durable):
            refuse(f"a fault concerns the disk of {fault.host!r}, which has none", "name a durable broker")
    if not scenario.checkers:
        refuse("no checker is named", "name one, or the run proves nothing")
    for checker in scenario.checkers:
        _, colon, argument = checker.partition(":")
        if colon and argument not in brokers:
            refuse(f"{checker!r} speaks of broker {argument!r}", f"name one of {_listed(brokers)}")
        try:
            make_checker(checker, swarm_of(scenario.system).checkers)
        except UnknownChecker as error:
            raise ScenarioError(str(error), where, "name a checker of holdfast.trace.checkers") from error


def _check_actions(scenario: Scenario, refuse: Refuse) -> None:
    """Refuses what would silently do nothing."""
    end = scenario.safety_ms + scenario.liveness_ms
    made: set[tuple[type[Action], str, str]] = set()
    for action in scenario.actions:
        if action.at_ms > end:
            refuse(f"an action of {action.client!r} is at {action.at_ms} ms", f"the run ends at {end} ms")
        if isinstance(action, Subscribe | Advertise):
            key = (type(action), action.client, action.name)
            if key in made:
                does = "subscribes" if isinstance(action, Subscribe) else "advertises"
                refuse(f"{action.client!r} {does} twice under the name {action.name!r}", "use another name")
            made.add(key)
    for action in scenario.actions:
        if isinstance(action, Unsubscribe) and (Subscribe, action.client, action.name) not in made:
            refuse(f"{action.client!r} ends {action.name!r}, which it never subscribes to", "name a subscription of it")
        if isinstance(action, Unadvertise) and (Advertise, action.client, action.name) not in made:
            refuse(f"{action.client!r} ends {action.name!r}, which it never advertises", "name one that it makes")


def _check_operations(scenario: Scenario, brokers: Container[str], refuse: Refuse) -> None:
    latest, known = scenario.safety_ms + OPERATORS_PATIENCE_MS, swarm_of(scenario.system).operations
    for operation in scenario.operations:
        if not known:
            refuse(f"an operator asks for a change, and runs of {scenario.system!r} have none", "leave it out")
        if problem := misunderstood(operation.action, operation.told, known):
            refuse(problem, REMEDY)
        if operation.at_ms > latest:
            refuse(f"an operator asks at {operation.at_ms} ms", f"operators ask until {latest} ms")
        if operation.ends and operation.ends not in brokers:
            refuse(f"an operator ends {operation.ends[:64]!r}, which is no broker", "name brokers of the scenario")


def _check_scheme(scenario: Scenario, refuse: Refuse) -> None:
    """Refuses settings that the scheme does not have, and what it can't be."""
    if scenario.system not in SCHEMES:
        refuse(f"there is no scheme {scenario.system!r}", f"name one of {_listed(SCHEMES.kinds)}")
    known = choices(type(swarm_of(scenario.system).settings))
    for key, value in scenario.settings.items():
        if key not in known:
            refuse(f"there is no setting {key!r} of {scenario.system!r}", f"name one of {_listed(known)}")
        if problem := known[key].problem(value):
            refuse(f"the setting {key!r} is {value!r}, and {problem}", REMEDY)
    if scenario.links and not SCHEMES[scenario.system].has_links:
        refuse(f"links are described, and {scenario.system!r} has none", "leave them out")
    for broker in scenario.brokers:
        if broker.spare and not SCHEMES[scenario.system].has_spares:
            refuse(f"broker {broker.id!r} is spare, and {scenario.system!r} has no spares", "let it take part")
    try:
        BrokerGraph([broker.id for broker in scenario.brokers], scenario.links)
    except TopologyError as error:
        refuse(error.problem, "correct the links")
    swarm_of(scenario.system).check(scenario, refuse)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "those that there are (there is none)"
