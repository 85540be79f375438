"""`explain`: why a filter matched, or the first predicate that failed, with the value seen."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from holdfast import Filter, FilterIndex, Reason
from holdfast.matching.explanation import explain
from tests.filters.strategies import events, filter_texts


def test_a_failure_names_the_first_predicate_and_the_value_seen(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("symbol = 'IBM' AND price > 100 AND volume > 5"))
    explanation = index.explain({"symbol": "IBM", "price": 99.5, "volume": 1}, 1)
    assert not explanation.matched
    assert explanation.reasons == (Reason("price > 100", False, {"price": 99.5}),)
    assert str(explanation) == "did not match: price > 100 is FALSE (price = 99.5)"


def test_a_missing_attribute_is_unknown_and_said_to_be_missing(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("NOT price > 100"))
    explanation = index.explain({}, 1)
    assert str(explanation) == "did not match: NOT price > 100 is UNKNOWN (price is missing)"


def test_a_match_names_every_predicate_that_was_needed(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("topic = 'stock' AND (price > 100 OR symbol LIKE 'I%')"))
    explanation = index.explain({"symbol": "IBM", "price": 5}, 1, topic="stock")
    assert explanation.matched
    assert [reason.predicate for reason in explanation.reasons] == ["topic = 'stock'", "symbol LIKE 'I%'"]


def test_the_negation_of_a_group_is_explained_part_by_part(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("NOT (a = 1 OR b = 2)"))
    assert index.explain({"a": 0, "b": 2}, 1).reasons == (Reason("NOT b = 2", False, {"b": 2}),)
    assert index.explain({"a": 0, "b": 0}, 1).matched


@given(filter_texts, events)
def test_an_explanation_agrees_with_the_match(text: str, event: tuple[dict[str, Any], str]) -> None:
    explanation = explain(Filter(text), *event)
    assert explanation.matched is Filter(text).matches(*event)
    assert explanation.reasons
    if explanation.matched:
        assert all(reason.outcome is True for reason in explanation.reasons)
    else:
        assert len(explanation.reasons) == 1
        assert explanation.reasons[0].outcome is not True
    str(explanation)
