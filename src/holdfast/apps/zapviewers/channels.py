"""The channels of a synthetic log: names that fit into a line, in the order of their popularity, which is Zipf's.

A name is cut to 12 bytes, so that a line has less than 60 whatever it says (D4-A11); names that are equal after that
get `~2`, `~3`, … at their end. Files of channels are sorted by name, which says nothing about who watches: channels of
a file are ranked by the hash of their names, the same for every seed, so that all publishers agree on it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import accumulate

from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.lines import is_channel

NAME_BYTES_MAX = 12
CHANNELS_MIN = 2
CHANNELS_MAX = 5000  # the last of so many still has a place in the table
TABLE_BITS = 16

_STEMS = (
    "Velkin", "Orrow", "Tavio", "Mirrel", "Quendo", "Ulmaro", "Brantis", "Sollux", "Pelago", "Dunvar",
    "Isholm", "Kestara", "Lumeth", "Norvika", "Fjelldi", "Rundal", "Cavara", "Zephyra", "Arkenn", "Hollmar",
)  # fmt: skip
_KINDS = ("", " 2", " News", " Kino", " Gol", " Kids")
INVENTED = tuple(f"{stem}{kind}" for kind in _KINDS for stem in _STEMS)
"""Channels that do not exist, for a log without a file of channels; the most popular first."""

_UNWANTED = re.compile(r'[\x00-\x20\x7f-\x9f,"]+')


def read_channels(lines: Iterable[str]) -> list[str]:
    """The names in the column `name` of a CSV file with a header, the most popular first. Empty names are skipped."""
    rows = csv.DictReader(lines)
    try:
        if rows.fieldnames is None or "name" not in rows.fieldnames:
            raise ZapError("the file of channels has no column 'name' in its first line")
        names = [row["name"] for row in rows if row["name"]]
    except csv.Error as problem:
        raise ZapError(f"the file of channels is no CSV: {problem}") from problem
    return short_names(sorted(dict.fromkeys(names), key=lambda name: sha256(name.encode()).digest()))


def short_names(names: Iterable[str]) -> list[str]:
    """The names, in their order, such that they fit into lines and differ."""
    taken: dict[str, None] = {}
    for name in names:
        plain = _UNWANTED.sub(" ", name).strip(" ")
        short, copy = _cut(plain, NAME_BYTES_MAX), 1
        while short in taken:
            copy += 1
            short = _cut(plain, NAME_BYTES_MAX - len(f"~{copy}")) + f"~{copy}"
        if short and is_channel(short.encode()):
            taken[short] = None
    if not CHANNELS_MIN <= len(taken) <= CHANNELS_MAX:
        raise ZapError(f"{len(taken):,} channels: a log needs {CHANNELS_MIN} to {CHANNELS_MAX:,}")
    return list(taken)


def _cut(name: str, size: int) -> str:
    return name.encode("utf-8", "replace")[:size].decode("utf-8", "ignore").strip(" ")


def zipf_table(channels: int) -> Sequence[int]:
    """2¹⁶ places; channel r (from 0) has a share of them that is proportional to 1 / (r + 1), and at least one.

    A random place is a random channel: one look, which the generator can afford for every line.
    """
    places = 1 << TABLE_BITS
    sums = list(accumulate(1 / rank for rank in range(1, channels + 1)))
    ends = [round(part / sums[-1] * places) for part in sums]
    return [
        channel for channel, (start, end) in enumerate(zip([0, *ends], ends, strict=False)) for _ in range(start, end)
    ]
