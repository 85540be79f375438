"""`Filter.matches` against the reference evaluator, over random filters and events."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import Filter
from tests.filters import reference, strategies
from tests.filters.reference import Truth, Value


@given(strategies.filter_texts, st.lists(strategies.events, min_size=1, max_size=4))
@example("NOT (x < 5)", [({"x": "a"}, "")])
@example("a = 9007199254740993", [({"a": 9007199254740992.0}, ""), ({"a": 9007199254740993}, "")])
@settings(max_examples=2000)
def test_matches_says_what_the_reference_says(text: str, events: list[tuple[dict[str, Value], str]]) -> None:
    filter = Filter(text)
    for attributes, topic in events:
        expected = reference.truth(filter.root, reference.event_of(attributes, topic)) is Truth.TRUE
        assert filter.matches(attributes, topic) is expected


@given(strategies.filter_texts, strategies.events)
@settings(max_examples=500)
def test_not_matches_where_the_reference_says_false(text: str, event: tuple[dict[str, Value], str]) -> None:
    expected = reference.truth(Filter(text).root, reference.event_of(*event)) is Truth.FALSE
    assert Filter(f"NOT ({text})").matches(*event) is expected


@pytest.mark.long
@given(strategies.deep_filter_texts, strategies.events)
def test_matches_says_what_the_reference_says_about_deep_filters(
    text: str, event: tuple[dict[str, Value], str]
) -> None:
    filter = Filter(text)
    assert filter.matches(*event) is (reference.truth(filter.root, reference.event_of(*event)) is Truth.TRUE)


def test_the_random_filters_reach_every_truth_value_often() -> None:
    """The strategies are worth something only if TRUE, FALSE and UNKNOWN all turn up."""
    counts = dict.fromkeys(Truth, 0)

    @given(strategies.filter_texts, strategies.events)
    @settings(max_examples=300)
    def count(text: str, event: tuple[dict[str, Value], str]) -> None:
        counts[reference.truth(Filter(text).root, reference.event_of(*event))] += 1

    count()
    assert min(counts.values()) >= 30, counts
