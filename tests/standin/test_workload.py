"""What is subscribed to and published in the paper's experiments (D0-B16)."""

from __future__ import annotations

from random import Random

import pytest

from experiments.standin.workload import VALUES, Bias, Workload, Zipf, match_probability

LOW, HIGH = Bias.LOW, Bias.HIGH


@pytest.mark.parametrize(
    ("degree", "published", "subscribed", "probability"),
    [
        (0.5, LOW, LOW, 0.4688),
        (0.5, LOW, HIGH, 0.2601),
        (0.5, HIGH, LOW, 0.6965),
        (1.0, LOW, LOW, 0.4383),
        (1.0, LOW, HIGH, 0.0968),
        (1.0, HIGH, LOW, 0.8767),
        (2.0, LOW, LOW, 0.2876),
        (2.0, LOW, HIGH, 0.0042),
        (2.0, HIGH, LOW, 0.9924),
        (4.0, LOW, LOW, 0.0714),
        (4.0, LOW, HIGH, 0.0),
        (4.0, HIGH, LOW, 1.0),
    ],
)
def test_an_event_matches_a_subscription_as_often_as_computed(
    degree: float, published: Bias, subscribed: Bias, probability: float
) -> None:
    """D0-D6"""
    computed = match_probability(Zipf(degree, published), Zipf(degree, subscribed))
    assert computed == pytest.approx(probability, abs=0.00006)


@pytest.mark.parametrize("bias", [LOW, HIGH])
@pytest.mark.parametrize("degree", [0.1, 0.5, 4.0])
def test_values_are_drawn_as_often_as_their_weights_say(degree: float, bias: Bias) -> None:
    """D0-D4"""
    zipf, count = Zipf(degree, bias), 20_000
    drawn = zipf.draw(count, Random(1))
    assert sum(zipf.weights) == pytest.approx(1.0)
    for value, weight in enumerate(zipf.weights, 1):
        assert drawn.count(value) / count == pytest.approx(weight, abs=0.015)


def test_the_two_biases_are_each_other_s_mirror_image() -> None:
    low, high = Zipf(1.5, LOW).weights, Zipf(1.5, HIGH).weights
    assert low == high[::-1]
    assert low[0] == max(low)
    assert high[VALUES - 1] == max(high)


def test_a_drawn_workload_has_the_fanout_that_it_says() -> None:
    workload = Workload(2_000, 500)
    drawn = workload.draw(7)
    matches = sum(value > threshold for value in drawn.values for threshold in drawn.thresholds)
    assert matches / len(drawn.values) == pytest.approx(workload.fanout, rel=0.05)
    assert workload.draw(7) == drawn != workload.draw(8)


def test_neighbours_share_the_subscriptions_evenly() -> None:
    drawn = Workload(10, 1).draw(1)
    parts = [drawn.share(part, 3) for part in range(3)]
    assert [len(part) for part in parts] == [4, 3, 3]
    assert sorted(each for part in parts for each in part) == sorted(drawn.thresholds)
