"""Lines from standard input, as they come: a pipe may be silent for hours, and the bus has to go on meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

PIECE = 1 << 16
PIECES_AHEAD = 8


async def lines_from(descriptor: int) -> AsyncIterator[bytes]:
    """Lines without their ends; the last one may lack it."""
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
    rest = b""
    while piece := await pieces.get():
        if isinstance(piece, OSError):
            raise piece
        room.release()
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
