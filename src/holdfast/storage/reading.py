"""Reads a stream's records from segments, and verifies every byte that they come from.

Numbers must follow each other without a gap: whatever an index or a file says, what is given out is what was appended,
or an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import LogCorrupt, RecordsLost
from holdfast.storage.format import BLOCK_BYTES, LOST, RECORD, RECORD_BYTES, walk
from holdfast.storage.segment import Segment
from holdfast.storage.sharing import whole_body

# number, count, time, kind, body: covers the numbers from `number` to below `number + count`; the time is that of the
# commit, in nanoseconds since 1970. A plain tuple, since a scan makes a million of them a second.
LogRecord = tuple[int, int, int, int, bytes]


def read_segment(segment: Segment, end: int, salt: int, id: int, name: str, start: int) -> Iterator[list[LogRecord]]:
    """The stream's records from the one that holds `start` on, as plain tuples, a block's at a time."""
    unpack, head = RECORD.unpack_from, RECORD_BYTES
    for run_start, run_stop in segment.index[id].runs(start):
        if run_start >= end:
            return  # The index has grown since.
        at = run_start
        for offset, fields, data, place in walk(segment.read, run_start, end, salt, segment.header.segment):
            if offset >= run_stop:
                break
            time = fields[8]
            last = place + fields[3]
            record = place + BLOCK_BYTES
            found: list[LogRecord] = []
            while record < last:
                length, stream, kind, flags, count, number = unpack(data, record)
                if number == start and stream == id and not flags:
                    found.append((number, count, time, kind, data[record + head : record + length]))
                    start += count
                elif stream == id and number + count > start:
                    if number > start:
                        lost = {name: (start, number)}
                        raise LogCorrupt("numbers are missing", segment.path, offset, offset + fields[3], lost)
                    if flags & LOST:
                        if found:
                            yield found
                        raise RecordsLost(name, number, number + count)
                    body = data[record + head : record + length]
                    if flags:
                        try:
                            body = whole_body(data, place + BLOCK_BYTES, record + head, record + length)
                        except ValueError as error:
                            raise LogCorrupt(str(error), segment.path, offset, offset + fields[3], {}) from None
                    found.append((number, count, time, kind, body))
                    start = number + count
                record += length
            at = offset + fields[3]
            if found:
                yield found
        else:
            if at != end:
                raise LogCorrupt("no valid block", segment.path, at, end, {name: (start, None)})
