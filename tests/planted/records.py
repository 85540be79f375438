"""Which seed sees a mistake, and how many of the seeds behind it do: `recorded.json`, one line a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from tests.planted.mistakes import MISTAKES, Mistake

FILE = Path(__file__).parent / "recorded.json"
MORE = 20  # seeds behind the recorded one
SLACK = 2  # so many fewer of them may see it
SEED_MAX = 2_500  # a mistake that no seed up to here sees is not seen; one of names needs so many


class Record(NamedTuple):
    seed: int
    more: int  # of the 20 seeds behind it, those that see the mistake too


def read() -> dict[str, Record]:
    return {name: Record(*record) for name, record in json.loads(FILE.read_text()).items()}


def write(records: dict[str, Record]) -> None:
    lines = [f"  {json.dumps(name, ensure_ascii=False)}: [{seed}, {more}]" for name, (seed, more) in records.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def count_more(mistake: Mistake, seed: int) -> int:
    return sum(bool(mistake.seen(seed + further)) for further in range(1, MORE + 1))


def seen_as_often(mistake: Mistake, record: Record) -> int:
    """How many of the seeds behind the recorded one see the mistake, so far as has to be known: what is played ends
    with the seed that makes them enough, or leaves too few to become enough."""
    seen, least = 0, record.more - SLACK
    for further in range(1, MORE + 1):
        if not seen < least <= seen + MORE + 1 - further:
            break
        seen += bool(mistake.seen(record.seed + further))
    return seen


def record(name: str, known: Record | None) -> Record | None:
    """Keeps the known seed while it sees the mistake; else takes the first one that does, if there is one."""
    mistake = MISTAKES[name]
    seeds = range(SEED_MAX + 1) if known is None else (known.seed, *range(SEED_MAX + 1))
    for seed in seeds:
        if mistake.seen(seed) and not mistake.sound(seed):
            return Record(seed, count_more(mistake, seed))
    return None
