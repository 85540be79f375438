"""The bytes of a log: blocks of records. Segment headers are in `header`; docs/log.md has both as tables.

A **block** holds records; its checksum is a CRC32C that goes on from the checksum of the block before it, so that one
chain runs through all records of the log and is written down once per block. A **group** is what one commit wrote: one
block or several, the last of them flagged END. Groups are numbered and are whole or void.

A group is written only when the one before it is on the disk. Any valid block of a later group thus proves that an
earlier group was durable: that is how damage is told from a tail that was torn by a power cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

import google_crc32c  # Without its C part it warns and goes on in Python, a thousand times slower; `inspect` says so.

VERSION: Final = 2
VERSIONS: Final = (1, 2)  # that can be read; in segments of version 1 no record borrows
BORROWING: Final = 2  # the version from which on records do
PAGE: Final = 4096  # what a disk may lose or keep as a whole, and what closing marks keep away from

# crc, previous, magic, length, log, offset, segment, group, time, records, part, flags, reserved
BLOCK: Final = Struct("<IIIIIIQQqIHBB")
BLOCK_BYTES: Final = BLOCK.size
_CHAIN: Final = Struct("<II")
_REST: Final = Struct("<IIIIQQqIHBB")
# The checksum covers what follows the first two fields. The magic must be the first thing covered: a CRC that goes on
# from `previous` can't tell damage to it from the same damage to the next four bytes, and a wrong magic is seen anyway.
COVERED_FROM: Final = _CHAIN.size
BLOCK_MAGIC: Final = int.from_bytes(b"\x9eHb\xd1", "little")
BLOCK_MAGIC_BYTES: Final = BLOCK_MAGIC.to_bytes(4, "little")

END: Final = 1  # the last block of its group
MARK: Final = 2  # a closing mark: says that all before it is durable, and where every stream ends
SEAL: Final = 4  # a closing mark, and the segment's last block: a next segment exists

# length, stream, kind, flags, count, number
RECORD: Final = Struct("<IHBBIQ")
RECORD_BYTES: Final = RECORD.size
LOST: Final = 1  # no record, but the place of records that a repair could not save
BORROWS: Final = 2  # a part of its body stands in a record before it: `sharing`

# Records of stream 0 are the log's own. Their kinds:
OWN_STREAM: Final = 0
DECLARE: Final = 1  # a stream's id and name
TRUNCATE: Final = 2  # a stream's id and its first kept number
ENDS: Final = 3  # in marks: every stream's id and next number
REPAIRED: Final = 4  # what a repair did, as JSON
DECLARATION: Final = Struct("<H")
TRUNCATION: Final = Struct("<HQ")

BlockFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
Read = Callable[[int, int], bytes]  # (count, offset) → bytes

extend: Callable[[int, bytes], int] = google_crc32c.extend
IMPLEMENTATION: str = google_crc32c.implementation

READ_AHEAD: Final = 256 * 1024
_ZEROS: Final = bytes(1024 * 1024)


def salt_of(log_id: bytes) -> int:
    """What marks a log's blocks as its own: the checksum of its id, which is also where its chain begins."""
    return extend(0, log_id)


def align(offset: int) -> int:
    """The next page's beginning, at or after the offset."""
    return -(-offset // PAGE) * PAGE


def encode_block(
    chain: int, salt: int, offset: int, segment: int, group: int, time: int, records: int, part: int, flags: int,
    payload: Sequence[bytes],
) -> tuple[bytes, int]:  # fmt: skip
    """The block's head, behind which its payload follows, and the chain's value after it."""
    length = BLOCK_BYTES + sum(map(len, payload))
    rest = _REST.pack(BLOCK_MAGIC, length, salt, offset, segment, group, time, records, part, flags, 0)
    crc = extend(chain, rest)
    for piece in payload:
        crc = extend(crc, piece)
    return _CHAIN.pack(crc, chain) + rest, crc


def encode_record(stream: int, kind: int, flags: int, count: int, number: int, body: bytes) -> bytes:
    return RECORD.pack(RECORD_BYTES + len(body), stream, kind, flags, count, number) + body


def walk(read: Read, start: int, end: int, salt: int, segment: int) -> Iterator[tuple[int, BlockFields, bytes, int]]:
    """The valid blocks that follow each other from `start` on: (offset, fields, buffer, place in the buffer).

    Each goes on from the checksum of the one before. Ends where no such block follows; whether that is the end or
    damage is for the caller to find out. A block follows directly, or, after nothing but zeros, at the beginning of the
    next page.
    """
    at, base, data, chain = start, start, b"", -1
    unpack, size = BLOCK.unpack_from, BLOCK_BYTES
    while at + size <= end:
        place = at - base
        if place + size > len(data):
            base, data, place = at, read(min(READ_AHEAD, end - at), at), 0
            if len(data) < size:
                return
        fields = unpack(data, place)
        length = fields[3]
        if fields[2] != BLOCK_MAGIC or fields[5] != at or fields[6] != segment or fields[4] != salt:
            following = align(at)
            if following == at or following + size > end or any(read(following - at, at)):
                return
            at = following
            continue
        if length < size or at + length > end:
            return
        if place + length > len(data):
            base, data, place = at, read(min(max(READ_AHEAD, length), end - at), at), 0
            if len(data) < length:
                return
        crc, previous = fields[0], fields[1]
        if extend(previous, data[place + COVERED_FROM : place + length]) != crc or (previous != chain and at != start):
            return
        yield at, fields, data, place
        chain = crc
        at += length


def search(read: Read, start: int, stop: int, end: int, salt: int, segment: int) -> Iterator[tuple[int, BlockFields]]:
    """All valid blocks that begin in [start, stop), found by their magic, wherever they are: (offset, fields).

    A block says where it lies, in which segment of which log: a copy of one in a record's body is not taken for one.
    """
    overlap = len(BLOCK_MAGIC_BYTES) - 1
    for base in range(start, stop, len(_ZEROS)):
        data = read(min(len(_ZEROS) + overlap, end - base), base)
        found = data.find(BLOCK_MAGIC_BYTES)
        while found >= 0:
            offset = base + found - COVERED_FROM
            if offset >= start:
                for at, fields, _, _ in walk(read, offset, end, salt, segment):
                    if at == offset:
                        yield at, fields
                    break
            found = data.find(BLOCK_MAGIC_BYTES, found + 1)


def last_nonzero(read: Read, start: int, end: int) -> int:
    """Where the last byte that is not zero ends, or `start` if there is none."""
    last = start
    for base in range(start, end, len(_ZEROS)):
        data = read(min(len(_ZEROS), end - base), base)
        if data != _ZEROS and (data := data.rstrip(b"\0")):
            last = base + len(data)
    return last
