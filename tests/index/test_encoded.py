"""`match_encoded` says of the bytes of events what `Filter.matches` says of the events."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from holdfast import EventError, Filter, FilterIndex
from holdfast.matching.index import ENGINES
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes, encode_fields
from tests.filters.strategies import Choices, event
from tests.index.test_oracle import SOURCES, random_filter
from tests.tiers import one_always

Sent = tuple[dict[str, Any], str]


def encoded(attributes: dict[str, Any], topic: str = "", payload: bytes = b"") -> EventBytes:
    return encode_fields("publisher", 1, 1, topic, attributes, payload, 0, 0)


def batch_of(events: Sequence[Sent]) -> EventBatch:
    return EventBatch.of([encoded(attributes, topic) for attributes, topic in events])


def expected_rows(filters: dict[Any, Filter], events: Sequence[Sent]) -> dict[Any, Sequence[int]]:
    """As the oracle has it; ids in the order in which they match first, then in that of addition."""
    rows: dict[Any, list[int]] = {}
    for row, (attributes, topic) in enumerate(events):
        for id, filter in filters.items():
            if filter.matches(attributes, topic):
                rows.setdefault(id, []).append(row)
    return {id: found if len(found) < len(events) else range(len(events)) for id, found in rows.items()}


def assert_same(index: FilterIndex[Any], batch: EventBatch, expected: dict[Any, Sequence[int]]) -> None:
    found = index.match_encoded(batch)
    assert found == expected
    assert list(found) == list(expected)
    rows = sorted({row for found_rows in expected.values() for row in found_rows})
    assert index.rows_matching(batch) == (rows if len(rows) < len(batch) else range(len(batch)))


# ------------------------------------------------------------------------------------------------------ the oracle
def with_long_strings(choices: Choices, sent: Sent) -> Sent:
    """Lengths at which msgpack changes its form."""
    attributes, topic = sent
    if not choices.below(6):
        attributes["b"] = choices.string() + "ab" * choices.of((16, 128, 33_000)) + choices.string()
    return attributes, topic


def run_against_oracle(source: bytes, engine: str) -> None:
    choices = Choices(source)
    index: FilterIndex[int] = FilterIndex(engine=engine)  # type: ignore[arg-type]
    filters: dict[int, Filter] = {}
    for step in range(4 + choices.below(14)):
        match choices.below(6):
            case 0 | 1 | 2:
                filters[step] = random_filter(choices)
                index.add(step, filters[step])
            case 3 if filters:
                gone = choices.of(list(filters))
                del filters[gone]
                index.remove(gone)
            case 4 if filters:  # removed and added again: now the youngest
                moved = choices.of(list(filters))
                filters[moved] = filters.pop(moved)
                index.remove(moved)
                index.add(moved, filters[moved])
            case _:
                events = [with_long_strings(choices, event(choices)) for _ in range(choices.below(4))]
                batch = batch_of(events)
                assert_same(index, batch, expected_rows(filters, events))
                part = batch.part(1, len(batch))
                assert_same(index, part, expected_rows(filters, events[1:]))


@pytest.mark.parametrize("examples", one_always([1_000, 5_000]))
@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
def test_the_compiled_engine_finds_in_bytes_what_the_oracle_finds(examples: int) -> None:
    @settings(max_examples=examples)
    @given(SOURCES)
    def compare(source: bytes) -> None:
        run_against_oracle(source, "compiled")

    compare()


@settings(max_examples=300)
@given(SOURCES)
def test_the_portable_engine_finds_in_bytes_what_the_oracle_finds(source: bytes) -> None:
    run_against_oracle(source, "portable")


@pytest.mark.long
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_no_difference_in_bytes_over_fifty_thousand_runs(engine: str) -> None:
    draw = random.Random(engine)
    for _ in range(50_000):
        run_against_oracle(draw.randbytes(draw.randrange(200, 1500)), engine)


@settings(max_examples=300)
@given(SOURCES)
@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
def test_bytes_cost_the_work_that_objects_cost(source: bytes) -> None:
    choices = Choices(source)
    index: FilterIndex[int] = FilterIndex(engine="compiled")
    for id in range(1 + choices.below(12)):
        index.add(id, random_filter(choices))
    events = [event(choices) for _ in range(choices.below(5))]
    counts = []
    for match in (lambda: index.match_batch(events), lambda: index.match_encoded(batch_of(events))):
        before = index.counters()
        match()
        counts.append({name: count - before[name] for name, count in index.counters().items()})
    if index.counters()["rows"]:
        assert counts[0] == counts[1]


# ---------------------------------------------------------------------------------------------------------- answers
def test_ids_that_match_every_event_share_one_range(index: FilterIndex[Any]) -> None:
    for number in range(50):
        index.add(number, Filter("" if number % 2 else "x > 0"))
    index.add("first alone", Filter("x = 1"))
    found = index.match_encoded(batch_of([({"x": 1}, ""), ({"x": 2}, "")]))
    assert list(found) == [*range(50), "first alone"]
    assert found["first alone"] == [0]
    assert found[0] == range(2)
    assert len({id(rows) for name, rows in found.items() if name != "first alone"}) == 1


def test_ids_come_as_they_match_first_and_then_as_they_were_added(index: FilterIndex[Any]) -> None:
    index.add("asked, late", Filter("x + y > 5"))
    index.add("late", Filter("x = 3"))
    index.add("always", Filter(""))
    index.add("early", Filter("x = 1"))
    events = batch_of([({"x": 1, "y": 0}, ""), ({"x": 2, "y": 0}, ""), ({"x": 3, "y": 9}, "")])
    found = index.match_encoded(events)
    assert list(found.items()) == [("always", range(3)), ("early", [0]), ("asked, late", [2]), ("late", [2])]


@pytest.mark.parametrize("count", [0, 1, 33, 300])
def test_an_empty_index_and_an_empty_batch_give_nothing(index: FilterIndex[Any], count: int) -> None:
    batch = batch_of([({"x": 1}, "t")] * count)
    assert index.match_encoded(batch) == {}
    assert index.rows_matching(batch) == ([] if count else range(0))
    index.add("no event", Filter("FALSE"))
    assert index.match_encoded(batch) == {}
    index.add("every event", Filter("topic = 't'"))
    assert index.match_encoded(batch) == ({"every event": range(count)} if count else {})
    assert index.rows_matching(batch) == range(count)


def test_rows_beyond_the_small_integers_are_given(index: FilterIndex[Any]) -> None:
    index.add("odd", Filter("x = 1"))
    index.add("last", Filter("y = 999"))
    found = index.match_encoded(batch_of([({"x": row % 2, "y": row}, "") for row in range(1000)]))
    assert found == {"odd": list(range(1, 1000, 2)), "last": [999]}


def test_a_filter_that_must_be_asked_sees_all_attributes(index: FilterIndex[Any]) -> None:
    """`c` is read inside a condition, and no candidate is found by it."""
    for text in ("(c IS NULL) = (a > 1)", "(NOT (c > 5)) = (a > 1)", "(topic LIKE '_') = (a > 1)"):
        index.add(text, Filter(text))
    events: list[Sent] = [({"c": 9, "a": 3}, "t"), ({"c": 1, "a": 3}, ""), ({"a": 0}, "long"), ({"a": 3}, "")]
    filters = dict(index.items())
    assert_same(index, batch_of(events), expected_rows(filters, events))


@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
def test_an_event_is_decoded_once_however_many_filters_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    index: FilterIndex[int] = FilterIndex(engine="compiled")
    for id in range(20):
        index.add(id, Filter(f"x + y > {id}"))
    batch = batch_of([({"x": 1, "y": 1}, ""), ({"z": 1}, ""), ({"x": 100, "y": 0}, "")])
    decoded: list[int] = []
    event_of = EventBatch.event

    def spy(self: EventBatch, row: int) -> Any:
        decoded.append(row)
        return event_of(self, row)

    monkeypatch.setattr(EventBatch, "event", spy)
    assert index.match_encoded(batch) == {**{id: [0, 2] for id in (0, 1)}, **{id: [2] for id in range(2, 20)}}
    assert decoded == [0, 2]


@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
def test_any_filter_that_certainly_matches_is_enough() -> None:
    index: FilterIndex[int] = FilterIndex(engine="compiled")
    for id in range(10_000):
        index.add(id, Filter("x = 1" if id % 2 else "x + y > 0"))
    batch = batch_of([({"x": 1, "y": 1}, "")] * 5)
    before = index.counters()
    assert index.rows_matching(batch) == range(5)
    after = index.counters()
    assert after["filters_asked"] == before["filters_asked"]
    only_asked = batch_of([({"x": 2, "y": 1}, "")] * 5)
    assert index.rows_matching(only_asked) == range(5)
    assert index.counters()["filters_asked"] == before["filters_asked"] + 5


# --------------------------------------------------------------------------------------- events that no broker accepts
REFUSED: list[tuple[bytes, str]] = [
    (b"\xcb" + struct.pack(">d", float("nan")), "finite"),
    (b"\xcb" + struct.pack(">d", float("inf")), "finite"),
    (b"\xca" + struct.pack(">f", float("-inf")), "finite"),
    (b"\xcf" + (2**63).to_bytes(8, "big"), "64 bits"),
    (b"\xcf" + b"\xff" * 8, "64 bits"),
]


def written(pairs: Sequence[tuple[bytes, bytes]], topic: bytes = b"\xa0") -> EventBytes:
    """An event of bytes that nobody has looked at."""
    body = b"".join(name + value for name, value in pairs)
    return EventBytes(b"\x95\xa1p\x01\x01" + topic + bytes([0x80 | len(pairs)]) + body)


@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=[value.hex() for value, _ in REFUSED])
@pytest.mark.parametrize("name", ["x", "nobody reads it"])
def test_a_value_that_can_not_be_compared_is_refused_as_an_object_is(
    index: FilterIndex[Any], name: str, value: bytes, problem: str
) -> None:
    index.add(1, Filter("x > 0 OR y = 1 OR s LIKE 'a%'"))
    bad = written([(msgspec.msgpack.encode(name), value)])
    batch = EventBatch.of([encoded({"y": 1}), encoded({"y": 1}), bad])
    with pytest.raises(EventError, match=problem) as caught:
        index.match_encoded(batch)
    with pytest.raises(EventError) as of_objects:
        index.match_batch([(event.attributes, event.topic) for event in batch.events])
    assert caught.value.args == of_objects.value.args
    assert (caught.value.attribute, caught.value.row) == (name, 2)
    with pytest.raises(EventError, match=problem):
        index.rows_matching(batch)
    assert index.match_encoded(batch.part(0, 2)) == {1: range(2)}


@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=[value.hex() for value, _ in REFUSED])
def test_a_value_that_nobody_has_looked_at_is_refused_where_a_filter_reads_it(
    index: FilterIndex[Any], value: bytes, problem: str
) -> None:
    index.add(1, Filter("x > 0 OR y = 1"))
    read = EventBatch.of([encoded({"y": 1}), written([(b"\xa1x", value)])])
    batch = EventBatch(read.data, read.offsets, False)
    with pytest.raises(EventError, match=problem) as caught:
        index.match_encoded(batch)
    assert (caught.value.attribute, caught.value.row) == ("x", 1)


def test_what_only_passes_a_limit_is_matched(index: FilterIndex[Any]) -> None:
    """No broker accepts it, but `match` takes it, too."""
    index.add("many", Filter("a99 = 1"))
    index.add("long", Filter("s LIKE '%b'"))
    many: dict[str, Any] = {f"a{number}": 1 for number in range(100)}
    events: list[Sent] = [(many, ""), ({"s": "a" * 70_000 + "b"}, "t" * 70_000), ({"n" * 200: 1}, "")]
    batch = batch_of(events)
    assert batch.doubtful == (0, 1, 2)
    assert index.match_encoded(batch) == {"many": [0], "long": [1]}


def test_of_a_name_that_comes_twice_the_last_value_counts(index: FilterIndex[Any]) -> None:
    texts = ["x = 1", "x = 2", "x IS NULL", "x LIKE 'a%'", "x > 0", "x", "x + 1 = 3"]
    filters = {text: Filter(text) for text in texts}
    for text, filter in filters.items():
        index.add(text, filter)
    values = [b"\x01", b"\x02", b"\xa2ab", b"\xc3", b"\xcb" + struct.pack(">d", 2.0), REFUSED[0][0], REFUSED[3][0]]
    for first in values:
        for last in values[:5]:
            batch = EventBatch.of([written([(b"\xa1x", first), (b"\xa1y", b"\x01"), (b"\xa1x", last)])])
            events = [(event.attributes, event.topic) for event in batch.events]
            assert len(events[0][0]) == 2
            assert_same(index, batch, expected_rows(filters, events))


def test_no_name_can_come_so_often_that_it_overflows(index: FilterIndex[Any]) -> None:
    for number in range(40):
        index.add(number, Filter(f"x{number} = 1"))
    pairs = [(f"x{number % 40}".encode(), bytes([number // 40 % 100])) for number in range(4000)]
    body = b"".join(bytes([0xA0 | len(name)]) + name + value for name, value in pairs)
    bytes_of_one = EventBytes(b"\x95\xa1p\x01\x01\xa0\xdc\x0f\xa0".replace(b"\xdc", b"\xde") + body)
    assert index.match_encoded(EventBatch.of([bytes_of_one])) == {}
    assert index.match_encoded(EventBatch.of([encoded({"x7": 1})])) == {7: range(1)}


# ------------------------------------------------------------------------------------------------------ hostile bytes
def handmade(data: bytes, *offsets: Any) -> EventBatch:
    return EventBatch(EventBytes(data), offsets, False)


FULL = encoded({"x": 1, "s": "abc", "f": 2.5, "b": True, "größe": 2**40, "l": "a" * 300}, "topic", b"payload")


def test_an_event_that_ends_early_is_refused_with_its_row(index: FilterIndex[Any]) -> None:
    """Unless it ends behind what filters read; the portable engine reads all."""
    index.add(1, Filter("x = 1 AND l LIKE 'a%'"))
    sound = bytes(encoded({"x": 1, "l": "a"}))
    behind = len(FULL) - len(b"\xc4\x07payload\x00\x00")
    for size in range(len(FULL)):
        batch = handmade(sound + bytes(FULL)[:size], 0, len(sound), len(sound) + size)
        try:
            assert index.match_encoded(batch) == {1: range(2)}
            assert size >= behind
        except EventError as error:
            assert error.row == 1  # noqa: PT017  # either is right in its place
    assert index.match_encoded(handmade(sound, 0, len(sound))) == {1: range(1)}


@pytest.mark.parametrize(
    "offsets",
    [(0, 10**30), (0, -1), (-1, 5), (5, 4), (10**6, 10**6 + 5), (0, 2**63 - 1), (0, 2**64), ("0", "9"), (0, None)],
    ids=repr,
)
def test_offsets_that_lie_are_caught(index: FilterIndex[Any], offsets: tuple[Any, ...]) -> None:
    index.add(1, Filter("x = 1"))
    with pytest.raises((EventError, TypeError, IndexError, OverflowError)):
        index.match_encoded(handmade(bytes(FULL)[:-20], *offsets))
    assert index.match({"x": 1}) == [1]


@pytest.mark.parametrize("lacking", [(), ["a list"], None])
def test_offsets_that_are_none_are_refused(lacking: Any) -> None:
    index: FilterIndex[int] = FilterIndex()
    index.add(1, Filter("x = 1"))
    batch = handmade(bytes(FULL), 0, len(FULL))
    batch.offsets = lacking
    with pytest.raises((TypeError, ValueError)):
        index.match_encoded(batch)


TEXTS = ["x = 1", "s LIKE 'a%c'", "f > 2", "b", "größe > 5", "l LIKE '%a'", "x + f > 0", "topic = 'topic'", "z IS NULL"]


def mutated(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(changed))
        match draw.randrange(4):
            case 0:
                changed[at] = draw.randrange(256)
            case 1:
                changed[at] = draw.choice(b"\xc1\xdb\xdd\xdf\xc6\xc9\xd3\xcf\xcb\xca\x9f\x8f\xbf\xff\x00")
            case 2:
                del changed[at : at + draw.randrange(1, 9)]
            case _:
                changed[at:at] = draw.randbytes(draw.randrange(1, 9))
        changed = changed or bytearray(b"\x90")
    return bytes(changed)


@pytest.mark.parametrize("runs", one_always([3_000, 100_000]))
def test_bytes_of_strangers_are_matched_as_they_decode_or_refused(index: FilterIndex[Any], runs: int) -> None:
    """Without having been read before: where all of an event is sound, so is the answer; nothing else than EventError
    is raised."""
    filters = {text: Filter(text) for text in TEXTS}
    for text, filter in filters.items():
        index.add(text, filter)
    draw = random.Random(26)
    sound = bytes(FULL)
    for _ in range(runs):
        changed = mutated(draw, sound)
        batch = handmade(
            sound + changed + sound, 0, len(sound), len(sound) + len(changed), 2 * len(sound) + len(changed)
        )
        try:
            found = index.match_encoded(batch)
        except EventError as error:
            assert error.row == 1  # noqa: PT017  # either is right in its place
            with pytest.raises(EventError):
                index.match_batch([(event.attributes, event.topic) for event in EventBatch.read(batch.encoded).events])
            continue
        try:
            events = [(event.attributes, event.topic) for event in batch.events]
        except EventError:
            continue  # it breaks off where no filter reads
        try:
            assert found == expected_rows(filters, events)
        except EventError:
            continue  # an oracle that reads more than the first thing that decides
