"""Who gets what from whom: topics, filters weighed by samples, lifetimes of their own, local links that fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.errors import FilterError, PredictionError
from holdfast.matching.index import FilterIndex
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.contributions import contributions
from holdfast.qos.delays import delay_of
from holdfast.qos.graph import PartGraph, Together
from holdfast.qos.interest import Flow, Interests, Publisher, SampleEvent, Subscriber
from holdfast.qos.parts import NEVER_FAILS, part_of_availability
from holdfast.qos.prediction import Model

BROKER, LINK = part_of_availability(0.9, 60_000), part_of_availability(0.97, 20_000)
LOCAL = part_of_availability(0.8, 9_000)
LEVELS = tuple(Reliability)
BUFFERING = [level for level in Reliability if level.buffers]


def ring(lifetime: float = 3_600) -> Model:
    links = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    return Model(PartGraph(dict.fromkeys("abcd", BROKER), dict.fromkeys(links, LINK)), lifetime)


def value(model: Model, level: Reliability, publishers: list[Publisher], subscriber: Subscriber) -> float | None:
    return model.predict(publishers, [subscriber], [level])[0].reliability[level]


# ---------------------------------------------------------------------------------------------------------- by content
SAMPLE = tuple(SampleEvent("stock", {"price": price}) for price in range(10))


@pytest.mark.parametrize("level", LEVELS)
def test_a_filter_weighs_publishers_by_what_of_their_samples_matches(level: Reliability) -> None:
    """D1-D1, D1-D2: half of one, eight tenths of the other, which has twice the rate."""
    model = ring()
    other = tuple(SampleEvent("stock", {"price": price}) for price in (5, 6, 7, 8, 9, 9, 9, 9, 0, 0))
    publishers = [Publisher("a", rate=1.0, sample=SAMPLE), Publisher("c", rate=2.0, sample=other)]
    near, far = model.pair(level, "c", "c"), model.pair(level, "a", "c")
    found = value(model, level, publishers, Subscriber("c", filter="price >= 5"))
    assert found == pytest.approx((0.5 * far + 2 * 0.8 * near) / 2.1)
    found = value(model, level, publishers, Subscriber("c", filter="price < 3"))
    assert found == pytest.approx((0.3 * far + 2 * 0.2 * near) / 0.7)


def test_a_filter_that_nothing_matches_has_no_reliability() -> None:
    publishers = [Publisher("a", sample=SAMPLE)]
    assert value(ring(), Reliability.PERIODIC, publishers, Subscriber("b", filter="price > 100")) is None
    assert value(ring(), Reliability.PERIODIC, publishers, Subscriber("b", topic="bond")) is None
    assert value(ring(), Reliability.PERIODIC, publishers, Subscriber("b", topic="stock")) is not None
    assert value(ring(), Reliability.PERIODIC, publishers, Subscriber("b", "bond", filter="price > 1")) is None


def test_a_filter_of_events_that_nobody_has_seen_is_refused() -> None:
    with pytest.raises(PredictionError, match="publisher at 'a' shows no sample"):
        value(ring(), Reliability.PERIODIC, [Publisher("a", "stock")], Subscriber("b", filter="price > 1"))
    with pytest.raises(FilterError):
        value(ring(), Reliability.PERIODIC, [Publisher("a", sample=SAMPLE)], Subscriber("b", filter="price >"))


# ----------------------------------------------------------------------------------------------------------- lifetimes
@pytest.mark.parametrize("level", BUFFERING)
def test_events_have_lifetimes_of_their_own(level: Reliability) -> None:
    """D1-F4: a publisher's, and an event's of a sample, which comes first."""
    model = ring(3_600)
    urgent, patient = (ring(lifetime).pair(level, "a", "c") for lifetime in (60, 36_000))
    publishers = [Publisher("a", "t", 3.0, lifetime=60), Publisher("a", "t", 1.0, lifetime=36_000)]
    assert value(model, level, publishers, Subscriber("c", "t")) == pytest.approx((3 * urgent + patient) / 4)
    sample = (SampleEvent("t", lifetime=60), SampleEvent("t"))
    one = Publisher("a", sample=sample, lifetime=36_000)
    assert value(model, level, [one], Subscriber("c", "t")) == pytest.approx((urgent + patient) / 2)
    assert urgent < patient - 0.01


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_lifetime_is_a_time(wrong: float) -> None:
    with pytest.raises(PredictionError, match="lifetime"):
        value(ring(), Reliability.BUFFERED, [Publisher("a", lifetime=wrong)], Subscriber("b"))
    with pytest.raises(PredictionError, match="lifetime"):
        ring(wrong)


# --------------------------------------------------------------------------------------------------------- local links
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lifetime", [0.0, 900.0])
def test_a_subscriber_whose_link_fails_is_as_one_behind_a_broker_that_never_does(
    level: Reliability, lifetime: float
) -> None:
    """D1-F4: its link is one more hop."""
    model = ring(lifetime)
    longer = PartGraph(model.graph.brokers | {"client": NEVER_FAILS}, model.graph.links | {("c", "client"): LOCAL})
    for source in "abc":
        expected = Model(longer, lifetime).pair(level, source, "client")
        assert model.pair(level, source, "c", local=LOCAL) == pytest.approx(expected, abs=1e-9)
        if level.buffers:
            assert model.block_form(level, source, "c", local=LOCAL) == pytest.approx(expected, abs=1e-9)


def test_a_local_link_knows_what_its_broker_shares() -> None:
    rack = Together("rack", part_of_availability(0.9, 50_000), brokers=("b",))
    model = Model(PartGraph({"a": BROKER, "b": BROKER}, {("a", "b"): LINK}, [rack]), 900)
    longer = PartGraph(
        {"a": BROKER, "b": BROKER, "client": NEVER_FAILS}, {("a", "b"): LINK, ("b", "client"): LOCAL}, [rack]
    )
    expected = Model(longer, 900).pair(Reliability.BUFFERED, "a", "client")
    assert model.pair(Reliability.BUFFERED, "a", "b", local=LOCAL) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_published_while_the_local_link_is_off_is_lost(level: Reliability) -> None:
    model = ring()
    publishers = [Publisher("a", "t", 1.0), Publisher("a", "t", 1.0, local=LOCAL)]
    assert value(model, level, publishers, Subscriber("c", "t")) == pytest.approx(
        0.9 * model.pair(level, "a", "c"), abs=1e-12
    )


def test_local_links_are_among_what_would_help() -> None:
    """Those of all clients of a broker together."""
    publishers, subscriber = [Publisher("a", "t", local=LOCAL)], Subscriber("c", "t", local=LOCAL)
    level = Reliability.PERIODIC
    found = {one.part: one.gain for one in contributions(ring(), publishers, [subscriber], level)}
    pair = ring().pair(level, "a", "c")
    assert found["clients – a"] == pytest.approx(0.8 * pair - 0.64 * pair)
    assert found["clients – c"] == pytest.approx(0.8 * pair - 0.64 * pair)
    assert "clients – b" not in found


def test_samples_are_looked_at_once_however_many_parts_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    match_batch = FilterIndex.match_batch

    def counted(index: FilterIndex[Any], events: Iterable[Any]) -> list[list[Any]]:
        looked.append(1)
        return match_batch(index, events)

    monkeypatch.setattr(FilterIndex, "match_batch", counted)
    found = contributions(ring(), [Publisher("a", sample=SAMPLE)], [Subscriber("c", filter="price > 1")], LEVELS[1])
    assert len(found) == 8
    assert len(looked) == 1


# -------------------------------------------------------------------------------------------------------------- delays
@pytest.mark.parametrize("level", BUFFERING)
def test_the_share_within_a_time_is_the_reliability_of_that_lifetime(level: Reliability) -> None:
    """D1-D12: of several publishers, with local links; of those events that are accepted."""
    publishers = [Publisher("a", "t", 2.0, local=LOCAL), Publisher("d", "t", 1.0)]
    subscriber = Subscriber("c", "t", local=LOCAL)
    delay = delay_of(ring(), level, Interests(publishers, [subscriber]).flows(subscriber), subscriber)
    assert delay is not None
    assert delay.accepted == pytest.approx((2 * 0.8 * 0.9 + 0.9) / 3)
    for time in (0.0, 60.0, 3_600.0, 86_400.0):
        expected = value(ring(time), level, publishers, subscriber)
        assert delay.accepted * delay.within(time) == pytest.approx(expected, abs=1e-9)
    for share in (0.5, 0.9, 0.99):
        time = delay.percentile(share)
        assert delay.within(time) >= share - 1e-9
        assert time == 0 or delay.within(time * 0.999) < share


def test_delays_of_levels_that_store_nothing_are_none() -> None:
    assert delay_of(ring(), Reliability.PERIODIC, [Flow("a", 1.0)], Subscriber("c")) is None
    assert delay_of(ring(), Reliability.BUFFERED, [], Subscriber("c", "t")) is None
