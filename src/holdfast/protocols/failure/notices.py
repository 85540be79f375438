"""What a failure detector tells."""

from __future__ import annotations

from holdfast.kernel.notices import Notice


class NeighbourSuspected(Notice, frozen=True):
    peer: str
    reason: str


class NeighbourTrusted(Notice, frozen=True):
    """Also again, after it was suspected."""

    peer: str
