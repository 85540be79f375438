"""The limits of a connection, by name. What is beyond one is refused with an error that names it."""

from __future__ import annotations

import msgspec

from holdfast.kernel.time import SECOND


class WireLimits(msgspec.Struct, frozen=True, gc=False):
    """Sizes in bytes, times in nanoseconds."""

    handshake_bytes: int = 4 * 1024  # that are looked at before a peer has said who it is
    handshake_time: int = 5 * SECOND
    handshakes: int = 1_000  # connections that have not said who they are; the oldest makes room for one more
    frame_bytes: int = 1024 * 1024
    peer_frame_bytes: int = 64 * 1024 * 1024  # between brokers: all that is undecided goes into one
    control_frame_bytes: int = 16 * 1024  # for messages that carry no events and no lists of subscriptions
    connections: int = 10_000

    def between_brokers(self) -> WireLimits:
        return msgspec.structs.replace(self, frame_bytes=self.peer_frame_bytes)
