"""Every allocation of an index, and of what reads batches of events, fails once, in turn; run as a process of its own,
since a mistake here is a crash.

After each MemoryError the index must be as it was: the same answers, the same counters. Prints how many
allocations failed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from holdfast import Filter
from holdfast.matching._kernel import Kernel
from holdfast.matching.engine import Engine, plain_batch, plain_event
from holdfast.matching.plan import plan
from holdfast.model import _events
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, encode_fields
from holdfast.model.received import ReceivedEvent

FILTERS = [
    "x = 5",
    "x BETWEEN 3 AND 70",
    "x BETWEEN -1e300 AND 1e300 AND y > 2",
    "x >= 2",
    "y < 9",
    "s = 'some' AND x <> 5",
    "s IN ('a', 'b', 'some', 'other') AND x IN (1, 2, 5)",
    "s LIKE 'so%'",
    "s LIKE 'so%me%' AND NOT t LIKE '%x%'",
    "s LIKE 's_me'",
    "s BETWEEN 'a' AND 't'",
    "x + y > 3",
    "x > 9007199254740993 OR y = 5 OR s > 'r'",
    "n1 IS NULL AND n2 IS NULL AND n3 IS NULL AND n4 IS NULL AND n5 IS NULL AND x >= 1",
    "b AND x = 5",
    "z IS NOT NULL",
    "",
    "topic = 'news'",
    "(x = 5 OR y = 5) AND (s = 'some' OR t = 't') AND (x < 100 OR s LIKE 'x%')",
]
EVENTS: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"x": 5, "y": 5, "s": "some", "b": True}, "news"),
    ({"x": 2**53 + 1, "y": 3.5, "s": "söme", "t": "text"}, ""),
    ({"x": 60, "y": 1, "z": "", "s": "b"}, "other"),
]
BATCH = EventBatch.of(
    [encode_fields("p", 1, 1 + row // 2, topic, event, b"", 0, row) for row, (event, topic) in enumerate(EVENTS * 10)]
)
HELD = ("rows", "clusters", "attributes", "strings")

_testcapi = import_module("_testcapi")  # not every Python has it
failures = 0


def starve(action: Callable[[], Any], check: Callable[[], None], lasting: bool) -> Any:
    """Fails the first allocation, then the second, …, until the action succeeds."""
    global failures
    for allocation in range(100_000):
        _testcapi.set_nomemory(allocation, 0 if lasting else allocation + 1)
        try:
            result = action()
        except MemoryError:
            _testcapi.remove_mem_hooks()
            failures += 1
            check()
        else:
            _testcapi.remove_mem_hooks()
            return result
    raise AssertionError("an action never succeeds")


class Checked:
    """An engine, and the filters that it should hold."""

    def __init__(self) -> None:
        self.engine: Engine[Any] = Kernel(plain_event, plain_batch)
        self.filters: dict[int, Filter] = {}

    def check(self) -> None:
        assert len(self.engine) == len(self.filters)
        for attributes, topic in EVENTS:
            expected = [id for id, filter in self.filters.items() if filter.matches(attributes, topic)]
            assert self.engine.match(attributes, topic) == expected

    def held(self) -> list[int]:
        counters = self.engine.counters()
        return [counters[what] for what in HELD]

    def add(self, id: int, filter: Filter, lasting: bool) -> None:
        conjunctions = plan(filter)
        before = self.held()

        def check() -> None:
            assert self.held() == before
            self.check()

        starve(lambda: self.engine.add(id, filter, conjunctions), check, lasting)
        self.filters[id] = filter
        self.check()

    def remove(self, id: int) -> None:
        starve(lambda: self.engine.remove(id), self.check, False)
        del self.filters[id]
        self.check()


def play(lasting: bool) -> None:
    draw = random.Random(lasting)
    checked = Checked()
    filters = [Filter(text) for text in FILTERS]
    for id, filter in enumerate(filters + filters[::-1]):
        checked.add(id, filter, lasting)
        for event in EVENTS[1:3]:
            expected = checked.engine.match(*event)
            assert starve(partial(checked.engine.match, *event), checked.check, lasting) == expected
        found = checked.engine.match_encoded(BATCH)
        assert starve(partial(checked.engine.match_encoded, BATCH), checked.check, lasting) == found
        rows = checked.engine.rows_matching(BATCH)
        assert starve(partial(checked.engine.rows_matching, BATCH), checked.check, lasting) == rows
        starve(checked.engine.items, checked.check, lasting)
        starve(lambda: checked.engine.match_batch(EVENTS), checked.check, lasting)
    while checked.filters:
        checked.remove(draw.choice(list(checked.filters)))
    assert checked.held() == [0, 0, 0, 0]


def split_rungs() -> None:
    """Splitting a ladder's rung needs memory that an addition can do without."""
    for seed in range(12):
        draw = random.Random(seed)
        checked = Checked()
        shapes = ("x >= {}", "x >= {} AND y > 1", "x >= {} AND s = 'some'")
        for id in range(700):
            bound = draw.choice([5, id, -id] if seed % 2 else [5, 5, 5, id, -id])
            filter = Filter(shapes[id % (1 + seed % 3)].format(bound))
            conjunctions = plan(filter)
            if id == 512:  # the first split; everything that it allocates fails at some time
                _testcapi.set_nomemory(2 + seed // 2, 0)
            try:
                checked.engine.add(id, filter, conjunctions)
            except MemoryError:
                _testcapi.remove_mem_hooks()
                checked.engine.add(id, filter, conjunctions)
            _testcapi.remove_mem_hooks()
            checked.filters[id] = filter
        checked.check()
        ids = list(checked.filters)
        draw.shuffle(ids)
        for id in ids:
            checked.engine.remove(id)
            del checked.filters[id]
            if id % 100 == 0:
                checked.check()
        assert checked.held() == [0, 0, 0, 0]


def columns() -> None:
    try:
        import pyarrow
    except ImportError:
        return
    checked = Checked()
    for id, text in enumerate(FILTERS):
        checked.engine.add(id, filter := Filter(text), plan(filter))
        checked.filters[id] = filter
    columns: dict[str, Any] = {
        name: pyarrow.array([event.get(name) for event, _ in EVENTS]) for name in ("y", "s", "b")
    }
    columns["s"] = columns["s"].dictionary_encode()
    columns["topic"] = pyarrow.array([topic for _, topic in EVENTS])
    batch = pyarrow.record_batch(columns)
    capsules = batch.__arrow_c_array__()

    class Ready:
        def __arrow_c_array__(self) -> Any:
            return capsules

    ready = Ready()
    expected = checked.engine.match_columns(ready)
    assert expected[1]
    for lasting in (False, True):
        assert starve(lambda: checked.engine.match_columns(ready), checked.check, lasting) == expected


def batches() -> None:
    """What is asked of bytes has no state; after MemoryError, the next answer is whole."""
    place = (BATCH.data, BATCH.offsets)
    fields = [(Said("news" * row, {"x": row, "s": "söme"}, b"x" * 300, row),) * 7 for row in range(3)]
    asked: list[Callable[[], Any]] = [
        partial(_events.scan, BATCH.encoded, True),
        partial(_events.take, *place, list(range(0, len(BATCH), 3))),
        partial(_events.take, *place, range(len(BATCH) - 1)),
        partial(_events.join, [place, place]),
        *[partial(ask, *place) for ask in (_events.deadlines, _events.publishers, _events.topics)],
        *[partial(_events.encode, "publisher", 1, 1, said, 5) for said in fields],
        *[partial(received, log, positions) for log, positions in (("", ()), ("disk", range(1, 1 + len(BATCH))))],
    ]
    for ask in asked:
        expected = ask()
        for lasting in (False, True):
            assert starve(ask, lambda: None, lasting) == expected


def received(log: str, positions: Sequence[int]) -> list[ReceivedEvent]:
    events = _events.received(ReceivedEvent, BATCH.data, BATCH.offsets, log, positions, ())
    for one in events:
        for name in Event.__struct_fields__:
            getattr(one, name)
    return events


class Said(NamedTuple):
    topic: str
    attributes: dict[str, Any]
    payload: bytes
    lifetime: int


if __name__ == "__main__":
    for lasting in (False, True):
        play(lasting)
    batches()
    split_rungs()
    columns()
    print(failures)
