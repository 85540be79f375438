"""Named subscriptions under faults: nothing is lost, doubled within a life, out of order, or beyond the window."""

from collections import Counter

import pytest

from holdfast.trace.schema import Confirmed, Delivered, Row, Subscribed, Unsubscribed
from tests.sim.named_world import World, problem, run_seed
from tests.tiers import blocks, scarce

SEEDS = 300
LONG_SEEDS = 5_000


# What happens in a run, at the least, on average over a block.
HAPPENS = {"published": 30, "ranges": 3, "second attempts": 15, "changed filters": 6, "crashed brokers": 0.4}


def problems(seeds: range, happened: Counter[str]) -> str:
    return "\n".join(
        filter(None, (problem(seed, see=lambda world: happened.update(world.summary())) for seed in seeds))
    )


@pytest.mark.parametrize("seeds", blocks(SEEDS, 25))
def test_named_subscriptions_keep_their_promises(seeds: range) -> None:
    """Through takeovers, second attempts, changed filters and concurrent reads."""
    happened: Counter[str] = Counter()
    assert problems(seeds, happened) == ""
    assert scarce(happened, HAPPENS, len(seeds)) == {}


class Rows:
    def __init__(self) -> None:
        self.seen: list[Row] = []

    def see(self, row: Row) -> None:
        self.seen.append(row)


def test_a_trace_shows_names_their_positions_and_second_attempts() -> None:
    rows = Rows()
    for seed in range(5):
        World(seed, sinks=[rows]).run()
    names = {row.subscription: row.name for row in rows.seen if isinstance(row, Subscribed)}
    delivered = [row for row in rows.seen if isinstance(row, Delivered)]
    assert {names[row.subscription] for row in delivered} == {"risk", "audit"}
    assert all(row.position is not None for row in delivered)
    assert {row.attempt for row in delivered} > {1, 2}
    ended = {row.subscription for row in rows.seen if isinstance(row, Unsubscribed)}
    assert ended < {row.subscription for row in rows.seen if isinstance(row, Confirmed | Subscribed)}


@pytest.mark.parametrize("seed", [20506, 21133])
def test_what_arrives_after_the_broker_went_back_counts_in_the_window(seed: int) -> None:
    """The broker counted by guesses: what a driver had read for it before was left out, what was sent twice, twice."""
    assert problem(seed) == ""


@pytest.mark.long
def test_named_subscriptions_keep_their_promises_in_a_campaign() -> None:
    assert problems(range(SEEDS + 1, LONG_SEEDS + 1), Counter()) == ""


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [run_seed(7) for _ in range(2)]
    assert runs[0].simulation.steps == runs[1].simulation.steps
    assert [reading.got for reading in runs[0].readings] == [reading.got for reading in runs[1].readings]
