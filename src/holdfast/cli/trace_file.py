"""Opens the file of a trace: plain, compressed by gzip or xz, or standard input.

Whatever is wrong with its contents is a TraceError that names the file and the line.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from holdfast.errors import TraceError
from holdfast.trace.reader import read_trace
from holdfast.trace.schema import Header, Row

STANDARD_INPUT = "-"
LINE_BYTES_MAX = 64 * 2**20

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"


@contextmanager
def open_trace(name: str) -> Iterator[tuple[Header, Iterator[Row]]]:
    """The header and the rows of a trace. How it is compressed is read off its first bytes, whatever its name."""
    try:
        with _opened(name) as source:
            header, rows = read_trace(_lines(source))
            yield header, (row for _, row in rows)
    except TraceError as problem:
        shown = "standard input" if name == STANDARD_INPUT else name
        if problem.line is None:
            raise
        raise TraceError(f"{shown}, line {problem.line}: {problem.problem}") from None


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_INPUT:
        yield _decompressed(sys.stdin.buffer)
        return
    with open(name, "rb") as file:
        yield _decompressed(file)


def _decompressed(file: BinaryIO) -> BinaryIO:
    peek = getattr(file, "peek", None)
    begin: bytes = peek(len(XZ_MAGIC)) if peek is not None else b""
    if begin.startswith(GZIP_MAGIC):
        return cast(BinaryIO, gzip.open(file))
    if begin.startswith(XZ_MAGIC):
        return cast(BinaryIO, lzma.open(file))
    return file


def _lines(source: BinaryIO) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        try:
            line = source.readline(LINE_BYTES_MAX + 1)
        except EOFError:
            raise TraceError("the compressed file is cut off here", number) from None
        except (gzip.BadGzipFile, lzma.LZMAError, zlib.error) as problem:
            raise TraceError(f"the compressed file is damaged: {problem}", number) from None
        if len(line) > LINE_BYTES_MAX:
            raise TraceError(f"the line is longer than {LINE_BYTES_MAX:,} bytes", number)
        if not line:
            return
        yield line
