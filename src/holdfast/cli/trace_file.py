"""Opens the files of a trace: plain, compressed by gzip or xz, or standard input.

Whatever is wrong with their contents is a TraceError that names the file and the line. Several files are those of
brokers of one site, each of which wrote its own while it served; they are read as one, in the order of their clocks. A
broker that was killed, or still writes, leaves half a line: that is said, and what stands before it counts.
"""

from __future__ import annotations

import gzip
import heapq
import lzma
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, cast

from holdfast.trace.errors import CutOffTrace, TraceError
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
            found = (row for _, row in rows)
            yield header, (_up_to_the_cut(name, found) if header.is_live else found)
    except TraceError as problem:
        if problem.line is None:
            raise
        raise TraceError(f"{_shown(name)}, line {problem.line}: {problem.problem}") from None


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name


def _up_to_the_cut(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except CutOffTrace as cut:
        print(f"{_shown(name)}: line {cut.line}, its last, is cut off, and left out", file=sys.stderr)


@contextmanager
def open_traces(names: Sequence[str]) -> Iterator[tuple[Header, Iterator[Row]]]:
    """The header and the rows of one trace, or of those that several brokers of a site wrote."""
    if len(names) == 1:
        with open_trace(names[0]) as opened:
            yield opened
        return
    with ExitStack() as stack:
        found = [stack.enter_context(open_trace(name)) for name in names]
        headers = [header for header, _ in found]
        for name, header in zip(names, headers, strict=True):
            if not header.is_live:
                raise TraceError(f"{_shown(name)} is the trace of a whole run, {header.run}: ask about it alone")
        sites = list(dict.fromkeys(str(header.settings.get("site")) for header in headers))
        if len(sites) > 1:
            raise TraceError(f"these are traces of several sites: {', '.join(sites)}")
        yield _joined(sites[0], headers), heapq.merge(*(rows for _, rows in found), key=lambda row: row.t)


def _joined(site: str, headers: Sequence[Header]) -> Header:
    brokers = dict.fromkeys(str(header.settings.get("broker")) for header in headers)
    settings = {**headers[0].settings, "share": min(header.share for header in headers)}
    if any(header.settings.get("continues") for header in headers):
        settings["continues"] = True
    sampled = any(header.sampled for header in headers)
    run = f"{site}/{','.join(brokers)}"
    return Header(run=run, system=headers[0].system, sampled=sampled, settings=settings)


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
