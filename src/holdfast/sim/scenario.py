"""A scenario: everything about one run, as data.

The brokers, the network, the disks, the clients, what the clients do and what goes wrong, with their times. A scenario
is drawn from a seed (`draw`), read from a file or written by hand; it is run by `run`, and running it twice gives the
same trace. Times are whole milliseconds or microseconds, as the field's name says, from the start of the run.

A run has two phases. Until `safety_ms`, faults happen; then every host is up and every way is open, and by
`safety_ms + liveness_ms` everything that was promised must have happened.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.errors import ScenarioError
from holdfast.protocols.sessions.messages import Overflow
from holdfast.sim.latency import Constant, Latency
from holdfast.sim.network import Adversary

SCENARIO_FORMAT = "holdfast-scenario"
SCENARIO_VERSION = 1


class _Data(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Broker(_Data, frozen=True, kw_only=True):
    """`durable`: has a disk and keeps its state there. Service times make a host busy, so that queues build up."""

    id: str
    durable: bool = False
    backlog_events: int = 10_000
    backlog_bytes: int = 8 * 1024 * 1024
    snapshot_every: int = 4_096
    away_ms: int = 120_000
    block_ms: int = 10_000
    sync_us: tuple[int, int] = (100, 5_000)
    service_us_per_turn: int = 0
    service_us_per_message: int = 0
    gather_us: int = 0


class Client(_Data, frozen=True, kw_only=True):
    """`consume_after_us`: how long its application needs before it has dealt with what it was handed."""

    id: str
    brokers: tuple[str, ...]
    resubscribe: bool = True
    publish_window: int = 1_024
    consume_after_us: int = 0
    gather_us: int = 0


class Network(_Data, frozen=True, kw_only=True):
    """With an adversary, messages may be lost, doubled or overtaken; without, links are as TCP's."""

    latency: Latency = Constant(delay_us=500)
    adversary: Adversary | None = None
    bytes_per_second: int = 0


# ---------------------------------------------------------------------------------------------------------- actions
class _Action(_Data, frozen=True, kw_only=True, tag_field="do"):
    at_ms: int
    client: str


class Subscribe(_Action, frozen=True, kw_only=True, tag="subscribe"):
    """Under a name, so that it can be ended; a client that was restarted makes its subscriptions again."""

    name: str
    filter: str
    overflow: Overflow = Overflow.DISCONNECT
    window: int = 1_024


class Unsubscribe(_Action, frozen=True, kw_only=True, tag="unsubscribe"):
    name: str


class ScenarioEvent(_Data, frozen=True, kw_only=True):
    attributes: dict[str, int | float | str | bool] = {}
    topic: str = ""
    payload_bytes: int = 0
    lifetime_ms: int = 0


class Publish(_Action, frozen=True, kw_only=True, tag="publish"):
    events: list[ScenarioEvent]
    retry: bool = True


Action: TypeAlias = Subscribe | Unsubscribe | Publish


# ----------------------------------------------------------------------------------------------------------- faults
class _Fault(_Data, frozen=True, kw_only=True, tag_field="fault"):
    at_ms: int
    for_ms: int


class Kill(_Fault, frozen=True, kw_only=True, tag="kill"):
    """The process is gone; its machine goes on."""

    host: str


class PowerCut(_Fault, frozen=True, kw_only=True, tag="power-cut"):
    """The machine is gone, with what was not safe on its disk; `wipe`: with the whole disk."""

    host: str
    wipe: bool = False


class Pause(_Fault, frozen=True, kw_only=True, tag="pause"):
    """The process stands still; everything that comes in meanwhile waits."""

    host: str


class Cut(_Fault, frozen=True, kw_only=True, tag="cut"):
    """Nothing gets from one host to another; `both`: nor back."""

    source: str
    target: str
    both: bool = True


class DiskFull(_Fault, frozen=True, kw_only=True, tag="disk-full"):
    """The disk takes nothing more; a node that finds out stops, and is started again when there is room."""

    host: str


class DiskSlow(_Fault, frozen=True, kw_only=True, tag="disk-slow"):
    host: str
    times: int = 20


class ClockJump(_Fault, frozen=True, kw_only=True, tag="clock-jump"):
    """The wall clock of a host is wrong by so much."""

    host: str
    by_ms: int


Fault: TypeAlias = Kill | PowerCut | Pause | Cut | DiskFull | DiskSlow | ClockJump


class Scenario(_Data, frozen=True, kw_only=True):
    """One run."""

    format: str = SCENARIO_FORMAT
    version: int = SCENARIO_VERSION
    name: str
    seed: int
    system: str = "tree"
    brokers: list[Broker]
    clients: list[Client]
    network: Network = Network()
    actions: list[Action]
    faults: list[Fault]
    safety_ms: int
    liveness_ms: int = 60_000
    checkers: list[str]


def scenario_to_json(scenario: Scenario) -> bytes:
    # Defaults are left out inside, but a file says what it is.
    document = {"format": SCENARIO_FORMAT, "version": SCENARIO_VERSION, **msgspec.to_builtins(scenario)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def scenario_from_json(text: bytes | str, where: str) -> Scenario:
    """Reads and checks a scenario; ScenarioError says what is wrong and where."""
    try:
        scenario = msgspec.json.decode(text, type=Scenario)
    except msgspec.DecodeError as error:
        raise ScenarioError(str(error), where, "correct the file; docs/simulator.md describes its fields") from error
    if scenario.format != SCENARIO_FORMAT or scenario.version != SCENARIO_VERSION:
        problem = f"this is {scenario.format} version {scenario.version}, not {SCENARIO_FORMAT} {SCENARIO_VERSION}"
        raise ScenarioError(problem, where, "write it anew with this version of Holdfast")
    check_scenario(scenario, where)
    return scenario


def check_scenario(scenario: Scenario, where: str) -> None:
    """Refuses names that no one has and times that can't be."""

    def refuse(problem: str, remedy: str) -> None:
        raise ScenarioError(problem, where, remedy)

    brokers = [broker.id for broker in scenario.brokers]
    clients = [client.id for client in scenario.clients]
    names = brokers + clients
    for name in names:
        if names.count(name) > 1:
            refuse(f"two hosts are called {name!r}", "give every broker and client a name of its own")
        if not name or ":" in name or "/" in name:
            refuse(f"{name!r} is no name for a host", "use a name without ':' and '/'")
    for client in scenario.clients:
        for broker in client.brokers:
            if broker not in brokers:
                refuse(f"client {client.id!r} connects to {broker!r}", f"name one of {', '.join(brokers)}")
        if not client.brokers:
            refuse(f"client {client.id!r} has no broker", f"name one of {', '.join(brokers)}")
    for action in scenario.actions:
        if action.client not in clients:
            refuse(f"an action is by {action.client!r}", f"name one of {', '.join(clients)}")
        if action.at_ms < 0:
            refuse(f"an action of {action.client!r} is at {action.at_ms} ms", "times begin at 0")
    for fault in scenario.faults:
        hosts = [fault.source, fault.target] if isinstance(fault, Cut) else [fault.host]
        for host in hosts:
            if host not in names:
                refuse(f"a fault concerns {host!r}", f"name one of {', '.join(names)}")
        if fault.at_ms < 0 or fault.for_ms < 0:
            refuse(f"a fault is at {fault.at_ms} ms for {fault.for_ms} ms", "times begin at 0")
    if scenario.safety_ms < 0 or scenario.liveness_ms < 0:
        refuse("a phase is shorter than nothing", "give safety_ms and liveness_ms as 0 or more")
