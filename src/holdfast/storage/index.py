"""Where a stream's records lie in one segment: a sparse index, in memory, and in the next segment's header.

An entry is made for a block that begins `index_bytes` or more after the block of the last entry. The stream's records
thus lie in blocks that begin less than `index_bytes` after an entry's: what lies between may be skipped.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class StreamIndex:
    """Numbers, offsets, times and bytes so far, entry by entry."""

    __slots__ = ("bytes", "numbers", "offsets", "records", "sizes", "step", "times")

    def __init__(self, step: int) -> None:
        self.step = step  # kept with the index: a log may be opened with other settings later
        self.numbers = array("Q")  # of the first record of this stream in the block
        self.offsets = array("Q")  # of the block
        self.times = array("q")  # of the block
        self.sizes = array("Q")  # bytes of this stream's records in the segment before the block
        self.records = 0  # in the whole segment
        self.bytes = 0

    def add(self, number: int, offset: int, time: int, records: int, size: int) -> None:
        """Notes a block that holds records of the stream."""
        if not self.offsets or offset >= self.offsets[-1] + self.step:
            self.numbers.append(number)
            self.offsets.append(offset)
            self.times.append(time)
            self.sizes.append(self.bytes)
        self.records += records
        self.bytes += size

    def runs(self, number: int) -> Iterator[tuple[int, int]]:
        """[from, to) of offsets at which blocks begin that may hold records from the number on."""
        step = self.step
        at = max(bisect_right(self.numbers, number) - 1, 0)
        while at < len(self.offsets):
            start = self.offsets[at]
            stop = start + step
            at += 1
            while at < len(self.offsets) and self.offsets[at] <= stop:
                stop = self.offsets[at] + step
                at += 1
            yield start, stop

    def before_time(self, time: int) -> int:
        """The number of the last entry that is older than the time, or of the first entry."""
        return self.numbers[max(bisect_left(self.times, time) - 1, 0)]

    def size_before(self, number: int) -> int:
        """Bytes of records that lie before the entry that leads to the number."""
        return self.sizes[max(bisect_right(self.numbers, number) - 1, 0)]

    def encode(self) -> list[bytes]:
        return [_little(column).tobytes() for column in (self.numbers, self.offsets, self.times, self.sizes)]

    @classmethod
    def decode(cls, data: bytes, at: int, step: int, entries: int, records: int, size: int) -> tuple[StreamIndex, int]:
        """An index, and where it ends in the data."""
        index = cls(step)
        index.records, index.bytes = records, size
        for name in ("numbers", "offsets", "times", "sizes"):
            column: array[int] = getattr(index, name)
            column.frombytes(data[at : at + 8 * entries])
            setattr(index, name, _little(column))
            at += 8 * entries
        return index, at


def _little(column: array[int]) -> array[int]:
    if sys.byteorder == "little":
        return column
    turned = array(column.typecode, column)
    turned.byteswap()
    return turned
