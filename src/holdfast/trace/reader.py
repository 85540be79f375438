"""Reads a trace: lines in, a header and rows out.

A line that can't be understood raises TraceError with its number and what is wrong with it; nothing is guessed or
passed over, except kinds of rows that a later version added and blank lines. The reader never opens anything: it takes
lines, bytes or text, from wherever the caller has them, and takes each only when its row is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import msgspec

from holdfast.trace.errors import CutOffTrace, TraceError
from holdfast.trace.schema import KINDS, TRACE_FORMAT, TRACE_VERSION, AnyRow, Header, Row


class _Format(msgspec.Struct):
    """What every version of the header has. A later version may have changed the rest."""

    format: str
    version: int


class _Kind(msgspec.Struct):
    """What every row has, of whatever kind."""

    kind: str


_decode_format = msgspec.json.Decoder(_Format).decode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode
_decode_row = msgspec.json.Decoder(AnyRow).decode

# ValidationError is one of DecodeError; a byte that is not UTF-8 raises the second, nesting without end the third.
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def read_trace(lines: Iterable[bytes | str]) -> tuple[Header, Iterator[tuple[int, Row]]]:
    """The header, and the rows with the numbers of their lines (the header's is 1)."""
    numbered = enumerate(lines, start=1)
    _, first = next(numbered, (1, b""))
    return _header(first), _rows(numbered)


def _header(line: bytes | str) -> Header:
    if not line.strip():
        raise TraceError(f"a trace begins with a header line, {TRACE_FORMAT!r} in it; here is nothing", 1)
    try:
        found = _decode_format(line)
    except _UNREADABLE as problem:
        raise TraceError(f"this is no header of a trace: {problem}", 1) from None
    if found.format != TRACE_FORMAT:
        raise TraceError(f"the format is {found.format!r}, not {TRACE_FORMAT!r}", 1)
    if found.version > TRACE_VERSION:
        raise TraceError(f"the trace has version {found.version}; this Holdfast reads up to {TRACE_VERSION}", 1)
    if found.version < 1:
        raise TraceError(f"there is no version {found.version} of the format", 1)
    try:
        return _decode_header(line)
    except _UNREADABLE as problem:
        raise TraceError(f"this is no header of a trace: {problem}", 1) from None


def _rows(numbered: Iterator[tuple[int, bytes | str]]) -> Iterator[tuple[int, Row]]:
    before = None
    for number, line in numbered:
        try:
            row: Row = _decode_row(line)
        except _UNREADABLE as problem:
            if _is_passed_over(line):
                continue
            _raise_unreadable(line, number, problem)
        if before is not None and row.t < before:
            raise TraceError(f"time goes backwards, from {before} to {row.t}; rows stand in order of t", number)
        before = row.t
        yield number, row


def _is_passed_over(line: bytes | str) -> bool:
    """Whether the line is blank, or a row of a kind that this version does not know."""
    if not line.strip():
        return True
    try:
        return _decode_kind(line).kind not in KINDS
    except _UNREADABLE:
        return False


def _raise_unreadable(line: bytes | str, number: int, problem: Exception) -> NoReturn:
    # Only the last line of a file can lack its end.
    ended = line.endswith(b"\n") if isinstance(line, bytes) else line.endswith("\n")
    if not ended and not isinstance(problem, msgspec.ValidationError):
        raise CutOffTrace("the trace is cut off in the middle of this line, its last", number) from None
    raise TraceError(f"this is no row of a trace: {problem}", number) from None
