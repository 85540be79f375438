"""How long a network takes to settle on many topics and many subscriptions, as processor time of the simulator.

    .venv/bin/python -m benchmarks.overlay_topics                          # 1,000, 10,000 and 100,000 of each
    .venv/bin/python -m benchmarks.overlay_topics --counts 1000,2000 --level buffered

Seven brokers in a random tree. Clients publish on a thousand topics each, which advertises them, and wait until the
network has settled; then as many subscriptions as topics are made, each to one topic below a price, at most a thousand
a client; then an event is published on one topic in ten, and arrives at whoever wants it, which is compared with brute
force. Nothing fails. One process does the work of all brokers, of clients and of the network.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from random import Random

import msgspec

from benchmarks.machine import description, resident_bytes
from holdfast.kernel.parts import Assembly
from holdfast.sim.run import measure_scenario
from holdfast.sim.scenario import Action, Broker, Client, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.topology.generators import Kind, links_of
from holdfast.trace.schema import Hop, Row

BROKERS = 7
TOPICS_OF_A_CLIENT = SUBSCRIPTIONS_OF_A_CLIENT = 1_000
BATCH = 250
PRICE_MAX = 1_000
QUIET_MS = 36_000_000
PUBLISH_MS, SUBSCRIBE_MS, SETTLED_MS, END_MS = 1_000, 60_000, 300_000, 360_000


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to."""

    count: int  # of topics, and of subscriptions
    advertising_s: float
    subscribing_s: float
    publishing_s: float
    routes_messages: int
    entries: int  # in the tables of all brokers
    deliveries: int
    resident_bytes: int


class _Clock:
    """When the phases of a run began, in processor time; and what brokers said."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()
        self.began: list[float] = []
        self._starts_ms = [PUBLISH_MS, SUBSCRIBE_MS, SETTLED_MS]

    def see(self, row: Row) -> None:
        while self._starts_ms and row.t >= self._starts_ms[0] * 1_000_000:
            del self._starts_ms[0]
            self.began.append(time.process_time())
        if type(row) is Hop:
            self.said[row.what] += 1


def scenario_of(count: int, level: str, seed: int = 1) -> tuple[Scenario, int]:
    """The scenario, and how many deliveries are due at its end."""
    rng = Random(f"topics/{count}/{seed}")
    names = [f"b{number}" for number in range(BROKERS)]
    links = links_of(Kind.RANDOM_TREE, names, rng)
    topics = [f"t{number}" for number in range(count)]
    publishers = {f"p{place}": rng.choice(names) for place in range(0, count, TOPICS_OF_A_CLIENT)}
    actions: list[Action] = []
    for name in publishers:
        first = int(name[1:])
        for place in range(first, min(first + TOPICS_OF_A_CLIENT, count), BATCH):
            events = [ScenarioEvent(topic=topic) for topic in topics[place : min(place + BATCH, count)]]
            actions.append(Publish(at_ms=PUBLISH_MS + rng.randrange(10_000), client=name, events=events))
    homes: dict[str, str] = {}
    below: dict[str, list[int]] = {}
    for number in range(count):
        topic, price = rng.choice(topics), rng.randrange(1, PRICE_MAX)
        below.setdefault(topic, []).append(price)
        wanted = f"topic = '{topic}' AND price < {price}"
        client = f"s{number // SUBSCRIPTIONS_OF_A_CLIENT}"
        homes.setdefault(client, rng.choice(names))
        at_ms = SUBSCRIBE_MS + rng.randrange(60_000)
        actions.append(Subscribe(at_ms=at_ms, client=client, name=f"s{number}", filter=wanted))
    due = 0
    for number in range(0, count, 10):
        price = rng.randrange(PRICE_MAX)
        due += sum(price < bound for bound in below.get(topics[number], ()))
        event = ScenarioEvent(topic=topics[number], attributes={"price": price})
        client = f"p{number - number % TOPICS_OF_A_CLIENT}"
        actions.append(Publish(at_ms=SETTLED_MS + rng.randrange(10_000), client=client, events=[event]))
    clients = [
        Client(id=name, brokers=(home,), light=name in homes, ping_ms=QUIET_MS, report_ms=1_000)
        for name, home in (publishers | homes).items()
    ]
    quiet = {"heartbeat_ms": QUIET_MS, "suspect_ms_min": 3 * QUIET_MS, "suspect_ms_max": 5 * QUIET_MS}
    brokers = [
        Broker(
            id=name,
            durable=level.endswith("buffered"),
            tick_ms=QUIET_MS,
            silent_ms=QUIET_MS,
            repeat_ms=QUIET_MS,
        )
        for name in names
    ]
    scenario = Scenario(
        name=f"topics-{count}",
        seed=seed,
        links=list(links),
        settings={"reliability": level, "settle_ms": 30_000, **quiet},
        brokers=brokers,
        clients=clients,
        actions=actions,
        faults=[],
        safety_ms=END_MS,
        liveness_ms=0,
        checkers=["at-most-once"],
    )
    return scenario, due


def measure_topics(count: int, level: str = "none") -> Settled:
    clock = _Clock()
    scenario, due = scenario_of(count, level)
    simulation = measure_scenario(scenario, [clock], clients_only=False)
    ended = time.process_time()
    nodes = [simulation.machines[broker.id].node for broker in scenario.brokers]
    measures = [node.measure() for node in nodes if isinstance(node, Assembly)]
    delivered = sum(one["events_sent_total"] for one in measures)
    if delivered != due:
        raise SystemExit(f"{due} deliveries were due, and {delivered} made")
    began = [*clock.began, ended]
    return Settled(
        count=count,
        advertising_s=began[1] - began[0],
        subscribing_s=began[2] - began[1],
        publishing_s=began[3] - began[2],
        routes_messages=clock.said["Routes"],
        entries=sum(one["routes"] + one["routes_advertised"] for one in measures),
        deliveries=delivered,
        resident_bytes=resident_bytes(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", default="1000,10000,100000", help="how many topics, and subscriptions")
    parser.add_argument("--level", default="none", help="the network's reliability")
    arguments = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in description().items()))
    print(f"{'topics':>9} {'advertising':>12} {'subscribing':>12} {'publishing':>11}   of all brokers and clients")
    for count in map(int, arguments.counts.split(",")):
        one = measure_topics(count, arguments.level)
        print(
            f"{count:9,} {one.advertising_s:10.1f} s {one.subscribing_s:10.1f} s {one.publishing_s:9.1f} s   "
            f"{one.routes_messages:,} Routes, {one.entries:,} entries, {one.deliveries:,} deliveries, "
            f"{one.resident_bytes / 2**20:,.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
