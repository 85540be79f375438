"""Exactly once, through kills of everything that a query runs on; `python -m experiments.exactly_once` does more."""

import pytest

from experiments.exactly_once.campaign import run


@pytest.mark.full
@pytest.mark.parametrize(
    ("plan", "replicas"),
    [(("before-commit", "after-commit", "leader"), 3), (("broker",), 1)],
    ids=["driver and JVM around the commit, then the leader of a group", "a broker"],
)
def test_nothing_is_lost_or_doubled_when_it_is_killed(plan: tuple[str, ...], replicas: int) -> None:
    outcome = run(plan, replicas)
    assert outcome.kills == len(plan)
    assert outcome.published > 0
    assert (outcome.lost, outcome.doubled) == (0, 0), str(outcome)
    assert outcome.is_clean


@pytest.mark.long
@pytest.mark.parametrize("kind", ["before-commit", "after-commit", "driver", "broker", "leader"])
def test_nothing_is_lost_or_doubled_in_many_kills(kind: str) -> None:
    outcome = run([kind] * 20, 3 if kind == "leader" else 1)
    print(outcome)
    assert outcome.is_clean
