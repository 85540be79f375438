"""Each id once, in the order of addition, whatever was removed in between."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast import DuplicateId, Filter, FilterIndex, HoldfastError, UnknownId


def test_results_come_in_the_order_of_addition_for_every_way_of_storing(index: FilterIndex[Any]) -> None:
    texts = [
        "",
        "x > 0",
        "x = 1",
        "x IN (1, 2)",
        "x BETWEEN 0 AND 5",
        "x IS NOT NULL",
        "x + 1 > 0",
        "x < 9",
        "y IS NULL",
    ]
    order = list(range(len(texts) * 30))
    random.Random(1).shuffle(order)
    for id in order:
        index.add(id, Filter(texts[id % len(texts)]))
    assert index.match({"x": 1}) == order


def test_a_filter_that_is_added_again_is_the_youngest(index: FilterIndex[Any]) -> None:
    for id in "abc":
        index.add(id, Filter("x = 1"))
    index.remove("a")
    index.add("a", Filter("x = 1"))
    assert index.match({"x": 1}) == ["b", "c", "a"]
    assert [id for id, _ in index.items()] == ["b", "c", "a"]


def test_alternatives_that_hold_together_give_the_id_once(index: FilterIndex[Any]) -> None:
    index.add("any", Filter("x = 1 OR y = 1 OR x > 0 OR x + y > 0 OR x IN (1, 2) OR s LIKE 'a%'"))
    assert index.match({"x": 1, "y": 1, "s": "abc"}) == ["any"]


def test_a_present_id_raises_and_changes_nothing(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 1"))
    with pytest.raises(DuplicateId, match="id 1") as caught:
        index.add(1, Filter("x = 2"))
    assert caught.value.id == 1
    assert isinstance(caught.value, ValueError | HoldfastError)
    assert index.match({"x": 1}) == [1]
    assert index.match({"x": 2}) == []
    assert len(index) == 1


def test_an_absent_id_raises(index: FilterIndex[Any]) -> None:
    with pytest.raises(UnknownId, match="'gone'"):
        index.remove("gone")
    with pytest.raises(KeyError):
        index.explain({}, "gone")
    assert "gone" not in index


def test_any_hashable_value_is_an_id(index: FilterIndex[Any]) -> None:
    ids: list[Any] = [0, "a", (1, "b"), None, 2.5, frozenset({1}), b"bytes", -1, 2**70]
    for id in ids:
        index.add(id, Filter("x = 1"))
    assert index.match({"x": 1}) == ids
    assert all(id in index for id in ids)
    unhashable: list[Any] = [[], {}]
    for id in unhashable:
        with pytest.raises(TypeError):
            index.add(id, Filter(""))
    assert len(index) == len(ids)


def test_a_text_is_no_filter(index: FilterIndex[Any]) -> None:
    text: Any = "price > 100"
    with pytest.raises(TypeError, match="a Filter is needed here, not str"):
        index.add(1, text)
    for ask in (index.covering, index.covered_by, index.intersecting, Filter(text).covers, Filter(text).intersects):
        with pytest.raises(TypeError, match="a Filter is needed here, not str"):
            ask(text)
    assert len(index) == 0


def test_an_empty_index_matches_nothing_and_an_empty_filter_everything(index: FilterIndex[Any]) -> None:
    assert index.match({"x": 1}) == []
    index.add("all", Filter(""))
    index.add("none", Filter("FALSE"))
    assert index.match({}) == ["all"]
    assert index.match({"x": "anything"}, "topic") == ["all"]


@pytest.mark.parametrize("name", ["quantum", ""])
def test_an_unknown_engine_is_refused_with_those_that_exist(name: Any) -> None:
    with pytest.raises(ValueError, match=f"no engine '{name}' here; there is: .*portable"):
        FilterIndex(engine=name)
