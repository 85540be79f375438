"""What a node finds on its disk when it is started, and how what is in a log gets to a peer.

Streams are of two kinds. A state stream is handed to a node whole when it is made, so it is kept short by snapshots. A
log is read on demand, in parts: a node is told where it begins and ends (`Started.logs`). The numbers of a stream go up
without gaps; a record may stand for several (an append's `count`), and then has the first of them as its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from holdfast.kernel.messages import Message, Record

# Stream name → its records, oldest first. A snapshot is the first of them: what it stands for is gone.
StoredStreams: TypeAlias = Mapping[str, Sequence[Record]]

EVENTS: Final = "events"
FEEDS: Final = "feeds"
LOGS: Final = frozenset({EVENTS})  # streams that are read on demand
# Streams that nodes truncate by number. Records of any other may be written again, in their order, under higher ones.
NUMBERED: Final = LOGS | {FEEDS}


class LogBounds(msgspec.Struct, frozen=True, gc=False):
    """The numbers that a log holds: from `first` on, up to and without `next`."""

    first: int = 1
    next: int = 1


class LogMessage(Protocol):
    """Makes a message of a part of a log. Pure: a driver calls it when it has read that part, in any thread."""

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        """The message; up to which number it covers the log; how many events it carries. `end` is the log's `next`."""
        ...

    def gone(self, first: int) -> Message:
        """What to say if the part is not there any more; the log begins at `first`."""
        ...


class LogPart(msgspec.Struct, frozen=True, gc=False):
    """Durable records of a stream, each with its number, from the one that holds the number asked for on.

    `next` is the number to go on from, `end` the stream's next number. `gone`: the stream begins there, behind what was
    asked for; 0 if it had it.
    """

    records: list[tuple[int, Record]]
    next: int
    end: int
    gone: int = 0


def message_of(wanted: LogMessage, start: int, part: LogPart) -> tuple[Message, int, int]:
    """What a driver sends for a part of a log that it has read: the message, how far it goes, how many events."""
    if part.gone:
        return wanted.gone(part.gone), start - 1, 0
    return wanted.make(part.records, part.end)
