"""How much of a stream is kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.storage.index import StreamIndex


@dataclass(frozen=True, slots=True)
class Retention:
    """What may go: records beyond `bytes_max`, and those older than `age_ns_max`; either may be unlimited.

    A floor, which is given when retention is applied, overrules both: from there on nothing goes, however large or old.
    If neither is limited, everything below the floor goes.
    """

    bytes_max: int | None = None
    age_ns_max: int | None = None


def beyond_bytes(indexes: Sequence[StreamIndex], bytes_max: int) -> int:
    """The number from which on a stream's records take `bytes_max` or less, to within a step of the index.

    The indexes are the stream's, segment by segment, oldest first.
    """
    before = 1
    kept = 0
    for index in reversed(indexes):
        fitting = bisect_left(index.sizes, kept + index.bytes - bytes_max)
        if fitting < len(index.sizes):
            before = index.numbers[fitting]
        if fitting or kept > bytes_max:
            return before if before > 1 else index.numbers[-1]
        kept += index.bytes
    return 1
