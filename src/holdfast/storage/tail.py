"""The end of the log, where it grows: groups, closing marks and new segments. Raises OSErrors; the log turns poisoned.

A group is written when the one before it is on the disk, never earlier: opening relies on that.
"""

from __future__ import annotations

from holdfast.storage.files import Files, write_whole
from holdfast.storage.format import (
    BLOCK_BYTES,
    END,
    ENDS,
    MARK,
    OWN_STREAM,
    SEAL,
    TRUNCATION,
    align,
    encode_block,
    encode_record,
    salt_of,
)
from holdfast.storage.group import Block
from holdfast.storage.header import Header, StreamEntry
from holdfast.storage.index import StreamIndex
from holdfast.storage.opening import Opened, make_segment
from holdfast.storage.preparation import Preparation
from holdfast.storage.segment import Segment
from holdfast.storage.settings import LogSettings
from holdfast.storage.shelf import Shelf


class Tail:
    """Used by one thread at a time."""

    def __init__(self, files: Files, folder: str, settings: LogSettings, shelf: Shelf, opened: Opened) -> None:
        self._files = files
        self._folder = folder
        self._settings = settings
        self._shelf = shelf
        self._log_id = opened.log_id
        self._salt = salt_of(opened.log_id)
        self.repairs = [repair.encode() for repair in opened.opening.repairs]
        self._file = opened.file
        self._chain = opened.chain
        self.group = opened.group
        self.time = opened.time  # of the last group
        self.marked = opened.marked  # whether the last group is a mark
        self._preparation = Preparation(files, folder, settings.prepare_ahead)
        self._prepare(shelf.newest.header.size)

    def write(self, blocks: list[Block], time: int) -> None:
        """Writes the blocks as one group. When it returns, they are on the disk and may be read."""
        total = sum([block.size for block in blocks]) + BLOCK_BYTES * len(blocks)
        segment = self._shelf.newest
        if segment.end + total + BLOCK_BYTES > segment.header.size:
            self._roll(total)
            segment = self._shelf.newest
        sequence, offset, chain = segment.header.segment, segment.end, self._chain
        group = self.group + 1
        self.time = max(self.time, time)
        parts: list[bytes] = []
        places: list[int] = []
        last = len(blocks) - 1
        for part, block in enumerate(blocks):
            flags = END if part == last else 0
            head, chain = encode_block(
                chain, self._salt, offset, sequence, group, self.time, block.records, part, flags, block.payload
            )
            parts += (head, *block.payload)
            places.append(offset)
            offset += BLOCK_BYTES + block.size
        write_whole(self._files, self._file, b"".join(parts), segment.end)
        self._files.sync(self._file)
        self._chain, self.group, self.marked = chain, group, False
        if self._publish(segment, blocks, places, offset):
            self._drop()

    def mark(self) -> None:
        """Writes a closing mark, on a page of its own: whatever befalls the page of the last group leaves it."""
        segment = self._shelf.newest
        if self.group < segment.header.first_group:
            return  # The segment's header says as much.
        ends = b"".join([TRUNCATION.pack(s.id, s.durable) for s in self._shelf.all_streams()])
        payload = encode_record(OWN_STREAM, ENDS, 0, 0, 0, ends)
        offset = align(segment.end)
        if offset + 2 * BLOCK_BYTES + len(payload) > segment.header.size:
            self._roll(0)
            return
        head, chain = encode_block(
            self._chain,
            self._salt,
            offset,
            segment.header.segment,
            self.group + 1,
            self.time,
            1,
            0,
            END | MARK,
            [payload],
        )
        write_whole(self._files, self._file, head + payload, offset)
        self._files.sync(self._file)
        self._chain, self.group, self.marked = chain, self.group + 1, True
        with self._shelf.lock:
            segment.end = offset + len(head) + len(payload)

    def close(self) -> None:
        self._preparation.close()
        self._files.close(self._file)

    def _publish(self, segment: Segment, blocks: list[Block], places: list[int], end: int) -> bool:
        """The group is durable: readers may see it. Gives whether anything was truncated."""
        truncated = False
        with self._shelf.lock:
            for block, offset in zip(blocks, places, strict=True):
                for stream, number, next, records, size in block.entries:
                    index = segment.index.get(stream.id)
                    if index is None:
                        index = segment.index[stream.id] = StreamIndex(self._settings.index_bytes)
                    index.add(number, offset, self.time, records, size)
                    stream.durable = next
                for stream, before in block.truncations:
                    stream.first = before
                    truncated = True
            segment.end = end
        return truncated

    def _roll(self, need: int) -> None:
        """Goes on in a new segment, which is there, by its name and with its header, before the old one is sealed."""
        old = self._shelf.newest
        streams = {s.id: StreamEntry(s.name, s.durable, s.first) for s in self._shelf.all_streams()}
        header = Header(
            self._log_id, old.header.segment + 1, 0, old.end, self.group, self.group + 2,
            self._chain, self.time, streams, old.index, self.repairs,
        )  # fmt: skip
        least = len(header.encode()) + need + 2 * BLOCK_BYTES
        header.size = self._settings.next_segment_bytes(old.header.size, least)
        least = max(least, min(header.size, self._settings.first_segment_bytes))
        path, file = make_segment(self._files, self._folder, self._preparation, header, least)
        seal, _ = encode_block(
            self._chain, self._salt, old.end, old.header.segment, self.group + 1, self.time, 0, 0, END | SEAL, []
        )
        write_whole(self._files, self._file, seal, old.end)
        self._files.sync(self._file)
        self._files.close(self._file)
        self._file = file
        self.group += 1
        self.marked = True
        with self._shelf.lock:
            self._shelf.segments.append(Segment(self._files, path, header, {}, header.length))
        self._prepare(header.size)
        self._drop()

    def _prepare(self, last: int) -> None:
        size = self._settings.next_segment_bytes(last)
        self._preparation.start(size, min(size, self._settings.first_segment_bytes))

    def _drop(self) -> None:
        """Removes segments of which no stream needs anything, from the oldest on."""
        while len(self._shelf.segments) > 1 and not self._shelf.holders():
            with self._shelf.lock:
                path = self._shelf.segments.pop(0).path
            # One at a time: if several names were to vanish at a power cut, a hole could be left between two files.
            self._files.remove(path)
            self._files.sync_folder(self._folder)
