"""A scenario: everything about one run, as data.

The brokers, the network, the disks, the clients, what the clients do and what goes wrong, with their times. A scenario
is drawn from a seed (`draw`), read from a file or written by hand; it is run by `run`, and running it twice gives the
same trace. Times are whole milliseconds or microseconds, as the field's name says, from the start of the run.

A run has two phases. Until `safety_ms`, faults happen; then every host is up and every way is open, and by
`safety_ms + liveness_ms` everything that was promised must have happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from holdfast.broker.site import ApplicationEntry
from holdfast.broker.site_text import NAME
from holdfast.errors import ScenarioError, TopologyError, UnknownChecker
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import PAYLOAD_BYTES_MAX
from holdfast.protocols.failure.settings import DetectorSettings
from holdfast.protocols.paxos.ballots import tolerated
from holdfast.protocols.paxos.settings import Protocol
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.protocols.sessions.messages import Overflow
from holdfast.sim.latency import Constant, Latency
from holdfast.sim.network import Adversary
from holdfast.topology.overlay import Overlay
from holdfast.trace.checkers import make_checker

SCENARIO_FORMAT = "holdfast-scenario"
SCENARIO_VERSION = 1
REMEDY = "correct the file; docs/simulator.md describes its fields"
NAME_REMEDY = "use letters, digits, '_', '.' and '-', up to 64, a letter or digit first"
WINDOW_MAX = 65_536  # of a subscription: brokers grant no more
GROUP_SIZES = (1, 3, 4, 5, 7, 9)

# Large enough for anything that is meant, and small enough to be nanoseconds of 64 bits.
Whole = Annotated[int, Meta(ge=0, le=10**12)]
Positive = Annotated[int, Meta(ge=1, le=10**12)]
Time = Annotated[int, Meta(ge=0, le=10**10)]


class _Data(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Broker(_Data, frozen=True, kw_only=True):
    """`durable`: has a disk and keeps its state there. Service times make a host busy, so that queues build up.

    `tick_ms`, `silent_ms`, `repeat_ms`, `retain_ms`: how often it looks after its clients, when it gives up a link on
    which nothing comes, when it sends again what was not confirmed, and how often it looks for events to give up. Runs
    of days want them longer, with those of `Client`.
    """

    id: str
    durable: bool = False
    sessions: Positive = 100_000
    subscriptions_per_session: Positive = 1_000
    backlog_events: Positive = 10_000
    backlog_bytes: Positive = 8 * 1024 * 1024
    snapshot_every: Positive = 4_096
    away_ms: Whole = 120_000
    block_ms: Whole = 10_000
    tick_ms: Positive = 500
    silent_ms: Positive = 15_000
    repeat_ms: Positive = 1_000
    retain_ms: Positive = 5_000
    sync_us: tuple[Whole, Whole] = (100, 5_000)
    service_us_per_turn: Whole = 0
    service_us_per_message: Whole = 0
    gather_us: Whole = 0
    starts_ms: Time = 0  # until then it was never there


class Group(_Data, frozen=True, kw_only=True):
    """How the brokers of a group agree; `holdfast.protocols.paxos.settings` says what each means."""

    protocol: Protocol = Protocol.BATCH
    pipeline: Positive = 10
    batch_commands: Positive = 256
    heartbeat_ms: Positive = 50
    patience_ms: Positive = 300
    trim_every: Positive = 2_000
    trim_keep: Whole = 500
    trim_ratio: Whole = 1
    part_bytes: Positive = 256 * 1024


class Routing(_Data, frozen=True, kw_only=True):
    """How the brokers of a network work together; `holdfast.protocols.routing.settings` says what each means."""

    links: list[tuple[str, str]]
    reliability: Reliability = Reliability.NONE
    advertisements: bool = True
    covering: bool = True
    ask_neighbours: bool = True
    refresh_ms: Positive = 1_000
    expire_ms: Positive = 3_500
    settle_ms: Whole = 2_000
    restore_ms: Positive = 1_500
    retransmit_ms: Positive = 1_000
    dial_ms: Positive = 250
    heartbeat_ms: Positive = 600
    suspect_ms_min: Positive = 1_500
    suspect_ms_max: Positive = 3_000
    store_bytes: Positive = 256 * 1024 * 1024
    queue_bytes: Positive = 8 * 1024 * 1024
    duplicates_remembered: Positive = 65_536


class Application(_Data, frozen=True, kw_only=True):
    """What the brokers host, as a site names it; `topics` are those that it wants to see, so that some events have
    them."""

    factory: str
    settings: dict[str, Any] = {}
    topics: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ApplicationEntry(factory=self.factory, settings=self.settings).name


class Client(_Data, frozen=True, kw_only=True):
    """`consume_after_us`: how long its application needs before it has dealt with what it was handed.

    `light`: it only subscribes and receives, and costs little; see `holdfast.sim.light`.

    `ping_ms`, `pause_ms_max`, `report_ms`: how often it says that it is there (it gives up a broker that is silent for
    three times as long), the longest pause between attempts to connect, and when it reports what it got, at the latest.
    """

    id: str
    brokers: tuple[str, ...]
    resubscribe: bool = True
    publish_window: Positive = 1_024
    batch_events: Positive = 256
    consume_after_us: Whole = 0
    gather_us: Whole = 0
    ping_ms: Positive = 5_000
    pause_ms_max: Positive = 5_000
    report_ms: Positive = 10
    light: bool = False


class Network(_Data, frozen=True, kw_only=True):
    """With an adversary, messages may be lost, doubled or overtaken; without, links are as TCP's."""

    latency: Latency = Constant(delay_us=500)
    adversary: Adversary | None = None
    bytes_per_second: Whole = 0


