"""What is drawn from a seed: a network, its clients, and the schedule of a replacement.

The same seed gives the same world for every protocol that is asked of the same kind of failure. A broker that failed
for good is gone at once, or its machine is, and its neighbours notice late; one that is slow is so from the beginning.
All who are not at the faulty broker may lose nothing but what that one had: so brokers and links are well otherwise.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from msgspec.structs import replace

from experiments.standin.protocols import Case
from experiments.standin.schedules import ALWAYS, settings_of
from holdfast.sim.latency import Constant, Exponential, Latency, Uniform
from holdfast.sim.scenario import (
    Action,
    Advertise,
    Broker,
    Client,
    Fault,
    Kill,
    Network,
    PowerCut,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from holdfast.topology.generators import Kind, links_of
from holdfast.topology.graph import BrokerGraph

STAND_IN: Final = "r"
BROKERS_MIN: Final = 4
BROKERS_MAX: Final = 30
VALUES: Final = 20  # of the attribute `n`
SETTLED_MS: Final = 2_600  # everybody has subscribed, and published once
SLOW_US: Final = 8_000  # a broker that is to be relieved takes so long for each message
TAIL_MS: Final = 4_500  # from the replacement until the last events


class World(NamedTuple):
    """A scenario without what is asked of it, and what has to be known of it."""

    scenario: Scenario
    faulty: str
    neighbours: tuple[str, ...]  # of the faulty broker
    replaced_ms: int

    def played_with(self, case: Case) -> Scenario:
        checkers = [*ALWAYS, *case.checkers(self.faulty).values()]
        operations = [case.operation(self.replaced_ms, self.faulty, STAND_IN)]
        return replace(self.scenario, name=f"stand-in-{case}", operations=operations, checkers=checkers)


def draw_world(seed: int, permanent: bool = True) -> World:
    rng = Random(f"stand-in/{seed}")
    names = [f"b{number}" for number in range(1, _how_many(rng) + 1)]
    kind = rng.choice((Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.STAR, Kind.CHAIN))
    links = list(links_of(kind, names, rng))
    graph = BrokerGraph(names, links)
    # One with several neighbours, as a rule: with one there is nothing to wait for.
    inner = [name for name in names if len(graph.neighbours(name)) > 1]
    faulty = rng.choice(inner if rng.random() < 0.95 else names)
    near = graph.neighbours(faulty)
    fails_ms = rng.randint(SETTLED_MS + 200, SETTLED_MS + 1_200)
    replaced_ms = fails_ms + rng.choice((0, 20, 200, 600, 1_500, 3_000))
    clients, actions = _draw_clients(rng, [name for name in names if name != faulty], near)
    if rng.random() < 0.4:
        of_the_faulty, theirs = _draw_clients_of(rng, faulty, fails_ms)
        clients, actions = clients + of_the_faulty, actions + theirs
    actions += _draw_traffic(rng, clients, fails_ms, replaced_ms, permanent)
    elsewhere = [name for name in names if name != faulty]
    news, theirs = _draw_news(rng, elsewhere, clients, replaced_ms)
    if not permanent:
        # Who leaves before an event that others overtook has a gap that nobody made.
        theirs = [action for action in theirs if not isinstance(action, Unsubscribe)]
        news, theirs = _with_leavers(rng, elsewhere, news, theirs, replaced_ms)
    brokers = [_draw_broker(rng, name, near) for name in names]
    if not permanent:
        slow = {faulty: SLOW_US}
        brokers = [replace(each, service_us_per_message=slow.get(each.id, 0)) for each in brokers]
    scenario = Scenario(
        name="stand-in",
        seed=seed,
        settings=settings_of(),
        links=links,
        brokers=[*brokers, Broker(id=STAND_IN, durable=True, spare=True)],
        clients=[*clients, *news],
        network=Network(latency=_draw_latency(rng)),
        actions=sorted([*actions, *theirs], key=lambda action: action.at_ms),
        faults=_draw_failure(rng, faulty, fails_ms) if permanent else [],
        safety_ms=replaced_ms + TAIL_MS + 1_000,
        liveness_ms=5_000,
        checkers=[],
    )
    return World(scenario, faulty, near, replaced_ms)


def _how_many(rng: Random) -> int:
    """Mostly few, so that much happens at the faulty one; any number up to the most."""
    return rng.randint(BROKERS_MIN, 9) if rng.random() < 0.6 else rng.randint(BROKERS_MIN, BROKERS_MAX)


def _draw_latency(rng: Random) -> Latency:
    return rng.choice(
        (
            Constant(delay_us=500),
            Uniform(low_us=50, high_us=5_000),
            Uniform(low_us=5_000, high_us=40_000),
            Exponential(minimum_us=100, mean_us=2_000, maximum_us=100_000),
            Exponential(minimum_us=100, mean_us=15_000, maximum_us=300_000),
        )
    )


def _draw_broker(rng: Random, name: str, near: tuple[str, ...]) -> Broker:
    """Neighbours of the faulty one answer at very different times."""
    is_slow = rng.random() < (0.5 if name in near else 0.1)
    return Broker(
        id=name,
        durable=True,
        gather_us=1_000 * rng.choice((20, 100, 250, 400)) if is_slow else rng.choice((0, 0, 2_000)),
        sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))),
    )


def _draw_failure(rng: Random, faulty: str, at_ms: int) -> list[Fault]:
    if rng.random() < 0.6:
        return [Kill(at_ms=at_ms, for_ms=0, host=faulty, for_ever=True)]
    return [PowerCut(at_ms=at_ms, for_ms=0, host=faulty, for_ever=True)]


# ------------------------------------------------------------------------------------------------------------- clients
def _draw_filter(rng: Random) -> str:
    topic = rng.choice(("t1", "t2", "t3"))
    bound = rng.randint(1, VALUES - 1)
    return rng.choice(
        (
            f"topic = '{topic}'",
            f"topic = '{topic}'",
            f"topic = '{topic}' AND n > {bound}",
            f"topic = '{topic}' AND n <= {bound}",
            f"n > {bound}",
            f"topic IN ('t1', 't2') AND n <> {bound}",
            "",
        )
    )


def _draw_clients(rng: Random, names: list[str], near: tuple[str, ...]) -> tuple[list[Client], list[Action]]:
    """One to three publishers, and groups of two to four subscribers that want the same, some at neighbours of the
    faulty broker."""
    clients: list[Client] = []
    actions: list[Action] = []

    def home() -> str:
        return rng.choice(near if rng.random() < 0.4 else names)

    for number in range(1, rng.randint(1, 3) + 1):
        publisher = Client(id=f"p{number}", brokers=(home(),))
        clients.append(publisher)
        actions.append(_publication(rng, publisher.id, 600, rng.randint(1, 3)))  # its topic is known from then on
    for group in range(1, rng.randint(2, 3) + 1):
        text = _draw_filter(rng)
        for member in range(1, rng.randint(2, 4) + 1):
            name = f"s{group}-{member}"
            clients.append(Client(id=name, brokers=(home(),)))
            actions.append(Subscribe(at_ms=rng.randint(100, 400), client=name, name=name, filter=text))
    return clients, actions


def _draw_clients_of(rng: Random, faulty: str, fails_ms: int) -> tuple[list[Client], list[Action]]:
    """Of the faulty broker itself: what they want and advertise goes with them."""
    clients = [Client(id="fp", brokers=(faulty,)), Client(id="fs", brokers=(faulty,))]
    actions: list[Action] = [Subscribe(at_ms=300, client="fs", name="fs", filter=_draw_filter(rng))]
    actions += [_publication(rng, "fp", at, 1) for at in range(600, fails_ms, 250)]
    return clients, actions


def _topic_of(publisher: str) -> str:
    """Each publishes on one topic; so that no publication waits while the network is replaced a part."""
    return {"p1": "t1", "p2": "t2", "p3": "t3", "fp": "t1"}.get(publisher, "t9")


def _publication(rng: Random, client: str, at_ms: int, most: int) -> Publish:
    events = [
        ScenarioEvent(topic=_topic_of(client), attributes={"n": rng.randint(1, VALUES)})
        for _ in range(rng.randint(1, most))
    ]
    return Publish(at_ms=at_ms, client=client, events=events)


def _draw_traffic(rng: Random, clients: list[Client], fails_ms: int, replaced_ms: int, permanent: bool) -> list[Action]:
    """Before, while nobody stands in, thickly while the replacement is under way, and behind it."""
    actions: list[Action] = []
    for client in clients:
        if not client.id.startswith("p"):
            continue
        step = rng.choice((40, 120, 300) if permanent else (15, 30, 60))
        moments = list(range(SETTLED_MS + rng.randint(0, 50), replaced_ms, step))
        at = replaced_ms - 50
        while at < replaced_ms + rng.choice((300, 1_500) if permanent else (1_000, 2_500)):
            moments.append(at)
            at += rng.randint(2, rng.choice((10, 40, 100)))
        moments += [fails_ms + after for after in (0, 5, 10)]
        moments += range(replaced_ms + TAIL_MS - 600, replaced_ms + TAIL_MS, 200)
        actions += [_publication(rng, client.id, at, rng.choice((1, 1, 3))) for at in sorted(moments)]
    return actions


def _with_leavers(
    rng: Random, names: list[str], clients: list[Client], actions: list[Action], replaced_ms: int
) -> tuple[list[Client], list[Action]]:
    """Some who leave meanwhile, and with whom nobody is compared."""
    for number in range(1, rng.randint(0, 3) + 1):
        name = f"left{number}"
        clients = [*clients, Client(id=name, brokers=(rng.choice(names),))]
        text = " AND ".join(filter(None, (_draw_filter(rng), f"v{number} IS NULL")))
        actions = [
            *actions,
            Subscribe(at_ms=300, client=name, name=name, filter=text),
            Unsubscribe(at_ms=replaced_ms + rng.randint(0, 800), client=name, name=name),
        ]
    return clients, actions


def _draw_news(
    rng: Random, names: list[str], clients: list[Client], replaced_ms: int
) -> tuple[list[Client], list[Action]]:
    """What is really new while the replacement is under way (D0-B6): subscriptions, advertisements;
    and what is taken back."""
    more: list[Client] = []
    actions: list[Action] = []

    def soon() -> int:
        return replaced_ms + rng.randint(0, rng.choice((30, 150, 800)))

    for number in range(1, rng.randint(0, 3) + 1):
        name = f"new{number}"
        more.append(Client(id=name, brokers=(rng.choice(names),)))
        # Of what is under way to somebody beside it, a new subscription gets what it wants, without what lies between:
        # so none has the filter of one from before, with which it would be compared (D0-C1).
        text = " AND ".join(filter(None, (_draw_filter(rng), f"w{number} IS NULL")))
        actions.append(Subscribe(at_ms=soon(), client=name, name=name, filter=text))
    leaving = [client.id for client in clients if client.id.endswith("-2") and rng.random() < 0.3]
    actions += [Unsubscribe(at_ms=soon(), client=name, name=name) for name in leaving]
    if rng.random() < 0.5:
        more.append(Client(id="a1", brokers=(rng.choice(names),)))
        actions.append(Advertise(at_ms=soon(), client="a1", name="a", filter="topic = 't9'"))
        actions += [_publication(rng, "a1", replaced_ms + at, 1) for at in (1_000, 2_500, TAIL_MS - 100)]
    if rng.random() < 0.5:
        more.append(Client(id="a2", brokers=(rng.choice(names),)))
        actions.append(Advertise(at_ms=500, client="a2", name="a", filter="topic IN ('t1', 't8')"))
        actions.append(Unadvertise(at_ms=soon(), client="a2", name="a"))
    return more, actions
