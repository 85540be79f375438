"""docs/replication-checklist.md names only what is there, and answers every demand."""

from __future__ import annotations

import re

import pytest

from tests.paxos.mutants import MUTANTS
from tests.paxos.watch import Watch
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "replication-checklist.md").read_text(encoding="utf-8")


def missing_paths(text: str) -> list[str]:
    return [path for path in re.findall(r"`((?:tests|src)/[\w/.]+)`", text) if not (ROOT / path).exists()]


def test_every_path_that_is_named_exists() -> None:
    assert missing_paths(PAGE) == []
    assert missing_paths("| `tests/paxos/watch.py` | `tests/paxos/nowhere.py` |") == ["tests/paxos/nowhere.py"]


def test_every_demand_has_its_row() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [int(row[1]) for row in rows] == list(range(1, 31))
    assert all(row[3].strip() for row in rows)


@pytest.mark.parametrize("row", [line for line in PAGE.splitlines() if "watch: `" in line])
def test_the_watch_has_what_is_said_of_it(row: str) -> None:
    named = re.findall(r"`(\w+)`", row.split("watch: ")[1])
    assert [name for name in named if name != "check_invariants" and not hasattr(Watch, name)] == []


def test_every_mutant_that_is_named_is_planted() -> None:
    mistakes = [mutant.mistake for mutant in MUTANTS]
    quoted = [name for line in PAGE.splitlines() if "utant" in line for name in re.findall(r'"([^"]+)"', line)]
    named = [piece.strip() for name in quoted for piece in name.split("…") if piece.strip()]
    assert len(named) > 5
    assert [name for name in named if not any(name in mistake for mistake in mistakes)] == []
