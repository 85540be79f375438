"""What people read: tables, numbers, durations; colours on a terminal and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
CLEAR = "\x1b[H\x1b[2J"
_SIGNS = str.maketrans("", "", ",.%")  # that numbers may have


def is_terminal() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """The text in a colour, if a terminal shows it."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if is_terminal() else text


def table(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Rows under the first of them; what looks like a number is put to the right."""
    if not rows:
        return ""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    numeric = [
        all(row[place].translate(_SIGNS).isdigit() or row[place] in ("", "-") for row in rows[1:])
        for place in range(len(rows[0]))
    ]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append(indent + "  ".join(cells).rstrip())
    return "\n".join([paint(lines[0], "bold"), *lines[1:]])


def duration(nanoseconds: int) -> str:
    """`3 s`, `4 min`, `5 h`, `6 d`."""
    seconds = nanoseconds // 10**9
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


class InPlace:
    """Lines that take the place of those shown before; where there is no terminal, they follow them."""

    def __init__(self) -> None:
        self._shown = 0

    def show(self, lines: Sequence[str], above: Sequence[str] = ()) -> None:
        """`above` is said once and for all, over what changes."""
        begin = ""
        if is_terminal():
            begin = f"\x1b[{self._shown}F\x1b[J" if self._shown else ""
            self._shown = len(lines)
        sys.stdout.write(begin + "".join(f"{line}\n" for line in (*above, *lines)))
        sys.stdout.flush()
