"""Files with what was observed: what is read, and what is refused by line."""

from __future__ import annotations

import pytest

from holdfast.errors import PredictionError
from holdfast.qos.fitting import Observed
from holdfast.qos.interest import SampleEvent
from holdfast.qos.observations import observed_from, sample_from


def test_on_and_off_times() -> None:
    """D1-H1: the last may not have ended."""
    on, off = observed_from("state, seconds, ended\non,10.5,yes\noff, 2,TRUE\n\non,3,no\n", "f.csv")
    assert on == [Observed(10.5), Observed(3.0, censored=True)]
    assert off == [Observed(2.0)]
    assert observed_from("state,seconds\non,1\noff,2\n", "f.csv") == ([Observed(1.0)], [Observed(2.0)])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f.csv:1: the heading has to be"),
        ("on,1\n", "f.csv:1: the heading has to be"),
        ("state,seconds\nup,1\n", "f.csv:2: 'up,1' is no observed time"),
        ("state,seconds\non,x\n", "f.csv:2"),
        ("state,seconds\non\n", "f.csv:2"),
        ("state,seconds\non,nan\n", "f.csv:2"),
        ("state,seconds\non,inf\n", "f.csv:2"),
        ("state,seconds\non,-1\n", "f.csv:2"),
        ("state,seconds\non,1,yes\n", "f.csv:2"),
        ("state,seconds,ended\non,1,perhaps\n", "f.csv:2"),
        ("state,seconds,ended\non,1,yes\noff,1,no\n", "no off time that came to its end"),
        ("state,seconds\non,1\n", "no off time that came to its end"),
    ],
)
def test_times_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(PredictionError) as refused:
        observed_from(text, "f.csv")
    assert problem in str(refused.value)


def test_events_as_they_are_published_and_as_they_are_received() -> None:
    """D1-F4: an event without a lifetime has that of its publisher."""
    text = '{"topic": "t", "attributes": {"a": 1}, "lifetime_ms": 500}\n{"id": "p/1/2", "position": 3}\n'
    assert sample_from(text, "e") == (SampleEvent("t", {"a": 1}, 0.5), SampleEvent())


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "no event"), ("{}\n{", "e:2: "), ('{"topic": 1}', "e:1: Expected `str`"), ('{"lifetime_ms": -1}', "e:1: ")],
)
def test_events_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(PredictionError) as refused:
        sample_from(text, "e")
    assert problem in str(refused.value)
