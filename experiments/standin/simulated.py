"""A run of the paper's experiments in the simulator, with what brokers really take for their turns (`paced`)."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from experiments.standin.metrics import Seen
from experiments.standin.paced import Costs, Measured, PacedSimulation, Slowed, Work
from experiments.standin.setting import (
    ADVERTISING,
    FAULTY,
    ITEM_US,
    PER_CLIENT,
    PUBLISHER,
    STAND_IN,
    Setting,
    Transport,
)
from experiments.standin.workload import ATTRIBUTE, TOPIC, filter_above
from holdfast.schemes.tree.standin import pieces
from holdfast.sim.latency import Constant
from holdfast.sim.run import Factories, Run
from holdfast.sim.scenario import (
    Action,
    Advertise,
    Broker,
    Client,
    Fault,
    Kill,
    Network,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.trace import schema
from holdfast.trace.schema import Row

SUBSCRIBED_MS: Final = 1_000
FAILS_MS: Final = 4_000
PUBLISHED_MS: Final = 4_500  # what waits
REPLACED_MS: Final = 6_000
END_MS: Final = 60_000
LINK_US: Final = 100  # a switched network
QUIET_NS: Final = 8_000_000_000  # a slow broker may say nothing for some seconds
PATIENCE_MS: Final = 600_000  # nobody is left out for being slow
EVENTS_AT_ONCE: Final = 10


class Played(NamedTuple):
    seen: Seen
    work: Mapping[tuple[str, str], Work]
    simulation: PacedSimulation


def play(setting: Setting, costs: Costs | None = None) -> Played:
    """A broker that failed is replaced while events wait."""
    drawn = setting.workload.draw(setting.seed)
    events = [ScenarioEvent(topic=TOPIC, attributes={ATTRIBUTE: value}) for value in drawn.values]
    some = EVENTS_AT_ONCE
    published = [
        Publish(at_ms=PUBLISHED_MS + start // some, client=PUBLISHER, events=events[start : start + some])
        for start in range(0, len(events), some)
    ]
    faults: list[Fault] = [Kill(at_ms=FAILS_MS, for_ms=0, host=FAULTY, for_ever=True)]
    return run(setting, published, faults, costs or Measured(), REPLACED_MS)


def play_shared(setting: Setting, congestion: float, relieved: bool = True, costs: Costs | None = None) -> Played:
    """A broker that has more to do than it can: `congestion` times what it takes, or its link, for some seconds. Then
    its work is shared; or, if it is not `relieved`, it is not."""
    values = setting.workload.draw(setting.seed).values
    published: list[Action] = []
    done = 0
    begins, ends = flow_ms(setting, congestion)
    for place in range(ends - begins):
        due = min(int((place + 1) * congestion * 1_000 / ITEM_US), len(values))
        if due > done:
            events = [ScenarioEvent(topic=TOPIC, attributes={ATTRIBUTE: value}) for value in values[done:due]]
            published.append(Publish(at_ms=begins + place, client=PUBLISHER, events=events))
            done = due
    if costs is None:
        # Where links are quick, it is the broker that is slow, and so is the one that relieves it.
        alone = setting.transport is Transport.ONE_BY_ONE
        costs = Measured() if alone else Slowed((FAULTY, STAND_IN), ITEM_US)
    return run(setting, published, [], costs, begins, relieved)


def flow_ms(setting: Setting, congestion: float) -> tuple[int, int]:
    """From when to when events are published: the broker is relieved when a sixth of that is over."""
    lasts = math.ceil(setting.workload.pending * ITEM_US / congestion / 1_000) + 1
    return REPLACED_MS - lasts // 6, REPLACED_MS - lasts // 6 + lasts


def run(
    setting: Setting,
    published: Sequence[Action],
    faults: Sequence[Fault],
    costs: Costs,
    paced_from_ms: int,
    relieved: bool = True,
    seen: Seen | None = None,
) -> Played:
    scenario = scenario_of(setting, published, faults, relieved)
    seen = Seen(broker.id for broker in scenario.brokers) if seen is None else seen
    end = _End(setting)
    alone = setting.transport is Transport.ONE_BY_ONE
    chosen = {
        "one_by_one": alone or not faults,  # a slow broker takes what has come in bits
        "item_us": ITEM_US if alone else 0,
        "costs": costs,
        "paced_from": paced_from_ms * 1_000_000,
    }
    factories = Factories(simulation=type("PacedHere", (PacedSimulation,), chosen))
    with told_in(setting.transport), _without_collector():
        played = Run(scenario, factories, [seen, end], checking=False)
        simulation: Any = played.simulation
        played.play(end.is_there)
    return Played(seen, simulation.work, simulation)


class _End:
    """Whether everything has happened: all neighbours know that the stand-in is done, and nothing came any more."""

    def __init__(self, setting: Setting) -> None:
        self._ignorant = {ADVERTISING, *setting.subscribing} if setting.case.is_permanent else set()
        self._last = self._now = 0

    def see(self, row: Row) -> None:
        self._now = row.t
        if isinstance(row, schema.Hop) and row.events:
            self._last = row.t
        elif isinstance(row, schema.Control) and row.what == "stand-in-knows":
            self._ignorant.discard(row.node)
            self._last = row.t

    def is_there(self) -> bool:
        return not self._ignorant and 0 < self._last < self._now - QUIET_NS


@contextmanager
def told_in(transport: Transport) -> Iterator[None]:
    """How much of tables one message has."""
    name = "ROUTES_BYTES"
    before = getattr(pieces, name)
    if transport is Transport.ONE_BY_ONE:
        setattr(pieces, name, 0)
    try:
        yield
    finally:
        setattr(pieces, name, before)


@contextmanager
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def scenario_of(setting: Setting, published: Sequence[Action], faults: Sequence[Fault], relieved: bool) -> Scenario:
    clients = [Client(id=PUBLISHER, brokers=(ADVERTISING,))]
    actions: list[Action] = [
        Advertise(at_ms=SUBSCRIBED_MS + 500, client=PUBLISHER, name="a", filter=f"topic = '{TOPIC}'")
    ]
    for name, thresholds in setting.thresholds().items():
        for start in range(0, len(thresholds), PER_CLIENT):
            client = f"s{name[1:]}-{start // PER_CLIENT}"
            clients.append(Client(id=client, brokers=(name,), light=True))
            for number, threshold in enumerate(thresholds[start : start + PER_CLIENT]):
                actions.append(
                    Subscribe(at_ms=SUBSCRIBED_MS, client=client, name=str(number), filter=filter_above(threshold))
                )
    brokers = [ADVERTISING, FAULTY, *setting.subscribing]
    return Scenario(
        name=f"stand-in-{setting.case}",
        seed=setting.seed,
        settings={"reliability": "none", "covering": False, "stand_ins": True, "patience_ms": PATIENCE_MS,
                  **({"window_bytes": 1} if setting.transport is Transport.ONE_BY_ONE else {}),
                  **({"order": setting.order} if setting.order else {})},
        links=setting.links,
        brokers=[*(_broker(name) for name in brokers), _broker(STAND_IN, spare=True)],
        clients=clients,
        network=Network(latency=Constant(delay_us=LINK_US)),
        actions=sorted([*actions, *published], key=lambda action: action.at_ms),
        operations=[setting.case.operation(REPLACED_MS, FAULTY, STAND_IN)] if relieved else [],
        faults=list(faults),
        safety_ms=END_MS,
        liveness_ms=1,
        checkers=["at-most-once"],
    )  # fmt: skip


def _broker(name: str, spare: bool = False) -> Broker:
    return Broker(id=name, durable=True, spare=spare, sync_us=(50, 100), subscriptions_per_session=PER_CLIENT)
