"""Messages per event and sizes of routing tables, against brokers and subscriptions, with and without covering.

Random trees in the simulator. Ten publishers advertise by publishing, each its own topic; a subscription wants a topic,
of which the k-th is asked for in proportion to 1/k, below a price: of two subscriptions to a topic one covers the
other. Subscribers of a broker share a session; nothing fails. Tables count what came from neighbours and from clients.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from random import Random

import msgspec

from holdfast.kernel.parts import Assembly
from holdfast.sim.run import measure_scenario
from holdfast.sim.scenario import Action, Broker, Client, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.topology.generators import Kind, links_of
from holdfast.trace.schema import Hop, Row

PUBLISHERS = 10
EVENTS = 10  # of each publisher, after all is told
QUIET_MS = 600_000
PUBLISH_MS, SUBSCRIBE_MS, SETTLED_MS, END_MS = 1_000, 5_000, 60_000, 120_000
PRICE_MAX = 1_000


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to."""

    brokers: int
    subscriptions: int
    covering: bool
    forwards_per_event: float  # from broker to broker
    deliveries_per_event: float
    routes_messages: int  # from broker to broker, until all was told
    entries_mean: float  # in the table of a broker
    entries_max: int


class _Hops:
    """Counts what brokers say."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()
        self.forwarded = 0

    def see(self, row: Row) -> None:
        if type(row) is Hop:
            self.said[row.what] += 1
            if row.what == "Forward" and row.t >= SETTLED_MS * 1_000_000:
                self.forwarded += len(row.events)


def scenario_of(brokers: int, subscriptions: int, covering: bool, seed: int) -> Scenario:
    rng = Random(f"overlay/{brokers}/{subscriptions}/{seed}")
    names = [f"b{number}" for number in range(brokers)]
    links = links_of(Kind.RANDOM_TREE, names, rng)
    publishers = {f"p{number}": rng.choice(names) for number in range(PUBLISHERS)}
    actions: list[Action] = [
        Publish(at_ms=PUBLISH_MS, client=name, events=[ScenarioEvent(topic=name, attributes={"price": PRICE_MAX})])
        for name in publishers
    ]
    weights = list(accumulate(1 / rank for rank in range(1, PUBLISHERS + 1)))
    homes: dict[str, str] = {}
    for number in range(subscriptions):
        home, topic = rng.choice(names), rng.choices(list(publishers), cum_weights=weights)[0]
        homes[f"at-{home}"] = home
        wanted = f"topic = '{topic}' AND price < {rng.randrange(1, PRICE_MAX)}"
        at_ms = SUBSCRIBE_MS + int(rng.random() * 10_000)
        actions.append(Subscribe(at_ms=at_ms, client=f"at-{home}", name=f"s{number}", filter=wanted))
    for place in range(EVENTS):
        for name in publishers:
            event = ScenarioEvent(topic=name, attributes={"price": rng.randrange(PRICE_MAX)})
            actions.append(Publish(at_ms=SETTLED_MS + 1_000 * place, client=name, events=[event]))
    clients = [
        Client(id=name, brokers=(home,), light=name in homes, ping_ms=QUIET_MS, report_ms=1_000)
        for name, home in (publishers | homes).items()
    ]
    return Scenario(
        name=f"overlay-{brokers}-{subscriptions}",
        seed=seed,
        links=list(links),
        settings={
            "covering": covering,
            "settle_ms": 30_000,
            "heartbeat_ms": QUIET_MS,
            "suspect_ms_min": 3 * QUIET_MS,
            "suspect_ms_max": 5 * QUIET_MS,
        },
        brokers=[
            Broker(
                id=name,
                subscriptions_per_session=100_000,
                tick_ms=QUIET_MS,
                silent_ms=QUIET_MS,
                repeat_ms=QUIET_MS,
            )
            for name in names
        ],
        clients=clients,
        actions=actions,
        faults=[],
        safety_ms=END_MS,
        liveness_ms=0,
        checkers=["at-most-once"],
    )


def measure_tables(brokers: int, subscriptions: int, covering: bool, seed: int = 1) -> Tables:
    hops = _Hops()
    simulation = measure_scenario(scenario_of(brokers, subscriptions, covering, seed), [hops], clients_only=False)
    nodes = [simulation.machines[f"b{number}"].node for number in range(brokers)]
    measures = [node.measure() for node in nodes if isinstance(node, Assembly)]
    entries = [one["routes"] for one in measures]
    events = PUBLISHERS * EVENTS
    return Tables(
        brokers=brokers,
        subscriptions=subscriptions,
        covering=covering,
        forwards_per_event=hops.forwarded / events,
        deliveries_per_event=sum(one["events_sent_total"] for one in measures) / events,
        routes_messages=hops.said["Routes"],
        entries_mean=sum(entries) / brokers,
        entries_max=max(entries),
    )
