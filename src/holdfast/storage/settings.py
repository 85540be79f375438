"""What can be set about a log, and the limits of its format."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE

RECORD_BYTES_MAX = 1024 * MEBIBYTE  # a block's length has to fit into 32 bits, with room to spare
STREAM_NAME_BYTES_MAX = 255
STREAMS_MAX = 4096
COUNT_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How a log is kept. Nothing here changes the format: a log may be opened with other settings than before."""

    segment_bytes: int = 64 * MEBIBYTE  # of the largest segments; a larger commit gets a segment of its own size
    block_bytes: int = 64 * KIBIBYTE  # a block is closed when it holds this much: what one read must verify at least
    index_bytes: int = 64 * KIBIBYTE  # how far apart the entries of a stream's sparse index lie; for new segments
    verify: Literal["newest", "all"] = "newest"  # which segments are read through when the log is opened
    prepare_ahead: bool = True  # the next segment is filled with zeros in the background, before it is needed
    quiet_ms: int = 50  # how long a writer waits for more before it writes a closing mark
    clock: Callable[[], int] = time.time_ns  # nanoseconds since 1970; may jump, records' times do not go back
    first_segment_bytes: int = MEBIBYTE  # of a new log's first; each one is twice as large as the one before

    def next_segment_bytes(self, last: int, least: int = 0) -> int:
        """The size of the segment behind one of `last` bytes, so that `least` bytes fit. Files are filled with zeros,
        so that whoever writes little should not take much; whoever writes much is at the largest soon."""
        size = min(self.segment_bytes, max(self.first_segment_bytes, 2 * last))
        while size < min(least, self.segment_bytes):
            size = min(self.segment_bytes, 2 * size)
        return max(size, least)
