"""Traces on disk: bytes that never change, reading what was written, and saying what is wrong with what was not."""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.trace.errors import SampledTrace, TraceError, UnknownChecker, UnknownEvent
from holdfast.trace.reader import read_trace
from holdfast.trace.schema import KINDS, ROW_TYPES, Header, Row
from holdfast.trace.writer import TraceWriter
from tests.repository import ROOT
from tests.trace.runs import EVERY_KIND

GOLDEN = ROOT / "tests" / "trace" / "golden" / "version-1.jsonl"
GOLDEN_HEADER = Header(
    run="golden/1", system="paxos", seed=17, promises=["exactly-once", "weak-ordered:b2"], settings={"f": 1}
)
HEADER_LINE = b'{"format":"holdfast-trace","version":1,"run":"r","system":"tree"}\n'
ROW_LINE = b'{"kind":"fault","t":5,"component":"b1","state":"crashed"}\n'


def written(header: Header, rows: Iterable[Row]) -> bytes:
    sink = io.BytesIO()
    writer = TraceWriter(header, sink)
    for row in rows:
        writer.write(row)
    assert writer.digest == hashlib.sha256(sink.getvalue()).hexdigest()
    return sink.getvalue()


def read(data: bytes) -> tuple[Header, list[tuple[int, Row]]]:
    header, rows = read_trace(io.BytesIO(data))
    return header, list(rows)


def test_the_bytes_of_every_kind_never_change() -> None:
    # Files of this version exist. A line here may be added, never altered: readers skip kinds and fields, not meanings.
    assert written(GOLDEN_HEADER, EVERY_KIND).decode() == GOLDEN.read_text(encoding="utf-8")


def test_the_golden_file_shows_every_kind_short_and_long() -> None:
    for kind in ROW_TYPES:
        rows = [row for row in EVERY_KIND if type(row) is kind]
        fields = {field.name for field in msgspec.structs.fields(kind) if not field.required}
        shown = {name for row in rows for name in msgspec.to_builtins(row)}
        assert rows, kind
        assert fields <= shown, kind


def test_what_was_written_is_read_back() -> None:
    header, rows = read(GOLDEN.read_bytes())
    assert header == GOLDEN_HEADER
    assert rows == list(enumerate(EVERY_KIND, start=2))


def test_lines_may_be_text() -> None:
    header, rows = read_trace(GOLDEN.read_text(encoding="utf-8").splitlines())
    assert (header, [row for _, row in rows]) == (GOLDEN_HEADER, EVERY_KIND)


def test_a_row_knows_its_kind() -> None:
    assert [msgspec.to_builtins(row)["kind"] for row in EVERY_KIND] == [row.kind for row in EVERY_KIND]
    assert list(KINDS.values()) == list(ROW_TYPES)


VALUES = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.booleans()
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.text(max_size=5))
def test_any_attributes_are_read_back_with_their_types(attributes: dict[str, Any], topic: str) -> None:
    row = msgspec.structs.replace(EVERY_KIND[1], attributes=attributes, topic=topic)
    [(_, back)] = read(written(GOLDEN_HEADER, [row]))[1]
    assert repr(back) == repr(row)  # 1 and 1.0 and True are equal, and not the same


def test_a_writer_without_a_digest_writes_the_same() -> None:
    sink = io.BytesIO()
    writer = TraceWriter(GOLDEN_HEADER, sink, keep_digest=False)
    for row in EVERY_KIND:
        writer.write(row)
    assert writer.digest == ""
    assert sink.getvalue() == GOLDEN.read_bytes()


def test_rows_are_read_only_when_they_are_asked_for() -> None:
    lines = iter([HEADER_LINE, ROW_LINE, b"garbage\n"])
    _, rows = read_trace(lines)
    assert next(rows)[0] == 2
    assert list(lines) == [b"garbage\n"]


