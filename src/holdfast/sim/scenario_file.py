"""Scenarios as files: written, read and checked; one that can't be played is refused, with what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from holdfast.broker.site_text import NAME
from holdfast.errors import ScenarioError, TopologyError, UnknownChecker
from holdfast.protocols.paxos.ballots import tolerated
from holdfast.sim.scenario import (
    SCENARIO_FORMAT,
    SCENARIO_VERSION,
    Action,
    Advertise,
    Broker,
    Cut,
    DiskFull,
    DiskSlow,
    PowerCut,
    Reset,
    Scenario,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    hosts_of,
    overlay_of,
)
from holdfast.trace.checkers import make_checker

REMEDY = "correct the file; docs/simulator.md describes its fields"
NAME_REMEDY = "use letters, digits, '_', '.' and '-', up to 64, a letter or digit first"
GROUP_SIZES = (1, 3, 4, 5, 7, 9)


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

    def refuse(problem: str, remedy: str) -> None:
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
    _check_group(scenario, refuse)
    _check_routing(scenario, refuse)
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
            make_checker(checker)
        except UnknownChecker as error:
            raise ScenarioError(str(error), where, "name a checker of holdfast.trace.checkers") from error


def _check_actions(scenario: Scenario, refuse: Callable[[str, str], None]) -> None:
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


def _check_group(scenario: Scenario, refuse: Callable[[str, str], None]) -> None:
    """Refuses groups that could not be formed, or whose brokers would not come to the same state."""
    if scenario.system != "paxos":
        if scenario.group is not None:
            refuse(f"a group is described, and the system is {scenario.system!r}", 'say "system": "paxos"')
        return
    names = [broker.id for broker in scenario.brokers]
    if len(names) not in GROUP_SIZES:
        refuse(f"a group of {len(names)} brokers", f"make it one of {', '.join(map(str, GROUP_SIZES))}")
    first = scenario.brokers[0]
    for broker in scenario.brokers:
        if not broker.durable:
            refuse(
                f"broker {broker.id!r} is of a group, and has no disk", 'say "durable": true: it must keep its votes'
            )
        if broker.snapshot_every != Broker(id="").snapshot_every:
            refuse(f"broker {broker.id!r} has snapshot_every", "say trim_every of the group instead")
        for limit in ("sessions", "subscriptions_per_session", "backlog_events", "backlog_bytes"):
            if getattr(broker, limit) != getattr(first, limit):
                refuse(f"{limit} of {broker.id!r} and of {first.id!r} differ", "give a group's brokers the same limits")
    for client in scenario.clients:
        missing = [name for name in names if name not in client.brokers]
        if missing:
            refuse(f"client {client.id!r} does not know {_listed(missing)}", "name all brokers of the group")
    wiped = {fault.host for fault in scenario.faults if isinstance(fault, PowerCut) and fault.wipe} & set(names)
    if len(wiped) > tolerated(len(names)):
        problem = f"the disks of {_listed(sorted(wiped))} are wiped, and a wiped replica never votes again"
        refuse(problem, f"wipe those of {tolerated(len(names))} at most, or nothing can be decided")


def _check_routing(scenario: Scenario, refuse: Callable[[str, str], None]) -> None:
    """Refuses networks that no site file could describe."""
    routing = scenario.routing
    if routing is None:
        return
    if scenario.system != "tree":
        refuse(f"routing is described, and the system is {scenario.system!r}", 'say "system": "tree"')
    try:
        overlay = overlay_of(scenario, routing)
        overlay.spanning_tree()
    except TopologyError as error:
        refuse(error.problem, "correct the links")
    if overlay.has_cycle and not routing.reliability.detours:
        refuse(f"the links form a cycle, which {routing.reliability.value!r} has no use for", "leave a link out")
    for broker in scenario.brokers:
        if routing.reliability.buffers and not broker.durable:
            refuse(f"broker {broker.id!r} has no disk, and is to buffer", 'say "durable": true')


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "those that there are (there is none)"
