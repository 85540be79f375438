"""Lines of set-top boxes as payloads of events: one event with topic `zap` carries up to 200 of them (D4-A10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LINES_MAX = 200


def payloads(texts: Iterable[bytes], lines_max: int = LINES_MAX) -> Iterator[bytes]:
    """Payloads for the lines of a text that comes in pieces, cut anywhere. All but the last are full.

    A payload has no `\\n` at its end. Who wants nothing to wait for the lines of a later second calls this for each
    second by itself.
    """
    waiting: list[bytes] = []
    begun = b""
    for text in texts:
        waiting += (begun + text).split(b"\n")
        begun = waiting.pop()
        full = len(waiting) - len(waiting) % lines_max
        for start in range(0, full, lines_max):
            yield b"\n".join(waiting[start : start + lines_max])
        del waiting[:full]
    if begun:
        waiting.append(begun)
    if waiting:
        yield b"\n".join(waiting)
