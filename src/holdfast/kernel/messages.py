"""What all messages and records are: frozen values that travel as arrays, so that a new field is a new last element."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# What a message without events is taken to weigh in a queue. Exact sizes are known only when it is encoded.
NOMINAL_WEIGHT = 64


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one node sends to another. Kinds are numbers in a registry; see `holdfast.codec`."""

    def weight(self) -> int:
        """About how many bytes the message takes; queues are bounded by the sum."""
        return NOMINAL_WEIGHT

    def event_ids(self) -> list[str]:
        """The ids of the events that the message carries, for traces."""
        return []

    def published(self) -> msgspec.Raw:
        """The events that a client publishes with the message, as it encoded them; for traces."""
        return msgspec.Raw()


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a node appends to one of its streams, and finds there when it is started again."""

    def parts(self) -> Sequence[memoryview]:
        """Larger parts of its bytes, in their order, that other records of the turn may have, too: a disk need not keep
        them twice."""
        return ()
