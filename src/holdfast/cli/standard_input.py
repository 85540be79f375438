"""Lines from standard input, as they come: a pipe may be silent for hours, and the bus has to go on meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

from holdfast.errors import EventError
from holdfast.model.event import EVENT_BYTES_MAX

PIECE = 1 << 16
PIECES_AHEAD = 8
# In JSON, a character of one byte may take six, and there is base64; more than that is no event in any spelling.
LINE_BYTES_MAX = 8 * EVENT_BYTES_MAX


async def lines_from(descriptor: int) -> AsyncIterator[bytes]:
    """Lines without their ends; the last one may lack it. EventError if one is beyond LINE_BYTES_MAX."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(PIECES_AHEAD)

    def read() -> None:
        piece: bytes | OSError = b"?"
        while isinstance(piece, bytes) and piece:
            room.acquire()
            try:
                piece = os.read(descriptor, PIECE)
            except OSError as error:
                piece = error
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            except RuntimeError:  # the loop is closed: nobody wants the rest
                return

    # A daemon, and on the descriptor itself: an interrupted program must not wait for a line that never comes.
    threading.Thread(target=read, name="holdfast: standard input", daemon=True).start()
    number = 1
    begun: list[
        bytes
    ] = []  # of a line whose end has not come; joined once, or a long line would be copied all the time
    size = 0
    while piece := await pieces.get():
        if isinstance(piece, OSError):
            raise piece
        room.release()
        first, *rest = piece.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > LINE_BYTES_MAX:
            raise EventError(
                f"line {number:,}: it has more than {LINE_BYTES_MAX:,} bytes, beyond line_bytes_max: an event has "
                f"at most {EVENT_BYTES_MAX:,}, and stands on a line of its own",
                limit="line_bytes_max",
                allowed=LINE_BYTES_MAX,
            )
        if rest:
            yield b"".join(begun)
            for line in rest[:-1]:
                yield line
            number += len(rest)
            begun, size = [rest[-1]], len(rest[-1])
    if size:
        yield b"".join(begun)
