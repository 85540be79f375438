"""What publications carry: lines of set-top boxes (D4-A11), drawn once and kept in a file for each publisher.

24 publishers stand for 180,000 boxes each (D4-E1), and to make so many takes longer than to publish what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec

from holdfast.apps.zapviewers.generator import BOXES, ZapSettings, generate
from holdfast.apps.zapviewers.publications import LINES_MAX


def publications(publisher: int, boxes: int = BOXES) -> Iterator[bytes]:
    """Payloads of 1 to 200 lines, from the synthetic log of the publisher's own boxes."""
    drawn = Random(publisher)
    log = generate(ZapSettings(seed=publisher + 1, boxes=boxes, first_box=publisher * boxes))
    lines: list[bytes] = []
    while True:
        size = drawn.randint(1, LINES_MAX)
        while len(lines) < size:
            lines += next(log).text.splitlines()
        yield b"\n".join(lines[:size])
        del lines[:size]


def prepare(folder: Path, publishers: int, count: int, boxes: int = BOXES) -> None:
    """Writes the first `count` publications of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for publisher in range(publishers):
        log = publications(publisher, boxes)
        _file(folder, publisher).write_bytes(msgspec.msgpack.encode([next(log) for _ in range(count)]))


def prepared(folder: Path, publisher: int, first: int, count: int) -> list[bytes]:
    """Some of them. Who wants more than there are gets the first ones again: boxes that repeat themselves."""
    every = msgspec.msgpack.decode(_file(folder, publisher).read_bytes(), type=list[bytes])
    return [every[place % len(every)] for place in range(first, first + count)]


def _file(folder: Path, publisher: int) -> Path:
    return folder / f"{publisher}.zaps"
