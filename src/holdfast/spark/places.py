"""Where a reader begins, as the number of a position."""

from __future__ import annotations

from datetime import datetime

from holdfast.client.blocking import BlockingBus
from holdfast.errors import PositionAhead
from holdfast.spark.options import EARLIEST, NEW, From


def number_of(bus: BlockingBus, place: From) -> int:
    """The number of the first position to read, for the broker that the bus is connected to.

    PositionAhead if the log is not as long as that: someone means another log.
    """
    if place == EARLIEST:
        return bus.tail().number
    if place == NEW:
        return bus.head().number + 1
    if isinstance(place, datetime):
        return bus.position_at(place).number
    assert isinstance(place, int)
    head = bus.head().number
    if place > head + 1:
        raise PositionAhead(f"the log ends at position {head}, before option 'from', {place}")
    return place
