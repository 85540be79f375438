"""The comparison of a group's protocols: what the simulator says of them, and a small run."""

from __future__ import annotations

import pytest

from benchmarks.replication.compare import PROTOCOLS, PUBLISHERS, compare, markdown, table
from benchmarks.replication.delays import CROWD, ONE, ONE_DOWN, Delays, measure
from benchmarks.replication.delays import table as delays_table
from holdfast.schemes.paxos.settings import CLASSIC, Protocol

ONE_SHORT, ONE_DOWN_SHORT = ONE._replace(seconds=5.0), ONE_DOWN._replace(seconds=5.0)
CROWD_SHORT = CROWD._replace(seconds=1.0)


def messages_in_a_row(ms: float) -> int:
    """With 20 ms for each, and less than a millisecond for disks."""
    whole, rest = divmod(ms, 20.0)
    assert rest < 1.0
    return int(whole)


@pytest.mark.parametrize("protocol", CLASSIC)
def test_classic_rounds_take_four_messages_in_a_row(protocol: Protocol) -> None:
    found = measure(ONE_SHORT, 3, protocol)
    assert (messages_in_a_row(found.p50_ms), messages_in_a_row(found.p99_ms), found.quick) == (4, 4, 0.0)


@pytest.mark.parametrize(
    ("replicas", "is_one_down", "messages"),
    [(3, False, 3), (5, False, 3), (3, True, 4), (5, True, 3)],
)
def test_fast_rounds_take_three_where_enough_replicas_are_there(
    replicas: int, is_one_down: bool, messages: int
) -> None:
    found = measure(ONE_DOWN_SHORT if is_one_down else ONE_SHORT, replicas, Protocol.FAST)
    assert messages_in_a_row(found.p50_ms) == messages
    assert (found.quick > 0.5) is (messages == 3)


def test_fast_rounds_lose_where_many_publish_at_once_and_cost_more_messages() -> None:
    fast, batch = (measure(CROWD_SHORT, 3, protocol) for protocol in (Protocol.FAST, Protocol.BATCH))
    assert fast.p99_ms > 1.2 * batch.p99_ms
    assert fast.messages > batch.messages
    assert fast.quick < 0.1


def test_a_simulated_figure_comes_out_alike_each_time() -> None:
    assert measure(CROWD_SHORT, 3, Protocol.FAST) == measure(CROWD_SHORT, 3, Protocol.FAST)


def test_every_protocol_that_there_is_has_a_row() -> None:
    made = delays_table((3,), (ONE._replace(seconds=1.0),))
    assert [name for name, _ in made.rows] == [f"3, {protocol.value}" for protocol in Protocol]
    assert tuple(protocol.value for protocol in Protocol) == PROTOCOLS


def test_a_cell_says_latencies_share_and_messages() -> None:
    assert str(Delays(60.2, 80.4, 0.825, 45.6)) == "60, 80; 82%; 46"


@pytest.mark.full
def test_a_small_comparison_loses_nothing() -> None:
    compared = compare(1, 0.2, 2_400, (3,), ("fast",), boxes=1_000)
    assert [(one.replicas, one.protocol, one.publishers) for one in compared] == [(3, "fast", n) for n in PUBLISHERS]
    assert all(one.lost == 0 and one.per_s > 0 and 0 < one.p50_ms <= one.p99_ms for one in compared)
    texts = ["\n".join(markdown(compared, rounds, load)) for rounds, load in ((1, 0.0), (3, 99.0), (3, 0.0))]
    assert ["Preliminary" in text for text in texts] == [True, True, False]
    (name, cells), *others = table(compared).rows
    assert (name, len(cells), others) == ("3, fast", 2 * len(PUBLISHERS), [])