def test_kinds_and_fields_of_later_versions_and_blank_lines_are_passed_over() -> None:
    later = b'{"kind":"teleported","t":1,"component":7}\n{"kind":"fault","t":2,"component":"b","state":"up","why":[]}\n'
    header, rows = read(HEADER_LINE.replace(b"}", b',"weather":"fine"}') + b"\n" + later + b" \n")
    assert header.run == "r"
    assert [(number, row.t) for number, row in rows] == [(4, 2)]


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", 1, "a trace begins with a header line, 'holdfast-trace' in it; here is nothing"),
        (b"\n" + HEADER_LINE, 1, "a trace begins with a header line"),
        (b"hello\n", 1, "this is no header of a trace: JSON is malformed"),
        (b"\x1f\x8b\x08\x00", 1, "this is no header of a trace: JSON is malformed"),
        (ROW_LINE, 1, "this is no header of a trace: Object missing required field `format`"),
        (b'{"format":"tape","version":1}\n', 1, "the format is 'tape', not 'holdfast-trace'"),
        (HEADER_LINE.replace(b":1,", b":2,"), 1, "the trace has version 2; this Holdfast reads up to 1"),
        (HEADER_LINE.replace(b":1,", b":0,"), 1, "there is no version 0 of the format"),
        (HEADER_LINE.replace(b'"r"', b"7"), 1, "this is no header of a trace: Expected `str`, got `int` - at `$.run`"),
        (HEADER_LINE + ROW_LINE + b"garbage\n", 3, "this is no row of a trace: JSON is malformed"),
        (HEADER_LINE + b"[]\n", 2, "this is no row of a trace: Expected `object`, got `array`"),
        (HEADER_LINE + b"[" * 10_000 + b"\n", 2, "this is no row of a trace: "),
        (HEADER_LINE + ROW_LINE.replace(b"}", b',"why":' + b"[" * 10_000), 2, "this is no row of a trace: "),
        (HEADER_LINE + b'{"t":1}\n', 2, "this is no row of a trace: Object missing required field `kind`"),
        (HEADER_LINE + ROW_LINE.replace(b"5", b'"5"'), 2, "this is no row of a trace: Expected `int`, got `str`"),
        (HEADER_LINE + ROW_LINE.replace(b"b1", b"\xff"), 2, "this is no row of a trace: 'utf-8' codec can't decode"),
        (HEADER_LINE + ROW_LINE + ROW_LINE[:20], 3, "the trace is cut off in the middle of this line, its last"),
        (HEADER_LINE + ROW_LINE[:20] + b"\n", 2, "this is no row of a trace: "),
        (HEADER_LINE + ROW_LINE + ROW_LINE.replace(b"5", b"4"), 3, "time goes backwards, from 5 to 4"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_with_what_is_wrong_with_it(data: bytes, line: int, problem: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(data)
    assert caught.value.line == line
    assert caught.value.problem.startswith(problem)
    assert str(caught.value) == f"line {line}: {caught.value.problem}"
    assert isinstance(caught.value, HoldfastError)
    assert isinstance(caught.value, ValueError)


def test_a_whole_last_line_needs_no_end() -> None:
    assert len(read(HEADER_LINE + ROW_LINE + ROW_LINE[:-1])[1]) == 2


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_a_damaged_trace_raises_nothing_but_trace_errors(place: int, junk: bytes) -> None:
    data = GOLDEN.read_bytes()
    place %= len(data)
    for damaged in (data[:place], data[:place] + junk + data[place + len(junk) :], data[:place] + junk + data[place:]):
        with contextlib.suppress(TraceError):
            read(damaged)


@pytest.mark.parametrize(
    "error",
    [
        TraceError("bad", 3),
        SampledTrace("sampled"),
        UnknownEvent("p/1/1", ["p/1/2", "p/1/3"]),
        UnknownChecker("x:y", "there is no checker"),
    ],
)
def test_errors_of_traces_survive_pickling(error: TraceError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_unknown_event_names_what_may_have_been_meant() -> None:
    assert str(UnknownEvent("a", ["b", "c"])) == "the trace has no event 'a'; did you mean b or c?"
    assert str(UnknownEvent("a")) == "the trace has no event 'a'"
