"""Events as their subscribers see them: with their position in the log, and how often they were tried."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.errors import EventError
from holdfast.model.event import Event, EventBytes
from holdfast.model.position import Position


class ReceivedEvent(Event, frozen=True):
    """`position` is None if the broker keeps no log. An `attempt` above 1 may have been handed out before."""

    # Never on the wire, where an event with more fields than `Event` has is refused.
    position: Position | None = None
    attempt: int = 1


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[ReceivedEvent]).decode


def received_events(
    events: Sequence[EventBytes], positions: Sequence[int] = (), log: str = "", attempts: Sequence[int] = ()
) -> list[ReceivedEvent]:
    """The events of these bytes, or EventError; with their positions and attempts, where those are given."""
    try:
        received = _decode(_encode(events))
    except UNREADABLE as error:
        raise EventError(f"bytes are no events: {error}") from error
    if positions:
        set_field = msgspec.structs.force_setattr
        for event, number in zip(received, positions, strict=True):
            set_field(event, "position", Position(log, number))
        for event, attempt in zip(received, attempts, strict=False):
            set_field(event, "attempt", attempt)
    return received
