"""A scenario: everything about one run, as data.

The brokers, the network, the disks, the clients, what the clients do and what goes wrong, with their times. A scenario
is drawn from a seed (`draw`), read from a file or written by hand; it is run by `run`, and running it twice gives the
same trace. Times are whole milliseconds or microseconds, as the field's name says, from the start of the run.

A run has two phases. Until `safety_ms`, faults happen; then every host is up and every way is open, and by
`safety_ms + liveness_ms` everything that was promised must have happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import ApplicationEntry
from holdfast.kernel.settings import Written
from holdfast.model.event import PAYLOAD_BYTES_MAX
from holdfast.protocols.sessions.messages import Overflow
from holdfast.sim.latency import Constant, Latency
from holdfast.sim.network import Adversary

SCENARIO_FORMAT = "holdfast-scenario"
SCENARIO_VERSION = 2
WINDOW_MAX = 65_536  # of a subscription: brokers grant no more
OPERATORS_PATIENCE_MS = 5_000  # from when all is healed

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
    repeat_ms: Positive = 3_000
    retain_ms: Positive = 5_000
    sync_us: tuple[Whole, Whole] = (100, 5_000)
    service_us_per_turn: Whole = 0
    service_us_per_message: Whole = 0
    gather_us: Whole = 0
    starts_ms: Time = 0  # until then it was never there
    spare: bool = False  # runs, and takes part when it is asked to


class HostedApplication(_Data, frozen=True, kw_only=True):
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


# ------------------------------------------------------------------------------------------------------- operations
class Operate(_Data, frozen=True, kw_only=True):
    """An operator asks for a change of who works together and how: again, while nobody is there who may begin it or
    another change is under way, until `OPERATORS_PATIENCE_MS` after the faults.

    `action` and `told` are what the scheme knows. `ends`: a broker whose process the operator ends, for good, so long
    after the others have let it go.
    """

    at_ms: Time
    action: str
    told: dict[str, str] = {}
    ends: str = ""
    ends_after_ms: Whole = 2_000


# ----------------------------------------------------------------------------------------------------------- faults
class _Fault(_Data, frozen=True, kw_only=True, tag_field="fault"):
    at_ms: Time
    for_ms: Time


class Kill(_Fault, frozen=True, kw_only=True, tag="kill"):
    """The process is gone; its machine goes on. `for_ever`: it is never started again, not even when all is healed."""

    host: str
    for_ever: bool = False


class PowerCut(_Fault, frozen=True, kw_only=True, tag="power-cut"):
    """The machine is gone, with what was not safe on its disk; `wipe`: with the whole disk; `for_ever`: as `Kill`."""

    host: str
    wipe: bool = False
    for_ever: bool = False


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


def lost_by(faults: Iterable[Fault]) -> dict[str, int]:
    """Who never comes back → from when on, in milliseconds."""
    lost: dict[str, int] = {}
    for fault in faults:
        if isinstance(fault, Kill | PowerCut) and fault.for_ever:
            lost[fault.host] = min(fault.at_ms, lost.get(fault.host, fault.at_ms))
    return lost


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
    system: str = SCHEMES.kinds[0]  # the kind of its scheme; as in a site file, the first if none is said
    settings: dict[str, Written] = {}  # of the scheme, as a site file writes them; others are the simulator's
    links: list[tuple[str, str]] = []  # between brokers, where the scheme has some; without, they know of no other
    brokers: list[Broker]
    clients: list[Client]
    network: Network = Network()
    actions: list[Action]
    operations: list[Operate] = []
    faults: list[Fault]
    safety_ms: Time
    liveness_ms: Time = 60_000
    down: list[str] = []  # brokers that are down from `safety_ms` on, when all others are healed: others do without
    storm: Storm | None = None  # when a run is given up as one; left out, it may take whatever it takes
    checkers: list[str]
    application: HostedApplication | None = None
