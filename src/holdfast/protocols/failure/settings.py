"""What a failure detector is told. Times are nanoseconds."""

from __future__ import annotations

import msgspec

from holdfast.kernel.time import MILLISECOND, SECOND


class DetectorSettings(msgspec.Struct, frozen=True, gc=False):
    """When a neighbour is suspected to have failed."""

    heartbeat: int = 500 * MILLISECOND
    suspect_after_min: int = 2 * SECOND  # of silence; longer where the link has been seen to be slow or uneven
    suspect_after_max: int = 20 * SECOND
