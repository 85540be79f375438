"""Schedules that are made by hand: small networks in which what happens is known, and what a protocol does not promise
goes wrong.

The networks are stars around the faulty broker `f`, whose neighbours are `n1`, `n2`, …; `r` is the stand-in. A
neighbour that is slow gathers what comes for so long before it looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from experiments.standin.protocols import Case
from holdfast.kernel.settings import Written
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    Operate,
    Pause,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)

FAULTY: Final = "f"
STAND_IN: Final = "r"
ALWAYS: Final = ("only-matching", "at-most-once", "understood", "map-history")
FAILS_MS: Final = 4_000
REPLACED_MS: Final = 5_000
END_MS: Final = 12_000
SLOW_US: Final = 12_000  # a broker that is to be relieved takes so long for each message


def settings_of(level: str = "none", **more: Written) -> dict[str, Written]:
    return {"reliability": level, "stand_ins": True, "covering": False, **more}


def network(
    case: Case,
    links: Sequence[tuple[str, str]],
    homes: Mapping[str, str],
    actions: Iterable[Action],
    *,
    faulty: str = FAULTY,
    stand_in: str = STAND_IN,
    keeper: str = "",
    slow_ms: Mapping[str, int] | None = None,
    faults: Sequence[Fault] | None = None,
    operations: Sequence[Operate] | None = None,
    spares: Sequence[str] = (),
    level: str = "none",
    end_ms: int = END_MS,
    settings: Mapping[str, Written] | None = None,
) -> Scenario:
    """A network in which a broker fails for good and is replaced, or is slow and relieved; `homes` are the clients',
    each with one broker."""
    slow = slow_ms or {}
    names = dict.fromkeys([*([keeper] if keeper else []), *(name for link in links for name in link)])
    service = {} if case.is_permanent else {faulty: SLOW_US}
    brokers = [
        Broker(id=name, durable=True, gather_us=1_000 * slow.get(name, 0), service_us_per_message=service.get(name, 0))
        for name in names
    ]
    lent = [
        Broker(id=name, durable=True, spare=True, gather_us=1_000 * slow.get(name, 0)) for name in (stand_in, *spares)
    ]
    fails: list[Fault] = [Kill(at_ms=FAILS_MS, for_ms=0, host=faulty, for_ever=True)] if case.is_permanent else []
    return Scenario(
        name="stand-in",
        seed=1,
        settings={**settings_of(level), **(settings or {})},
        links=list(links),
        brokers=[*brokers, *lent],
        clients=[Client(id=client, brokers=(home,)) for client, home in homes.items()],
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=fails if faults is None else list(faults),
        operations=[case.operation(REPLACED_MS, faulty, stand_in)] if operations is None else list(operations),
        safety_ms=end_ms,
        liveness_ms=4_000,
        checkers=[*ALWAYS, *case.checkers(faulty).values()],
    )


def publications(client: str, moments: Iterable[int], topic: str = "t") -> list[Action]:
    """Events of a topic at these moments, whose attribute `n` is their number."""
    return [
        Publish(at_ms=at, client=client, events=[ScenarioEvent(topic=topic, attributes={"n": number})])
        for number, at in enumerate(moments, 1)
    ]


def subscription(client: str, text: str, at_ms: int = 200) -> Action:
    return Subscribe(at_ms=at_ms, client=client, name=client, filter=text)


def star(
    case: Case,
    neighbours: int,
    subscriptions: Mapping[str, str],
    published: Iterable[int],
    *,
    more: Sequence[Action] = (),
    homes: Mapping[str, str] | None = None,
    slow_ms: Mapping[str, int] | None = None,
    level: str = "none",
) -> Scenario:
    """The neighbours `n1`, `n2`, … around `f`. A publisher `p` at n1, which publishes at these moments; each
    subscriber, with its filter, at the neighbour whose name follows the dash: `s-n2`."""
    links = [(FAULTY, f"n{number}") for number in range(1, neighbours + 1)]
    wanted = [subscription(client, text) for client, text in subscriptions.items()]
    own = {"p": "n1", **{client: client.partition("-")[2] for client in subscriptions}, **(homes or {})}
    actions = [*publications("p", published), *wanted, *more]
    return network(case, links, own, actions, keeper=f"n{min(2, neighbours)}", slow_ms=slow_ms, level=level)


PENDING: Final = range(FAILS_MS + 100, FAILS_MS + 600, 50)  # ten events wait for the stand-in
AFTERWARDS: Final = (10_000, 10_100)
THICKLY: Final = range(REPLACED_MS - 500, REPLACED_MS + 2_500, 10)


def one_neighbour_is_late(case: Case) -> Scenario:
    """Fig. 4(a): two subscribers with one filter, behind a neighbour that answers at once and one that takes its time.
    What comes by the stand-in meanwhile reaches one of them.

    The first event that waits reaches both, since somebody beside each of them has said already that he wants it: of
    something else that is advertised, at `n4`, and was told before. So it is a gap, and no late beginning.
    """
    first = "n = 3"
    subscriptions = {"s-n2": "topic = 't'", "s-n3": "topic = 't'", "first-n2": first, "first-n3": first}
    more = [Publish(at_ms=2_500, client="q", events=[ScenarioEvent(topic="u", attributes={"n": 0})])]
    drawn = star(
        case,
        4,
        subscriptions,
        [3_000, 3_100, *PENDING, *range(REPLACED_MS + 50, REPLACED_MS + 4_000, 50), *AFTERWARDS],
        more=more,
        homes={"q": "n4"},
    )
    # The publisher's broker is met last, when the stand-in dials it again; and then one neighbour stands still.
    met_last = Cut(at_ms=REPLACED_MS - 100, for_ms=1_000, source="n1", target=STAND_IN)
    is_late = Pause(at_ms=REPLACED_MS + 3_000, for_ms=800, host="n3")
    return replace(drawn, faults=[*drawn.faults, met_last, is_late])


def one_neighbour_says_nothing(case: Case) -> Scenario:
    """Fig. 4(a) with a broker that is slow: what goes by the stand-in reaches the subscriber whose neighbour has said
    that it wants it, and not the other; what goes by the broker reaches both."""
    subscriptions = {"s-n2": "topic = 't'", "s-n3": "topic = 't'"}
    drawn = star(
        case, 3, subscriptions, [3_000, 3_100, *range(REPLACED_MS - 500, REPLACED_MS + 2_500, 10), *AFTERWARDS]
    )
    return replace(drawn, faults=[Pause(at_ms=REPLACED_MS - 50, for_ms=1_500, host="n3")])


def one_event_waits_in_the_slow_broker(case: Case) -> Scenario:
    """Fig. 4(b): what goes by the stand-in overtakes what went by the broker before."""
    subscriptions = {"s-n2": "topic = 't'", "s-n3": "topic = 't'"}
    return star(case, 3, subscriptions, [3_000, 3_100, *THICKLY, *AFTERWARDS])


def ready_queues_are_served_in_turn(case: Case) -> Scenario:
    """Subscriptions of one neighbour that come together: one wants the first half of what waits, one the other half,
    and one all. Queues that are served in turn give the third a mixture. A neighbour that is late keeps the stand-in
    from being done."""
    subscriptions = {
        "low-n2": "topic = 't' AND n <= 7",
        "high-n2": "topic = 't' AND n > 7",
        "all-n2": "topic = 't'",
    }
    return star(case, 3, subscriptions, [3_000, 3_100, *PENDING, *AFTERWARDS], slow_ms={"n3": 250})


def a_subscription_comes_late(case: Case) -> Scenario:
    """Fig. 6: events leave for a subscription that has come, and are fetched from the stand-in by one that comes
    later: there are events between that only the later one wants."""
    subscriptions = {"even-n2": "topic = 't' AND n IN (4, 6, 8, 10, 12)", "all-n3": "topic = 't'"}
    return star(case, 3, subscriptions, [3_000, 3_100, *PENDING, *AFTERWARDS], slow_ms={"n3": 250})
