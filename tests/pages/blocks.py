"""Reads the fenced blocks of a page. The word behind a fence says what a block is, and so what a test does with it.

    sh                commands, as a reader pastes them into bash
    output            lines that the block before it prints, in this order; … stands for anything
    python            statements; a result that stands behind one, `1 + 1  # 2`, is compared
    pycon             a session with >>>, as doctest reads it
    toml, json        text that can be parsed
    mermaid, text     a drawing, or an illustration, which nothing can run

A block without a word is refused, so that none is left out by oversight.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHELL, OUTPUT, PYTHON, SESSION, TOML, JSON = "sh", "output", "python", "pycon", "toml", "json"
ILLUSTRATIONS = ("mermaid", "text")
KINDS = (SHELL, OUTPUT, PYTHON, SESSION, TOML, JSON, *ILLUSTRATIONS)

_FENCE = re.compile(r"^( *)```(.*)$")


class Block(NamedTuple):
    kind: str
    line: int  # of its first line in the page, from 1 on
    text: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in order, without the indentation of a list that they stand in."""
    found: list[Block] = []
    opened: tuple[str, str, int] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append(line)
        elif opened is None:
            opened, lines = (fence[1], fence[2], number + 1), []
        else:
            indentation, kind, first = opened
            text = "".join(f"{each.removeprefix(indentation)}\n" for each in lines)
            found.append(Block(kind, first, text))
            opened = None
    return found


def lacks(shown: str, printed: str) -> str:
    """The first line of `shown` that `printed` does not have behind those before it; "" if it has all of them.

    Blanks count as one, since columns are as wide as what is in them; a time at the end of a line, `4.0 s`, is any.
    """
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        pattern = _pattern(line)
        if line.strip() not in ("", "…") and not any(pattern.fullmatch(_plain(each)) for each in rest):
            return line
    return ""


def _plain(line: str) -> str:
    return re.sub(r"[\d.]+ s$", "… s", " ".join(line.split()))


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _plain(line).split("…"))))
