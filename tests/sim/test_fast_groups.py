"""Brokers with fast rounds and clients that publish to all of them: all that is promised holds, under faults too."""

from collections import Counter

import msgspec
import pytest

from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.paxos.settings import Protocol
from holdfast.sim.run import run_scenario
from holdfast.trace import schema
from holdfast.trace.schema import Row
from tests.sim.test_direct_groups import quiet
from tests.tiers import one_always

SEEDS = 80  # of each size


class _Hops:
    """Counts the messages of a run, by type."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def see(self, row: Row) -> None:
        if isinstance(row, schema.Hop):
            self.count[row.what] += 1


@pytest.mark.parametrize("seeds", one_always([range(first, first + 10) for first in range(1, SEEDS, 10)]))
@pytest.mark.parametrize("size", [3, 4, 5, 7])
def test_seeds_of_groups_with_fast_rounds_are_clean(size: int, seeds: range) -> None:
    hops, delivered = _Hops(), 0
    shape = group_shape([f"b{number}" for number in range(1, size + 1)], Protocol.FAST, name=f"fast-{size}")
    for seed in seeds:
        outcome = run_scenario(shape.draw(seed), sinks=[hops])
        assert outcome.clean, f"seed {seed}: {outcome.broken or outcome.violations[0]}"
        delivered += outcome.events_delivered
    assert delivered > 10 * len(seeds)
    assert hops.count["OpenDirect"] > 2 * len(seeds)
    assert hops.count["FastLearn"] > 30 * len(seeds)


def test_publications_are_decided_without_the_leaders_word_when_nothing_goes_wrong() -> None:
    """Classic rounds are for the few that take longer than the leader waits."""
    asked: dict[Protocol, int] = {}
    for protocol in (Protocol.BATCH, Protocol.FAST):
        hops = _Hops()
        outcome = run_scenario(msgspec.structs.replace(quiet(20), settings={"protocol": protocol.value}), sinks=[hops])
        assert outcome.clean
        assert outcome.events_delivered == 20
        assert (hops.count["FastLearn"] > 0) == (protocol is Protocol.FAST)
        asked[protocol] = hops.count["Accept"]
    assert 4 * asked[Protocol.FAST] < asked[Protocol.BATCH]