# ---------------------------------------------------------------------------------------------------------- actions
class _Action(_Data, frozen=True, kw_only=True, tag_field="do"):
    at_ms: Time
    client: str


class Subscribe(_Action, frozen=True, kw_only=True, tag="subscribe"):
    """Under a name, so that it can be ended; a client that was restarted makes its subscriptions again."""

    name: str
    filter: str
    overflow: Overflow = Overflow.DISCONNECT
    window: Annotated[int, Meta(ge=1, le=WINDOW_MAX)] = 1_024


class Unsubscribe(_Action, frozen=True, kw_only=True, tag="unsubscribe"):
    name: str


class Advertise(_Action, frozen=True, kw_only=True, tag="advertise"):
    """Says what the client will publish: from then on, nothing else."""

    name: str
    filter: str


class Unadvertise(_Action, frozen=True, kw_only=True, tag="unadvertise"):
    name: str


class Close(_Action, frozen=True, kw_only=True, tag="close"):
    """The client says goodbye, and does nothing more in this life."""


class ScenarioEvent(_Data, frozen=True, kw_only=True):
    attributes: dict[str, int | float | str | bool] = {}
    topic: str = ""
    payload_bytes: Annotated[int, Meta(ge=0, le=PAYLOAD_BYTES_MAX)] = 0
    payload_text: Annotated[str, Meta(max_length=PAYLOAD_BYTES_MAX // 4)] = ""  # what those bytes follow
    lifetime_ms: Time = 0


class Publish(_Action, frozen=True, kw_only=True, tag="publish"):
    events: list[ScenarioEvent]
    retry: bool = True


class Ask(_Action, frozen=True, kw_only=True, tag="ask"):
    """A request to the application that the brokers host."""

    request: str


Action: TypeAlias = Subscribe | Unsubscribe | Advertise | Unadvertise | Publish | Ask | Close


# ----------------------------------------------------------------------------------------------------------- faults
class _Fault(_Data, frozen=True, kw_only=True, tag_field="fault"):
    at_ms: Time
    for_ms: Time


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


class Reset(_Fault, frozen=True, kw_only=True, tag="reset"):
    """The link between two hosts breaks, with all that is on its way; both ends live, and may make another."""

    for_ms: Time = 0
    source: str
    target: str


class DiskFull(_Fault, frozen=True, kw_only=True, tag="disk-full"):
    """The disk takes nothing more; a node that finds out stops, and is started again when there is room."""

    host: str


class DiskSlow(_Fault, frozen=True, kw_only=True, tag="disk-slow"):
    host: str
    times: Positive = 20


class ClockJump(_Fault, frozen=True, kw_only=True, tag="clock-jump"):
    """The wall clock of a host is wrong by so much."""

    host: str
    by_ms: Annotated[int, Meta(ge=-(10**11), le=10**11)]


Fault: TypeAlias = Kill | PowerCut | Pause | Cut | Reset | DiskFull | DiskSlow | ClockJump


def hosts_of(fault: Fault) -> tuple[str, ...]:
    """Whom it concerns."""
    return (fault.source, fault.target) if isinstance(fault, Cut | Reset) else (fault.host,)


class Storm(_Data, frozen=True, kw_only=True):
    """More than so much happens only when nodes answer each other without end; the run fails then."""

    steps: Annotated[int, Meta(ge=1)]  # turns of all nodes
    sent_bytes: Annotated[int, Meta(ge=1)]  # of all messages


class Scenario(_Data, frozen=True, kw_only=True):
    """One run."""

    format: str = SCENARIO_FORMAT
    version: int = SCENARIO_VERSION
    name: str
    seed: int
    system: Literal["tree", "paxos"] = "tree"
    group: Group | None = None  # of a paxos system; left out, it is as a site's that says nothing
    routing: Routing | None = None  # of a tree; left out, its brokers know nothing of each other
    brokers: list[Broker]
    clients: list[Client]
    network: Network = Network()
    actions: list[Action]
    faults: list[Fault]
    safety_ms: Time
    liveness_ms: Time = 60_000
    down: list[str] = []  # brokers that are down from `safety_ms` on, when all others are healed: others do without
    storm: Storm | None = None  # when a run is given up as one; left out, it may take whatever it takes
    checkers: list[str]
    application: Application | None = None


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


def overlay_of(scenario: Scenario, routing: Routing) -> Overlay:
    return Overlay([broker.id for broker in scenario.brokers], routing.links)


def routing_settings(scenario: Scenario, name: str) -> RoutingSettings | None:
    """What one broker of the scenario's network is told."""
    said = scenario.routing
    if said is None:
        return None
    return RoutingSettings(
        name,
        overlay_of(scenario, said),
        {},
        said.reliability,
        said.advertisements,
        said.covering,
        detector=DetectorSettings(
            said.heartbeat_ms * MILLISECOND, said.suspect_ms_min * MILLISECOND, said.suspect_ms_max * MILLISECOND
        ),
        dial_every=said.dial_ms * MILLISECOND,
        refresh=said.refresh_ms * MILLISECOND,
        expire=said.expire_ms * MILLISECOND,
        ask_neighbours=said.ask_neighbours,
        settle=said.settle_ms * MILLISECOND,
        restore=said.restore_ms * MILLISECOND,
        retransmit=said.retransmit_ms * MILLISECOND,
        store_bytes=said.store_bytes,
        queue_bytes=said.queue_bytes,
        duplicates_remembered=said.duplicates_remembered,
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "those that there are (there is none)"
