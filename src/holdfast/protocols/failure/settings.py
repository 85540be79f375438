"""What a failure detector is told. Times are nanoseconds."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.kernel.settings import milliseconds
from holdfast.kernel.time import MILLISECOND, SECOND


class DetectorSettings(msgspec.Struct, frozen=True, gc=False):
    """When a neighbour is suspected to have failed."""

    heartbeat: Annotated[int, milliseconds("heartbeat_ms", "between signs of life to a neighbour")] = 500 * MILLISECOND
    suspect_after_min: Annotated[
        int, milliseconds("suspect_ms_min", "a neighbour that was silent so long is suspected …")
    ] = 2 * SECOND
    suspect_after_max: Annotated[
        int, milliseconds("suspect_ms_max", "… or up to so long, where the link is slow or uneven")
    ] = 20 * SECOND
