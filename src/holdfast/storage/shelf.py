"""What readers and the writer of a log share: its streams and its segments, under one lock."""

from __future__ import annotations

import threading

from holdfast.errors import LogCorrupt
from holdfast.storage.group import Stream
from holdfast.storage.index import StreamIndex
from holdfast.storage.segment import Segment


class Shelf:
    """The lock is held to look at segments, ends, indexes and what is durable, not while a file is read or written."""

    def __init__(self, streams: dict[str, Stream], segments: list[Segment]) -> None:
        self.lock = threading.Lock()
        self.streams = streams
        self.segments = segments

    @property
    def newest(self) -> Segment:
        return self.segments[-1]

    def all_streams(self) -> list[Stream]:
        """A copy, since the thread that appends may add one at any time."""
        return list(self.streams.values())

    def segment_of(self, stream: Stream, number: int) -> Segment:
        """The segment that holds the number, or the last one before it that holds anything of the stream."""
        for segment in reversed(self.segments):
            index = segment.index.get(stream.id)
            if index is not None and index.numbers[0] <= number:
                return segment
        raise LogCorrupt("no segment holds the number", self.newest.path, 0, 0, {stream.name: (number, None)})

    def indexes_of(self, stream: Stream) -> list[StreamIndex]:
        """Where the stream's records lie, oldest segment first."""
        return [segment.index[stream.id] for segment in self.segments if stream.id in segment.index]

    def bytes_of(self, stream: Stream) -> int:
        """What the stream's kept records take."""
        taken = 0
        for place, segment in enumerate(self.segments):
            index = segment.index.get(stream.id)
            if index is not None and self._end_in(place, stream) > stream.first:
                taken += index.bytes - index.size_before(stream.first)
        return taken

    def holders(self) -> list[Stream]:
        """The streams that keep the oldest segment from being removed."""
        if len(self.segments) == 1:
            return []
        held = self.segments[0].index
        return [s for s in self.all_streams() if s.id in held and s.first < self._end_in(0, s)]

    def _end_in(self, place: int, stream: Stream) -> int:
        """One past the stream's last number in a segment."""
        if place + 1 == len(self.segments):
            return stream.durable
        return self.segments[place + 1].header.streams[stream.id].next
