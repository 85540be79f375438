"""What has been appended and not yet written: records packed into blocks, with what the index will need to know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import error
from typing import Final

from holdfast.errors import RecordRefused
from holdfast.storage.format import (
    BORROWS,
    DECLARATION,
    DECLARE,
    OWN_STREAM,
    RECORD,
    RECORD_BYTES,
    TRUNCATE,
    TRUNCATION,
)
from holdfast.storage.settings import COUNT_MAX, RECORD_BYTES_MAX
from holdfast.storage.sharing import Part, Shared

PIECES_MAX: Final = 8  # of a block
_pack = RECORD.pack


class Stream:
    """A stream: what was appended, by the appending thread; what is durable, under the log's lock."""

    __slots__ = ("block", "durable", "first", "id", "name", "next", "truncated")

    def __init__(self, id: int, name: str, next: int, first: int) -> None:
        self.id = id
        self.name = name
        self.next = next  # the number that the next record gets
        self.durable = next  # one past the last durable number
        self.first = first  # the first kept one, durably
        self.truncated = first  # what `first` becomes once all that was appended is durable
        self.block = -1  # the last one that holds any of it


class Block:
    """A block's records, in pieces, and per stream: the stream, its first number, its next number, records, bytes."""

    __slots__ = ("entries", "payload", "records", "size", "truncations")

    def __init__(
        self,
        payload: list[bytes],
        size: int,
        records: int,
        entries: list[tuple[Stream, int, int, int, int]],
        truncations: list[tuple[Stream, int]],
    ) -> None:
        self.payload = payload
        self.size = size
        self.records = records
        self.entries = entries
        self.truncations = truncations


class Group:
    """Collects records; used by the thread that appends."""

    __slots__ = (
        "_block", "_block_bytes", "_blocks", "_own", "_parts", "_saved", "_shared", "_size", "_touched", "_truncations",
    )  # fmt: skip

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._blocks: list[Block] = []
        self._parts: list[bytes] = []  # of the block that is being filled: head and body in turn
        self._size = 0
        self._own = False  # whether records of the log's own are among them
        self._block = 0
        self._touched: list[tuple[Stream, int]] = []  # with the first number in this block
        self._truncations: list[tuple[Stream, int]] = []
        self._shared = Shared()
        self._saved: dict[int, int] = {}  # stream → bytes of its records here that are written in other records

    def add(
        self, stream: Stream, kind: int, body: bytes, count: int = 1, flags: int = 0, parts: Sequence[Part] = ()
    ) -> int:
        """Adds a record, and gives its number. Of `parts`, what stands in the block already is not written again."""
        length = RECORD_BYTES + len(body)
        if length > RECORD_BYTES_MAX or not 0 < count <= COUNT_MAX:
            raise RecordRefused(f"a record of {len(body)} bytes and {count} numbers is beyond the format's limits")
        borrowing = self._shared.borrow(body, parts) if parts else None
        if borrowing is not None:
            self._saved[stream.id] = self._saved.get(stream.id, 0) + len(body) - len(borrowing)
            body, flags, length = borrowing, flags | BORROWS, RECORD_BYTES + len(borrowing)
        else:
            self._make_room()
            if parts:
                self._shared.lend(body, parts, self._size + RECORD_BYTES)
        number = stream.next
        try:
            self._parts += (_pack(length, stream.id, kind, flags, count, number), body)
        except error:
            raise RecordRefused(f"a record's kind is 0 to 255, not {kind!r}") from None
        stream.next = number + count
        if stream.block != self._block:
            stream.block = self._block
            self._touched.append((stream, number))
        self._size += length
        return number

    def add_all(self, stream: Stream, kind: int, bodies: Sequence[bytes]) -> int:
        """Adds a record for each body, as `add` would, at half the cost; gives the first number."""
        first = stream.next
        # As many at a time as would fill a block if all were as long as the first of them.
        at = 0
        while at < len(bodies):
            self._make_room()
            room = max(1, (self._block_bytes - self._size) // (RECORD_BYTES + len(bodies[at])))
            some = bodies[at : at + room]
            number = stream.next
            lengths = [RECORD_BYTES + len(body) for body in some]
            if max(lengths) > RECORD_BYTES_MAX:
                raise RecordRefused(f"a record of {max(lengths) - RECORD_BYTES} bytes is beyond the format's limits")
            id = stream.id
            try:
                heads = [_pack(length, id, kind, 0, 1, n) for n, length in enumerate(lengths, number)]
            except error:
                raise RecordRefused(f"a record's kind is 0 to 255, not {kind!r}") from None
            self._parts += chain.from_iterable(zip(heads, some, strict=True))
            stream.next = number + len(some)
            if stream.block != self._block:
                stream.block = self._block
                self._touched.append((stream, number))
            self._size += sum(lengths)
            at += len(some)
        return first

    def add_own(self, kind: int, body: bytes) -> None:
        """Adds one of the log's own records."""
        self._make_room()
        self._parts += (RECORD.pack(RECORD_BYTES + len(body), OWN_STREAM, kind, 0, 0, 0), body)
        self._size += RECORD_BYTES + len(body)
        self._own = True

    def declare(self, stream: Stream) -> None:
        self.add_own(DECLARE, DECLARATION.pack(stream.id) + stream.name.encode())

    def truncate(self, stream: Stream, before: int) -> None:
        """The stream begins at `before`, once the group is durable."""
        stream.truncated = before
        self.add_own(TRUNCATE, TRUNCATION.pack(stream.id, before))
        self._truncations.append((stream, before))

    def take(self) -> list[Block]:
        """The blocks so far; the group is empty again."""
        if self._parts:
            self._close_block()
        blocks, self._blocks = self._blocks, []
        return blocks

    def _make_room(self) -> None:
        """A block that is full is closed when something comes that does not borrow from it."""
        if self._size >= self._block_bytes:
            self._close_block()

    def _close_block(self) -> None:
        parts = self._parts
        # A few pieces are copied once, when they are written; many would cost a checksum each.
        payload = parts if len(parts) <= PIECES_MAX else [b"".join(parts)]
        self._blocks.append(Block(payload, self._size, len(parts) // 2, self._entries(), self._truncations))
        self._parts = []
        self._size = 0
        self._own = False
        self._block += 1
        self._touched = []
        self._truncations = []
        self._shared = Shared()
        self._saved = {}

    def _entries(self) -> list[tuple[Stream, int, int, int, int]]:
        touched = self._touched
        if len(touched) == 1 and not self._own:
            ((stream, number),) = touched
            return [(stream, number, stream.next, len(self._parts) // 2, self._size + self._saved.get(stream.id, 0))]
        counted = {stream.id: [0, self._saved.get(stream.id, 0)] for stream, _ in touched}
        for head in self._parts[::2]:
            length, id, _, _, _, _ = RECORD.unpack(head)
            if id != OWN_STREAM:
                counted[id][0] += 1
                counted[id][1] += length
        return [(s, number, s.next, counted[s.id][0], counted[s.id][1]) for s, number in touched]
