"""Writes a trace: the header, then one line a row, with a running digest of all bytes.

Two runs are the same run if their digests are. The writer never opens, flushes or closes anything: `sink` is whatever
has `write(bytes)`, and belongs to the caller.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import msgspec

from holdfast.trace.schema import Header, Row


class Sink(Protocol):
    """Where lines go: a binary file, a pipe, a buffer in memory."""

    def write(self, data: bytes, /) -> object: ...


class TraceWriter:
    """Writes rows as JSON lines. The header is written at once, so that even a run that dies early says what it was."""

    __slots__ = ("_encode", "_hash", "_write")

    def __init__(self, header: Header, sink: Sink, keep_digest: bool = True) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._write = sink.write
        self._hash = hashlib.sha256() if keep_digest else None
        self._put(self._encode(header) + b"\n")

    def write(self, row: Row) -> None:
        """Writes one row. Rows come in the order in which they happened."""
        self._put(self._encode(row) + b"\n")

    @property
    def digest(self) -> str:
        """The SHA-256 of everything written so far, in hexadecimal digits; empty if none is kept."""
        return self._hash.hexdigest() if self._hash is not None else ""

    def _put(self, line: bytes) -> None:
        self._write(line)
        if self._hash is not None:
            self._hash.update(line)
