"""The verdict on a run with failing replicas sees every kind of mistake, and gaps are found where they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.replication.gaps import apart, gaps_of, largest_gap
from experiments.replication.load import Records
from experiments.replication.verdict import Verdict, judge
from holdfast.kernel.time import MILLISECOND

HEADS = {"r1": 4, "r2": 4, "r3": 4}
LOG = [("p", 1), ("q", 1), ("p", 2), ("q", 2)]


def clean() -> Records:
    records = Records(order={"plain": list(LOG), "named": list(LOG)}, log=list(LOG), positions=[1, 2, 3, 4])
    records.ledger.acknowledged = {"p": 2, "q": 1}  # the answer to q's second one was lost
    return records


def test_a_clean_run_has_no_problems() -> None:
    assert judge(clean(), HEADS) == Verdict(3, 4, (4, 4), 0, 0, 0, ())


def lose_everywhere(records: Records) -> None:
    for order in (records.log, *records.order.values()):
        order.remove(("p", 2))
    records.positions.pop()


def double(records: Records) -> None:
    records.order["plain"].append(("q", 2))


def swap_publishers(records: Records) -> None:
    """In order for each publisher, and in another order than others see."""
    order = records.order["named"]
    order[0], order[1] = order[1], order[0]


def skip_a_position(records: Records) -> None:
    records.positions[-1] = 5


def claim(records: Records) -> None:
    """By a leader that was deposed."""
    records.claimed = [("stubborn", 1)]


def hide(records: Records) -> None:
    records.log, records.positions, records.unreadable = [], [], "the log begins at position 3, behind 1"


def forget(records: Records) -> None:
    records.gaps = 1


@pytest.mark.parametrize(
    ("mistake", "counts", "problem"),
    [
        (lose_everywhere, (3, 0, 0), "the log: 1 acknowledged events of p are missing"),
        (double, (0, 1, 0), "plain: the events of q are not 1, 2, 3 …, each once and in order"),
        (swap_publishers, (0, 0, 1), "named: other events than the log has, or in another order"),
        (skip_a_position, (0, 0, 0), "positions are not 1 to 4"),
        (claim, (1, 0, 0), "the log: 1 events that a deposed leader acknowledged are missing"),
        (hide, (3, 0, 0), "the log can't be read back: the log begins at position 3, behind 1"),
        (forget, (0, 0, 0), "plain subscriptions were forgotten 1 times"),
    ],
)
def test_every_mistake_is_seen(mistake: Callable[[Records], None], counts: tuple[int, int, int], problem: str) -> None:
    records = clean()
    mistake(records)
    verdict = judge(records, HEADS)
    assert (verdict.lost, verdict.doubled, verdict.inverted) == counts
    assert problem in verdict.problems


def test_subscribers_are_compared_with_each_other_if_the_log_cannot_be_read() -> None:
    records = clean()
    hide(records)
    assert not any(problem.startswith(("plain", "named")) for problem in judge(records, HEADS).problems)
    swap_publishers(records)
    assert judge(records, HEADS).inverted == 1


def test_a_replica_with_another_head_is_seen() -> None:
    assert judge(clean(), {**HEADS, "r2": 3}).problems


def test_a_gap_is_the_longest_time_without_an_answer_that_touches_the_moment() -> None:
    answered = [0, 10, 20, 320, 330, 2_000]
    assert largest_gap(answered, 15, 115) == 300  # begun before the end
    assert largest_gap(answered, 25, 125) == 300  # already under way
    assert largest_gap(answered, 0, 15) == 10
    assert largest_gap(answered, 3_000, 4_000) == 0


def test_gaps_are_summed_up_in_milliseconds() -> None:
    answered = [at * MILLISECOND for at in (0, 10, 110, 120, 420)]
    moments = [(5 * MILLISECOND, 50 * MILLISECOND), (200 * MILLISECOND, 300 * MILLISECOND)]
    assert gaps_of(answered, moments) == (2, 100.0, 300.0, 300.0)
    assert gaps_of(answered, []).failures == 0


def test_a_gap_is_put_down_to_one_failure() -> None:
    answered = [0, 10, 110, 120, 420]
    moments = apart([(5, 200), (130, 300)], answered)
    assert [largest_gap(answered, *moment) for moment in moments] == [100, 300]
    assert apart([(5, 200), (250, 300)], answered) == [(5, 200), (250, 300)]
    assert apart([], answered) == []
