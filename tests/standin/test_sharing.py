"""A stand-in shares the work of a broker that is slow: message scheduling, with and without re-ordering."""

from __future__ import annotations

import pytest

from holdfast.sim.scenario import Cut, Fault, Kill, Reset
from holdfast.trace import schema
from tests.standin.star import F, R, hand_back, play, replace

SLOW_US = 9_000  # for each message, of which one comes every 10 ms, and goes on to two
PROTOCOLS = ("basic", "synch", "increm")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", ["ms", "ms-ro"])
def test_work_is_shared_and_nothing_is_lost_or_doubled(mode: str, protocol: str) -> None:
    """D0-B13, D0-C9 to C14: order is kept where it is asked for, and else it is not."""
    run = play([replace(4_000, protocol, mode)], slow_us=SLOW_US, every_ms=10, until_ms=14_000)
    assert run.wrong == []
    assert run.missing("s2") == run.missing("s3") == []
    assert min(run.carried(F), run.carried(R)) > 500
    assert run.is_ordered("s2") == run.is_ordered("s3") == (mode == "ms-ro")


@pytest.mark.parametrize("protocol", ["synch", "increm"])
def test_work_is_shared_also_where_subscriptions_hide_each_other(protocol: str) -> None:
    """The broker names one of the two that are alike, and the stand-in, which hears of them in another order, the other
    one."""
    met_last = Cut(at_ms=3_900, for_ms=500, source=R, target="n3")
    operations, covering = [replace(4_000, protocol, "ms")], {"covering": True}
    run = play(operations, [met_last], settings=covering, slow_us=SLOW_US, every_ms=10, until_ms=14_000)
    assert run.wrong == []
    assert run.missing("s3") == []
    assert min(run.carried(F), run.carried(R)) > 300


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", ["ms", "ms-ro"])
def test_the_share_is_handed_back_without_loss(mode: str, protocol: str) -> None:
    operations = [replace(4_000, protocol, mode), hand_back(8_000)]
    run = play(operations, slow_us=SLOW_US, every_ms=10, until_ms=16_000)
    assert run.wrong == []
    assert run.missing("s2") == run.missing("s3") == []
    assert run.steps()[-1] == []
    assert run.told("stand-in-without") == []
    assert run.is_ordered("s2") == (mode == "ms-ro")


@pytest.mark.parametrize("protocol", ["basic", "synch"])
def test_where_events_are_stored_the_choice_is_stored_with_them(protocol: str) -> None:
    crashes = [Kill(at_ms=6_000, for_ms=1_000, host="n1"), Kill(at_ms=7_500, for_ms=800, host=R)]
    run = play([replace(4_000, protocol, "ms")], crashes, level="buffered", slow_us=SLOW_US, every_ms=20)
    assert run.wrong == []
    assert run.missing("s2") == run.missing("s3") == []
    assert min(run.carried(F), run.carried(R)) > 100


def test_stored_events_are_held_back_by_nobody() -> None:
    """What re-ordering holds back is not on the disk."""
    run = play([replace(4_000, "synch", "ms-ro")], level="buffered", until_ms=12_000)
    assert run.told("stand-in-learns") == []


def test_an_idle_publisher_waits_for_one_signal_at_most() -> None:
    """D0-C23: the last events of a publisher come as soon as signals have gone both ways."""
    run = play([replace(4_000, "synch", "ms-ro")], slow_us=SLOW_US, every_ms=10, until_ms=10_000)
    published = {row.event: row.t for row in run.rows if isinstance(row, schema.Published)}
    last = max(published, key=lambda event: int(event.rpartition("/")[2]))
    came = [row.t for row in run.rows if isinstance(row, schema.Delivered) and row.event == last]
    assert run.missing("s2") == []
    assert max(came) - published[last] < 1_500_000_000


@pytest.mark.parametrize("mode", ["ms", "ms-ro"])
def test_who_shared_the_work_takes_the_place_when_the_broker_fails(mode: str) -> None:
    """What was in the broker is lost with it (D0-F5); the rest goes by the stand-in, in order."""
    dead = [Kill(at_ms=7_000, for_ms=0, host=F, for_ever=True)]
    operations = [replace(4_000, "synch", mode), replace(8_000)]
    run = play(operations, dead, slow_us=SLOW_US, every_ms=10, until_ms=16_000)
    assert run.wrong == []
    assert run.steps()[-1] == []
    tail = [number for number in run.missing("s2") if number > 700]
    assert tail == []


def test_a_stand_in_that_fails_while_it_shares_stops_nobody() -> None:
    dead = [Kill(at_ms=7_000, for_ms=0, host=R, for_ever=True)]
    run = play([replace(4_000, "synch", "ms-ro")], dead, slow_us=2_000, every_ms=20, until_ms=16_000)
    assert run.wrong == []
    assert [number for number in run.missing("s2") if number > 350] == []


@pytest.mark.parametrize("cut", [F, R])
def test_a_link_of_either_way_may_break_while_work_is_shared(cut: str) -> None:
    """Events go on by what is left, and by both when it is back."""
    broken: list[Fault] = [
        Reset(at_ms=5_000, for_ms=0, source="n1", target=cut),
        Cut(at_ms=6_000, for_ms=4_000, source="n1", target=cut),
    ]
    run = play([replace(4_000, "synch", "ms-ro")], broken, slow_us=1_000, every_ms=20, until_ms=18_000)
    assert run.wrong == []
    assert [number for number in run.missing("s2") if number > 500] == []
    assert [number for number in run.missing("s3") if number > 500] == []
