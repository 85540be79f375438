"""Record batches become the events that their rows say; what no event can carry is refused by row and column."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import EventError
from holdfast.model.event import EVENT_BYTES_MAX, Event, check_event, decode_events, slices_of
from holdfast.spark.encoding import PART_BYTES, PART_EVENTS, EventEncoder
from holdfast.spark.sink_options import Kind, SinkColumns

KINDS = {"i": Kind.INTEGER, "small": Kind.INTEGER, "f": Kind.FLOAT, "single": Kind.FLOAT, "s": Kind.STRING}
COLUMNS = SinkColumns({**KINDS, "b": Kind.BOOLEAN}, "t", "p")
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("small", pa.int8()),
        ("f", pa.float64()),
        ("single", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", pa.string()),
        ("p", pa.binary()),
    ]
)
ATTRIBUTES = pa.map_(
    pa.string(), pa.struct([("i", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_())])
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
rows = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "small": st.none() | st.integers(-128, 127),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "single": st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32),
        "s": st.none() | texts,
        "b": st.none() | st.booleans(),
        "t": st.none() | texts,
        "p": st.none() | st.binary(max_size=6),
    }
)


def events_of(encoder: EventEncoder, *batches: Any) -> list[Event]:
    """The events, of which every one is sound and every part counted."""
    found = []
    for batch in batches:
        for part, count in encoder.parts(batch):
            events, slices = decode_events(part), slices_of(part)
            assert len(events) == count
            for event, data in zip(events, slices, strict=True):
                check_event(event, len(data))
            found += events
    return found


def encoder(columns: SinkColumns = COLUMNS, topic: str = "") -> EventEncoder:
    return EventEncoder(columns, topic, "me", 77, "partition 3")


def encode(column: Any, kind: Kind = Kind.STRING, **columns: Any) -> list[Event]:
    wanted = SinkColumns({"x": kind}, **columns)
    return events_of(encoder(wanted), pa.record_batch({"x": column}))


@given(st.lists(rows), st.lists(rows))
def test_every_row_is_the_event_that_it_says(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    batches = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (first, second)]
    found = events_of(encoder(), *batches)
    assert [(e.publisher, e.incarnation, e.sequence) for e in found] == [
        ("me", 77, number + 1) for number in range(len(first) + len(second))
    ]
    for event, row in zip(found, first + second, strict=True):
        wanted = {name: row[name] for name in (*KINDS, "b") if row[name] is not None}
        assert (event.attributes, event.topic, event.payload) == (wanted, row["t"] or "", row["p"] or b"")
        assert [type(value) for value in event.attributes.values()] == [type(value) for value in wanted.values()]
        assert (event.published_at > 0, event.lifetime) == (True, 0)


def test_a_text_may_be_the_payload_and_a_topic_constant() -> None:
    columns = SinkColumns({}, payload="p")
    for type in (pa.string(), pa.large_string()):
        batch = pa.record_batch({"p": pa.array(["é", None], type)})
        found = events_of(encoder(columns, "t"), batch)
        assert [(e.topic, e.payload, e.attributes) for e in found] == [("t", "é".encode(), {}), ("t", b"", {})]


def test_a_map_is_spread_beside_the_columns() -> None:
    values = [[("a", {"i": 1}), ("b", {"f": 0.5}), ("gone", None)], None, [("c", {"s": "é"}), ("d", {"b": False})]]
    batch = pa.record_batch({"attributes": pa.array(values, ATTRIBUTES), "x": [1, 2, None]})
    columns = SinkColumns({"x": Kind.INTEGER}, spread=True)
    wanted = [{"x": 1, "a": 1, "b": 0.5}, {"x": 2}, {"c": "é", "d": False}]
    assert [e.attributes for e in events_of(encoder(columns), batch)] == wanted


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([("x", {"i": 1})], "column 'x': is in the map"),
        ([("a", {"i": 1, "b": True})], "column 'a': has 2 values"),
        ([("a", {})], "column 'a': has 0 values"),
        ([("topic", {"i": 1})], "column 'topic': 'topic' is not an attribute"),
        ([("a", {"f": float("inf")})], "column 'a': attribute 'a' is inf"),
        ([("n" * 129, {"i": 1})], "name_bytes_max"),
        ([(f"n{n}", {"i": 1}) for n in range(64)], "attributes_max, 64"),
        ([("a", {"s": "s" * 65_537})], "string_bytes_max"),
    ],
)
def test_what_a_map_may_not_hold_is_refused(entries: list[Any], problem: str) -> None:
    batch = pa.record_batch({"attributes": pa.array([None, entries], ATTRIBUTES), "x": [1, 2]})
    with pytest.raises(EventError, match=f"partition 3, row 1.*{problem}.*nothing was published"):
        events_of(encoder(SinkColumns({"x": Kind.INTEGER}, spread=True)), batch)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("type", [pa.float64(), pa.float32()])
def test_numbers_that_are_not_finite_are_refused(value: float, type: Any) -> None:
    with pytest.raises(EventError, match=f"row 2, column 'x': is {value}; only finite numbers") as refused:
        encode(pa.array([None, 1.0, value, value], type), Kind.FLOAT)
    assert refused.value.attribute == "x"


def test_a_text_that_is_none_is_refused() -> None:
    bad = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(EventError, match="row 1, column 'x': is no Unicode text"):
        encode(bad)


def test_rows_are_counted_over_all_batches_of_a_task() -> None:
    wanted = encoder(SinkColumns({"x": Kind.STRING}))
    assert len(events_of(wanted, pa.record_batch({"x": ["a", "b"]}))) == 2
    long = pa.record_batch({"x": ["a"] * PART_EVENTS + ["é" * 32_769]})
    with pytest.raises(EventError, match=f"row {PART_EVENTS + 2}, column 'x': has 65538 bytes, beyond string_bytes_m"):
        events_of(wanted, long)


def test_topics_and_payloads_have_limits() -> None:
    with pytest.raises(EventError, match="column 'x': has 65537 bytes, beyond string_bytes_max"):
        events_of(encoder(SinkColumns({}, topic="x")), pa.record_batch({"x": ["t" * 65_537]}))
    for payload in ("p" * 524_289, b"p" * 524_289):
        with pytest.raises(EventError, match="column 'x': has 524289 bytes, beyond payload_bytes_max"):
            events_of(encoder(SinkColumns({}, payload="x")), pa.record_batch({"x": [payload]}))


def wide(count: int, present: int, text: str) -> tuple[SinkColumns, Any]:
    names = [f"c{n}" for n in range(count)]
    row = [pa.array([None, text if n < present else None], pa.string()) for n in range(count)]
    return SinkColumns(dict.fromkeys(names, Kind.STRING)), pa.record_batch(row, names=names)


def test_a_wide_frame_may_have_few_attributes_in_each_row() -> None:
    columns, batch = wide(70, 64, "x")
    assert [len(e.attributes) for e in events_of(encoder(columns), batch)] == [0, 64]
    columns, batch = wide(70, 65, "x")
    with pytest.raises(EventError, match="row 1: has 65 attributes, beyond attributes_max, 64"):
        events_of(encoder(columns), batch)


def test_an_event_has_a_limit_as_a_whole() -> None:
    columns, batch = wide(16, 15, "x" * 65_536)
    assert len(events_of(encoder(columns), batch)) == 2
    columns, batch = wide(16, 16, "x" * 65_536)
    with pytest.raises(EventError, match=f"row 1: has .* beyond event_bytes_max, {EVENT_BYTES_MAX}"):
        events_of(encoder(columns), batch)


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=40))
def test_parts_fit_into_messages(sizes: list[int]) -> None:
    batch = pa.record_batch({"x": ["x" * size for size in sizes]})
    parts = list(encoder(SinkColumns({"x": Kind.STRING})).parts(batch))
    assert sum(count for _, count in parts) == len(sizes)
    assert all(len(part) <= PART_BYTES or count == 1 for part, count in parts)
    # No more of them than needed: two neighbours together would be too much.
    together = [len(one) + len(other) for (one, _), (other, _) in pairwise(parts)]
    assert all(size > PART_BYTES / 2 for size in together)


def test_a_batch_without_rows_has_no_parts() -> None:
    assert list(encoder().parts(pa.RecordBatch.from_pylist([], SCHEMA))) == []
