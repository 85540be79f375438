"""An event that no broker may carry is refused by the index as by the oracle, and the index stays as it was."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from holdfast import EventError, Filter, FilterIndex


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    """A subclass of str whose equality lies."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


REFUSED: list[tuple[Any, str]] = [
    (float("nan"), "finite"),
    (float("inf"), "finite"),
    (float("-inf"), "finite"),
    (2**63, "64 bits"),
    (-(2**63) - 1, "64 bits"),
    (None, "leave an attribute out"),
    ([1], "list"),
    (b"bytes", "bytes"),
    ("\ud800", "surrogate"),
    (1j, "complex"),
]


@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=repr)
@pytest.mark.parametrize("name", ["x", "nobody reads it"])
def test_a_value_that_can_not_be_compared_is_refused(
    index: FilterIndex[Any], name: str, value: object, problem: str
) -> None:
    index.add(1, Filter("x > 0 OR y = 1 OR s LIKE 'a%'"))
    with pytest.raises(EventError, match=problem) as caught:
        index.match({"y": 1, name: value})
    assert caught.value.attribute == name
    assert index.match({"y": 1}) == [1]
    assert index.match({}) == []


def test_a_refusal_in_a_batch_names_the_event(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x > 0"))
    with pytest.raises(EventError, match="event 2 of the batch") as caught:
        index.match_batch([{"x": 1}, ({"x": 2}, "t"), {"x": float("nan")}])
    assert caught.value.row == 2
    assert index.match_batch([]) == []


@pytest.mark.parametrize("event", [({"x": 1},), ({"x": 1}, "t", 3), [{"x": 1}, "t"], "x"])
def test_an_event_of_a_batch_is_a_mapping_or_a_pair(index: FilterIndex[Any], event: Any) -> None:
    index.add(1, Filter("x > 0"))
    with pytest.raises(EventError, match=f"not {type(event).__name__} .event 1 of the batch"):
        index.match_batch([{"x": 1}, event])


def test_topic_is_given_beside_the_attributes(index: FilterIndex[Any]) -> None:
    index.add("named", Filter("topic = 'stock'"))
    index.add("none", Filter("topic IS NULL"))
    assert index.match({}, "stock") == ["named"]
    assert index.match({}, topic="stock") == ["named"]
    assert index.match({}, "") == ["none"]
    assert index.match_batch([({}, "stock"), {}, ({}, "")]) == [["named"], ["none"], ["none"]]
    with pytest.raises(EventError, match="topic"):
        index.match({"topic": "stock"})
    with pytest.raises(EventError, match="topic"):
        index.match({}, 5)  # type: ignore[arg-type]
    with pytest.raises(EventError, match="surrogate"):
        index.match({}, "\ud800")


def test_attribute_names_are_text(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x > 0"))
    with pytest.raises(EventError, match="int"):
        index.match({5: 1})  # type: ignore[dict-item]
    with pytest.raises(EventError, match="surrogate"):
        index.match({"\ud800": 1})
    for ask in (lambda: index.match({"": 1, "x": 1}), lambda: index.match_batch([{"x": 1, "": 1}])):
        with pytest.raises(EventError, match="an attribute's name is empty"):
            ask()


@pytest.mark.parametrize("mapping", [OrderedDict, MappingProxyType, dict])
def test_any_mapping_holds_attributes(index: FilterIndex[Any], mapping: type[Mapping[str, Any]]) -> None:
    index.add(1, Filter("x = 3 AND s = 'a'"))
    assert index.match(mapping({"x": 3, "s": "a"})) == [1]  # type: ignore[call-arg]
    assert Filter("x = 3 AND s = 'a'").matches(mapping({"x": 3, "s": "a"}))  # type: ignore[call-arg]


@pytest.mark.parametrize("nothing", [[("x", 3)], "x", None, 5])
def test_what_is_no_mapping_holds_no_attributes(index: FilterIndex[Any], nothing: Any) -> None:
    index.add(1, Filter("x = 3"))
    for ask in (index.match, Filter("x = 3").matches, lambda event, *topic: index.explain(event, 1, *topic)):
        with pytest.raises(EventError, match="mapping of names to values"):
            ask(nothing)
        with pytest.raises(EventError, match="mapping of names to values"):
            ask(nothing, "stock")


def test_subclasses_count_as_the_plain_values_they_hold(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 3 AND s = 'a'"))
    attributes = {"x": Level.HIGH, Word("s"): Word("a")}
    assert index.match(attributes) == [1]
    assert Filter("x = 3").matches({"x": Level.HIGH})


@pytest.mark.parametrize("topic", [None, 0, b"", ()])
def test_what_is_false_is_no_topic(index: FilterIndex[Any], topic: Any) -> None:
    index.add("x", Filter("x = 1"))
    index.add("none", Filter("topic IS NULL"))
    assert Filter("topic IS NULL").matches({"x": 1}, topic)
    assert index.match({"x": 1}, topic) == ["x", "none"]
    assert index.match_batch([({"x": 1}, topic)]) == [["x", "none"]]


def test_a_dict_that_shows_other_items_than_it_stores_is_taken_at_its_word(index: FilterIndex[Any]) -> None:
    class Shouting(dict[str, Any]):
        def items(self) -> Any:
            return [(name, value.upper()) for name, value in super().items()]

        def get(self, name: str, default: Any = None) -> Any:
            return self[name].upper() if name in self else default

    texts = ["s = 'A'", "s = 'a'", "s LIKE 'A%'", "s LIKE '_'"]
    event = Shouting(s="a")
    for text in texts:
        index.add(text, Filter(text))
    assert index.match(event) == [text for text in texts if Filter(text).matches(event)] == ["s = 'A'", *texts[2:]]
