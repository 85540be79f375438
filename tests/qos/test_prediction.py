"""What is predicted for subscribers: the paper's equations, the fast way against the slow one, and what helps."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.contributions import contributions
from holdfast.qos.disjoint import best_bound
from holdfast.qos.graph import PartGraph
from holdfast.qos.interest import Publisher, Subscriber
from holdfast.qos.levels import (
    eq3_path_is_on,
    eq4_in_time,
    eq13_as_fraction,
    eq13_as_product,
    eq13_corrected,
    eq13_printed,
    path_delay,
)
from holdfast.qos.parts import NEVER_FAILS, part_of_availability
from holdfast.qos.prediction import Model, mean_reliability
from holdfast.qos.waiting import NO_WAIT
from holdfast.topology.generators import Kind, links_of
from tests.tiers import one_always

DAY, LIFETIME = 86_400, 3_600
LEVELS = tuple(Reliability)


def diamond() -> PartGraph:
    """Four brokers, two ways between b1 and b4: the example of D1-D14."""
    broker = part_of_availability(0.9, 60_000)
    link = part_of_availability(0.99, 60_000)
    ends = [("b1", "b2"), ("b2", "b4"), ("b1", "b3"), ("b3", "b4")]
    return PartGraph({f"b{n}": broker for n in range(1, 5)}, dict.fromkeys(ends, link))


def drawn(seed: int, count: int, kind: Kind = Kind.RANDOM_TREE, mean_days: float = 7) -> PartGraph:
    rng = Random(seed)
    names = [f"b{n}" for n in range(1, count + 1)]
    links = links_of(kind, names, rng, 3.0) if kind is Kind.RANDOM_GRAPH else links_of(kind, names, rng)
    return PartGraph(
        {name: part_of_availability(rng.uniform(0.9, 0.999), mean_days * DAY) for name in names},
        {ends: part_of_availability(rng.uniform(0.97, 0.995), 60_000) for ends in links},
    )


def test_the_readings_of_eq_13() -> None:
    """D1-D14: on the diamond, with a way by Eq. 12, and for lifetimes without end."""
    graph = diamond()
    delay = path_delay(graph, ("b1", "b2", "b4"))
    way = Model(graph, LIFETIME).bound("b1", "b4")
    readings = {
        "fraction": eq13_as_fraction(way, delay, LIFETIME),
        "product": eq13_as_product(way, delay, LIFETIME),
        "printed": eq13_printed(way, delay, LIFETIME),
        "corrected": eq13_corrected(way, 0.9, delay.within_if_positive(LIFETIME)),
    }
    assert {name: round(value, 4) for name, value in readings.items()} == {
        "fraction": pytest.approx(1.668, abs=5e-4),
        "product": pytest.approx(0.836, abs=5e-4),
        "printed": 0.8929,
        "corrected": 0.8461,
    }
    for_ever = 1e9
    assert eq13_printed(way, delay, for_ever) == pytest.approx(1)
    assert eq13_corrected(way, 0.9, delay.within_if_positive(for_ever)) == pytest.approx(0.9)
    assert eq4_in_time(graph, ("b1", "b2", "b4"), for_ever) == pytest.approx(0.9)


def test_each_level_is_its_equation() -> None:
    """D1-B7"""
    graph = diamond()
    model = Model(graph, LIFETIME)
    path = model.tree.path("b2", "b4")
    assert model.pair(Reliability.NONE, "b2", "b4") == 0
    assert model.pair(Reliability.PERIODIC, "b2", "b4") == eq3_path_is_on(graph, path)
    assert model.pair(Reliability.BUFFERED, "b2", "b4") == pytest.approx(eq4_in_time(graph, path, LIFETIME), abs=1e-9)
    assert model.pair(Reliability.BYPASS, "b2", "b4") >= model.bound("b2", "b4")
    both = eq13_corrected(model.connected("b2", "b4"), 0.9, path_delay(graph, path).within_if_positive(LIFETIME))
    assert model.pair(Reliability.BYPASS_BUFFERED, "b2", "b4") == pytest.approx(both, abs=1e-9)


def test_at_the_same_broker_only_that_one_counts() -> None:
    """D1-D11, D1-D13"""
    model = Model(diamond(), LIFETIME)
    assert path_delay(model.graph, ("b1",)) == NO_WAIT
    for level in LEVELS[1:]:
        assert model.pair(level, "b1", "b1") == pytest.approx(0.9)


@pytest.mark.parametrize("seed", one_always(range(6)))
def test_the_fast_way_agrees_with_the_block_form(seed: int) -> None:
    rng = Random(seed)
    model = Model(drawn(seed, 40, mean_days=rng.choice([0.1, 1, 7])), rng.choice([1, 600, LIFETIME, DAY]))
    names = list(model.graph.brokers)
    for _ in range(25):
        source, target = rng.choice(names), rng.choice(names)
        for level in (Reliability.BUFFERED, Reliability.BYPASS_BUFFERED):
            exact = model.block_form(level, source, target)
            assert model.pair(level, source, target) == pytest.approx(exact, abs=1e-9)


def test_without_a_lifetime_what_is_stored_is_late() -> None:
    graph = drawn(1, 8)
    model = Model(graph, 0)
    for source, target in pairwise(graph.brokers):
        assert model.pair(Reliability.BUFFERED, source, target) == pytest.approx(
            model.pair(Reliability.PERIODIC, source, target)
        )


@pytest.mark.parametrize("seed", range(5))
def test_levels_are_ordered_as_they_must_be(seed: int) -> None:
    model = Model(drawn(seed, 10, Kind.RANDOM_GRAPH), LIFETIME)
    names = list(model.graph.brokers)
    for source in names:
        for target in names:
            none, periodic, buffered, bypass, both = (model.pair(level, source, target) for level in LEVELS)
            first = model.graph.brokers[source].availability
            assert none <= periodic <= buffered + 1e-9
            assert periodic <= bypass + 1e-12
            assert bypass <= both + 1e-9 <= first + 2e-9
            assert buffered <= first + 1e-9


def test_the_bound_is_the_same_from_both_ends() -> None:
    """Parts of one class: many paths are as likely as each other, and which are found depends on where one begins."""
    rng = Random(3)
    names = [f"b{number}" for number in range(100)]
    part = part_of_availability(0.92, DAY)
    graph = PartGraph(dict.fromkeys(names, part), dict.fromkeys(links_of(Kind.RANDOM_GRAPH, names, rng, 3.0), part))
    pairs = [rng.sample(names, 2) for _ in range(150)]
    assert any(best_bound(graph, one, other) != best_bound(graph, other, one) for one, other in pairs)
    there, back = Model(graph, LIFETIME), Model(graph, LIFETIME)
    level = Reliability.BYPASS
    assert [there.pair(level, *pair) for pair in pairs] == [back.pair(level, *reversed(pair)) for pair in pairs]
    assert there.bound("b1", "b2") == there.bound("b2", "b1") == there.pair(level, "b2", "b1")


def test_a_subscriber_is_as_reliable_as_its_publishers_by_their_rates() -> None:
    """D1-D1, D1-D2"""
    model = Model(diamond(), LIFETIME)
    publishers = [Publisher("b1", "t", 3.0), Publisher("b4", "t", 1.0), Publisher("b2", "u"), Publisher("b3", "v", 0.0)]
    wanted = [Subscriber("b2", "t"), Subscriber("b2", "u"), Subscriber("b2", "v"), Subscriber("b2", "w", count=5)]
    level = Reliability.PERIODIC
    values = [one.reliability[level] for one in model.predict(publishers, wanted, [level])]
    weighted = (3 * model.pair(level, "b1", "b2") + model.pair(level, "b4", "b2")) / 4
    assert values == [pytest.approx(weighted), pytest.approx(0.9), None, None]
    assert mean_reliability(model.predict(publishers, wanted, [level]), level) == pytest.approx((weighted + 0.9) / 2)
    assert mean_reliability(model.predict([], wanted, [level]), level) is None


def test_what_helps_most_is_the_worst_part_on_the_way() -> None:
    broker, poor = part_of_availability(0.99, DAY), part_of_availability(0.8, DAY)
    graph = PartGraph(
        {"b1": broker, "b2": poor, "b3": broker, "b4": poor},
        {("b1", "b2"): NEVER_FAILS, ("b2", "b3"): part_of_availability(0.9, DAY), ("b3", "b4"): NEVER_FAILS},
    )
    publishers, subscribers = [Publisher("b1")], [Subscriber("b3")]
    for level in (Reliability.PERIODIC, Reliability.BUFFERED):
        found = contributions(Model(graph, LIFETIME), publishers, subscribers, level)
        assert [one.part for one in found][:2] == ["b2", "b2 – b3"]
        assert {one.part: one.gain for one in found}["b4"] == pytest.approx(0)
    found = contributions(Model(graph, LIFETIME), publishers, subscribers, Reliability.PERIODIC)
    r = 0.99 * 0.8 * 0.9 * 0.99
    assert found[0].gain == pytest.approx(r / 0.8 - r), "its Birnbaum importance times the share that it is off"
    assert contributions(Model(graph, LIFETIME), [], subscribers, Reliability.PERIODIC) == []


def test_questions_without_an_answer() -> None:
    with pytest.raises(PredictionError, match="the lifetime is -1 s"):
        Model(diamond(), -1)
    model = Model(diamond(), 1)
    with pytest.raises(PredictionError, match="no broker 'x'"):
        model.pair(Reliability.PERIODIC, "x", "b1")
    with pytest.raises(PredictionError, match="has the rate -1"):
        model.predict([Publisher("b1", rate=-1)], [], [])
