"""Ids and filters are Python objects with a life of their own: equality that runs code, finalisers, threads."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import DuplicateId, EventError, Filter, FilterIndex


class Thing:
    """An id that can be weakly referenced."""


class Meddler:
    """An id whose equality changes the index that holds it."""

    def __init__(self, number: int, meddle: Callable[[], None]) -> None:
        self.number = number
        self.meddle = meddle

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        self.meddle()
        return self is other


def test_an_index_lets_go_of_what_is_removed(index: FilterIndex[Any]) -> None:
    thing = Thing()
    gone = weakref.ref(thing)
    filter = Filter("x = 1 AND s LIKE 'abc%' AND y IN (1, 2, 3) AND x + y > 0")
    references = sys.getrefcount(filter)
    index.add(thing, filter)
    assert index.match({"x": 1, "s": "abcd", "y": 3}) == [thing]
    index.remove(thing)
    del thing
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(filter) == references


def test_an_index_that_dies_lets_go_of_everything(new_index: Callable[[], FilterIndex[Any]]) -> None:
    index = new_index()
    things = [Thing() for _ in range(100)]
    gone = [weakref.ref(thing) for thing in things]
    for number, thing in enumerate(things):
        index.add(thing, Filter(f"x > {number} AND (s = 'a' OR s LIKE '%b%')"))
    index.match({"x": 50, "s": "abc"})
    del index, things, thing
    gc.collect()
    assert [reference() for reference in gone] == [None] * 100


def test_an_index_that_holds_itself_is_collected(new_index: Callable[[], FilterIndex[Any]]) -> None:
    class Holder:
        index: Any

    holder = Holder()
    holder.index = new_index()
    holder.index.add(holder, Filter("x = 1"))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_index_is_not_copied(index: FilterIndex[Any], duplicate: Callable[[Any], Any]) -> None:
    index.add(1, Filter("x = 1"))
    with pytest.raises(TypeError, match=r"items\(\)"):
        duplicate(index)


def test_matches_leave_reference_counts_as_they_were(index: FilterIndex[Any]) -> None:
    ids = [Thing() for _ in range(50)]
    attributes = {"x": 5, "s": "some text", "y": 2.5}
    for number, id in enumerate(ids):
        index.add(id, Filter("x = 5" if number % 2 else "x + y > 1 OR s LIKE 's_me%'"))
    before = [sys.getrefcount(id) for id in ids]
    for _ in range(50):
        assert index.match(attributes, "t") == ids
        index.match_batch([attributes, (attributes, "t")])
    assert [sys.getrefcount(id) for id in ids] == before


def test_an_id_whose_equality_adds_the_same_id_is_caught(new_index: Callable[[], FilterIndex[Any]]) -> None:
    index = new_index()
    calls: list[int] = []

    def meddle() -> None:
        if len(calls) < 3:
            calls.append(1)
            index.add(("extra", len(calls)), Filter("x = 1"))

    first, second = Meddler(1, meddle), Meddler(2, meddle)
    index.add(first, Filter("x = 1"))
    index.add(second, Filter("x = 1"))
    assert set(map(id, index.match({"x": 1}))) >= {id(first), id(second)}
    with pytest.raises(DuplicateId):
        index.add(first, Filter("x = 2"))
    index.remove(first)
    index.remove(second)
    assert len(index) == len(calls)


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_an_id_that_is_added_while_it_is_compared_is_held_once(
    new_index: Callable[[], FilterIndex[Any]], turn: int
) -> None:
    index = new_index()
    calls: list[int] = []

    def meddle() -> None:
        calls.append(1)
        if len(calls) == turn:
            index.add(second, Filter("x = 1"))

    first, second = Meddler(1, meddle), Meddler(2, lambda: None)
    index.add(first, Filter("x = 1"))
    with contextlib.suppress(DuplicateId):
        index.add(second, Filter("x = 1"))
    found = index.match({"x": 1})
    assert [id is expected for id, expected in zip(found, (first, second), strict=True)] == [True, True]
    assert len(index) == 2
    index.remove(first)
    index.remove(second)
    assert (len(index), index.match({"x": 1}), index.counters()["rows"]) == (0, [], 0)


def test_a_finaliser_may_use_the_index(new_index: Callable[[], FilterIndex[Any]]) -> None:
    index = new_index()

    class Parting:
        def __del__(self) -> None:
            index.match({"x": 1})
            index.add("parting", Filter("x = 1"))

    parting = Parting()
    index.add(parting, Filter("x = 1"))
    index.remove(parting)
    del parting
    gc.collect()
    assert index.match({"x": 1}) == ["parting"]


class Collections:
    """Runs code at the start and the end of every collection of garbage, and makes collections frequent."""

    def __init__(self, code: Callable[[], None]) -> None:
        self.code = code
        self.threshold = gc.get_threshold()

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        self.code()

    def __enter__(self) -> None:
        gc.callbacks.append(self)
        gc.set_threshold(1)

    def __exit__(self, *problem: object) -> None:
        gc.set_threshold(*self.threshold)
        gc.callbacks.remove(self)


def test_a_collection_while_an_event_is_refused_may_use_the_index(new_index: Callable[[], FilterIndex[Any]]) -> None:
    """An exception is an object, so making one may start a collection, in the middle of reading an event."""
    index = new_index()
    full = {f"a{number}": 1.0 for number in range(32)}
    for number, name in enumerate(full):
        index.add(number, Filter(f"{name} = 1"))
    answers: list[list[Any]] = []

    def use() -> None:
        answers.append(index.match({"a0": 1}))
        answers.append(index.match(full))
        index.add("new", Filter("a40 = 'x' OR a0 > 1"))
        index.remove("new")

    batch = None
    try:
        import pyarrow

        batch = pyarrow.record_batch({name: [1.0 if name != "a31" else float("nan")] for name in full})
    except ImportError:
        pass
    with Collections(use):
        for _ in range(5):
            with pytest.raises(EventError):
                index.match({**full, "a31": "\ud800"})
            with pytest.raises(EventError):
                index.match({**full, "\ud800": 1})
            with pytest.raises(EventError):
                index.match(full, "\ud800")
            if batch is not None:
                with pytest.raises(EventError):
                    index.match_columns(batch)
    assert answers
    assert all(answer in ([0], list(range(32))) for answer in answers)


def test_threads_may_add_and_remove_while_others_match(new_index: Callable[[], FilterIndex[Any]]) -> None:
    """`x + y > 0` is asked in Python, where threads take turns; the kernel must not look at old memory then."""
    index = new_index()
    for number in range(200):
        index.add(("kept", number), Filter(f"x + y > {number % 3} AND z{number % 20} IS NULL"))
    kept = [("kept", number) for number in range(200)]
    stop = threading.Event()
    failures: list[object] = []

    def churn(name: int) -> None:
        number = 0
        while not stop.is_set():
            index.add((name, number), Filter(f"x + y > 0 AND new{number % 50} IS NULL AND s{name} = '{number}'"))
            index.remove((name, number))
            number += 1

    def match() -> None:
        while not stop.is_set():
            found = [id for id in index.match({"x": 5, "y": 5}) if id[0] == "kept"]
            if found != kept:
                failures.append(found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=churn, args=(n,)) for n in range(2)] + [threading.Thread(target=match)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(300):
            found = index.match({"x": 5, "y": 5})
            assert [id for id in found if id[0] == "kept"] == kept
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == []


def test_a_broker_whose_subscribers_come_and_go_does_not_grow(index: FilterIndex[Any]) -> None:
    for number in range(3000):
        text = f"attribute{number} = 'value {number}' AND x > {number} AND s LIKE 'p{number}%' AND b{number} IS NULL"
        index.add(number, Filter(text))
        if number >= 10:
            index.remove(number - 10)
    counters = index.counters()
    assert counters["rows"] <= 20  # a range may lie in two buckets
    assert counters["clusters"] <= 20
    assert counters.get("attributes", 0) <= 40
    assert counters.get("strings", 0) <= 10
