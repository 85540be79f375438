"""What several records of a block have in common stands on the disk once.

A broker says the same events in its journal, in its log and in what waits for neighbours: the same bytes behind
different heads. A record that comes later may leave them out, and say where they stand: in a record before it in the
same block. A block is checked, read and removed as a whole, so that who borrows is as durable as who lends, and lives
as long; which records a stream still needs has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, TypeAlias

Part: TypeAlias = bytes | memoryview

_COUNT: Final = Struct("<I")
_PIECE: Final = Struct("<III")  # where it stands in the block's records; its bytes; the record's own before it
SHARED_BYTES_MIN: Final = 40  # less is not worth it
_HEAD: Final = 64  # bytes by which a part is found: those of events differ in them, if names are not very long
_NOT_THERE: Final = "a record borrows what does not stand before it"


class _Lender:
    """A record that stands whole in the block."""

    __slots__ = ("_at", "_body", "_found", "_parts")

    def __init__(self, body: bytes, parts: Sequence[Part], at: int) -> None:
        self._body = body
        self._parts = parts
        self._at = at
        self._found: list[tuple[bytes, int]] = []  # looked for when something may be borrowed

    def part(self, number: int) -> tuple[bytes, int]:
        """What stands where a part should, and where that is in the block. Who borrows compares."""
        if not self._found:
            end = 0
            for part in self._parts:
                start = self._body.index(bytes(part[:_HEAD]), end)
                end = start + len(part)
                self._found.append((self._body[start:end], self._at + start))
        return self._found[number]


class Shared:
    """What the records of one block lend."""

    __slots__ = ("_lent",)

    def __init__(self) -> None:
        # How a part begins → those that do: whose they are, and which of its parts.
        self._lent: dict[bytes, list[tuple[_Lender, int]]] = {}

    def lend(self, body: bytes, parts: Sequence[Part], at: int) -> None:
        """A record stands at `at` with these parts of its body, in their order."""
        lender = _Lender(body, parts, at)
        for number, part in enumerate(parts):
            if len(part) >= SHARED_BYTES_MIN:
                self._lent.setdefault(bytes(part[:_HEAD]), []).append((lender, number))

    def borrow(self, body: bytes, parts: Sequence[Part]) -> bytes | None:
        """The body as it is to be written; None if nothing that its parts begin with stands in the block."""
        pieces: list[bytes] = []
        own: list[bytes] = []
        done = 0
        for part in parts:
            head = bytes(part[:_HEAD])
            if head not in self._lent:
                continue
            at = body.index(head, done)
            end = at + len(part)
            while at < end and (found := self._find(body, at, end)) is not None:
                place, size = found
                own.append(body[done:at])
                pieces.append(_PIECE.pack(place, size, at - done))
                done = at = at + size
        if not pieces:
            return None
        return b"".join((_COUNT.pack(len(pieces)), *pieces, *own, body[done:]))

    def _find(self, body: bytes, at: int, end: int) -> tuple[int, int] | None:
        """Where what a body goes on with stands already, and how much of it."""
        for lender, number in self._lent.get(body[at : min(at + _HEAD, end)], ()):
            lent, place = lender.part(number)
            if len(lent) <= end - at and body.startswith(lent, at):
                return place, len(lent)
        return None


def whole_body(data: bytes, block: int, start: int, end: int) -> bytes:
    """The body of a record that borrows, which is written from `start` to `end`; the block's records begin at `block`.

    ValueError if it borrows what does not stand before it: that was never written so.
    """
    pieces = start + _COUNT.size
    if pieces > end:
        raise ValueError(_NOT_THERE)
    at = pieces + _PIECE.size * int(_COUNT.unpack_from(data, start)[0])
    if at > end:
        raise ValueError(_NOT_THERE)
    parts: list[bytes] = []
    for place, size, before in _PIECE.iter_unpack(data[pieces:at]):
        lender = block + place
        if lender + size > start or at + before > end:
            raise ValueError(_NOT_THERE)
        parts += (data[at : at + before], data[lender : lender + size])
        at += before
    parts.append(data[at:end])
    return b"".join(parts)
