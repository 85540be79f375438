"""The same swarm for a night: many seeds over all cores, with a line now and then and a summary."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

import pytest

from tests.paxos import change_swarm, fast_swarm
from tests.paxos.swarm import problems

LONG_SEEDS = 100_000
CHANGING_SEEDS = 20_000
BLOCK = 250


def campaign(seeds: range, jobs: int, problems: Callable[[range], list[str]] = problems) -> list[str]:
    """What is wrong, over all seeds; prints how far it is."""
    found: list[str] = []
    done = 0
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        blocks = {pool.submit(problems, seeds[at : at + BLOCK]): at for at in range(0, len(seeds), BLOCK)}
        for block in as_completed(blocks):
            found += block.result()
            done += len(seeds[blocks[block] : blocks[block] + BLOCK])
            print(f"{done:,} of {len(seeds):,} seeds, {len(found)} with a violation", flush=True)
    for problem in found[:20]:
        print(problem)
    print(f"summary: {len(seeds):,} seeds of groups of replicas, {len(found)} violations")
    return found


@pytest.mark.long
def test_a_group_keeps_its_promises_in_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        found = campaign(range(LONG_SEEDS), os.cpu_count() or 1)
    assert found == []


@pytest.mark.long
def test_a_group_with_fast_rounds_keeps_its_promises_in_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        found = campaign(range(LONG_SEEDS), os.cpu_count() or 1, fast_swarm.problems)
    assert found == []


@pytest.mark.long
def test_a_group_that_changes_keeps_its_promises_in_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        found = campaign(range(CHANGING_SEEDS), os.cpu_count() or 1, change_swarm.problems)
    assert found == []


def test_a_campaign_counts_all_seeds_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign(range(4), 2) == []
    assert "summary: 4 seeds of groups of replicas, 0 violations" in capsys.readouterr().out
