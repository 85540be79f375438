"""The evaluators that must agree: `Filter.matches`, and the index with each of its engines."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from holdfast import Filter, FilterIndex
from holdfast.matching.index import ENGINES
from tests.filters.reference import Truth

Matches: TypeAlias = Callable[..., bool]
TruthOf: TypeAlias = Callable[..., Truth]


@pytest.fixture(params=["oracle", *sorted(ENGINES)])
def matches(request: pytest.FixtureRequest) -> Matches:
    """Whether an event matches a filter's text, by the evaluator under test."""

    def ask(text: str, attributes: Mapping[str, Any] | None = None, topic: str = "") -> bool:
        if request.param == "oracle":
            return Filter(text).matches(attributes or {}, topic)
        index: FilterIndex[str] = FilterIndex(engine=request.param)
        index.add("before", Filter("TRUE"))
        index.add("asked", Filter(text))
        found = index.match(attributes or {}, topic)
        assert found in (["before"], ["before", "asked"])
        return "asked" in found

    return ask


@pytest.fixture
def truth_of(matches: Matches) -> TruthOf:
    """TRUE, FALSE or UNKNOWN, told apart by asking for the text and for its NOT."""

    def ask(text: str, attributes: Mapping[str, Any] | None = None, topic: str = "") -> Truth:
        holds, fails = matches(text, attributes, topic), matches(f"NOT ({text})", attributes, topic)
        assert not (holds and fails)
        return Truth.TRUE if holds else Truth.FALSE if fails else Truth.UNKNOWN

    return ask
