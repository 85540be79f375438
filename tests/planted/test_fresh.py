"""Mistakes by a fresh eye: each has a verdict, and the test that is named for one sees it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.planted.fresh import FRESH
from tests.planted.verdicts import VERDICTS
from tests.repository import ROOT

BY_TEST = [name for name, verdict in VERDICTS.items() if verdict.test]
AREAS = {"paxos", "fast", "membership", "sessions", "cursors", "routing", "bypass", "storage", "stand-ins", "on demand"}
UNSEEN_MAX = 2


@pytest.mark.parametrize("fresh", FRESH, ids=lambda fresh: fresh.mistake)
def test_a_mistake_can_be_planted(fresh: object) -> None:
    """An edit whose text is not there any more has to be written anew."""
    with fresh.planted():  # type: ignore[attr-defined]
        pass


def test_every_mistake_has_one_verdict_and_few_are_seen_by_nobody() -> None:
    assert [fresh.mistake for fresh in FRESH] == list(VERDICTS)
    for name, verdict in VERDICTS.items():
        assert sum(map(bool, (verdict.swarm, verdict.test, verdict.harmless))) == 1, name
    assert sum(bool(verdict.harmless) for verdict in VERDICTS.values()) <= UNSEEN_MAX
    areas = Counter(fresh.area for fresh in FRESH)
    assert set(areas) == AREAS
    assert min(areas.values()) >= 7
    assert len(FRESH) >= 159


@pytest.mark.parametrize("name", BY_TEST)
def test_the_test_that_is_named_is_there(name: str) -> None:
    path, _, function = VERDICTS[name].test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert function in names | assigned


@pytest.mark.full
@pytest.mark.parametrize("name", BY_TEST)
def test_the_test_that_is_named_sees_the_mistake(name: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "tests.planted.plant",
        "-p",
        "no:cacheprovider",
        "--full",
    ]
    done = subprocess.run(
        [*command, VERDICTS[name].test],
        cwd=ROOT,
        env={**os.environ, "PLANTED": name, "PYTEST_XDIST_WORKER": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-2_000:]
