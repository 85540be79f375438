"""Events that a hosted application made: nobody acknowledges them, every replica speaks of them, and they count."""

import pytest

from holdfast.trace.checkers import check_trace, make_checker
from holdfast.trace.schema import Published
from tests.trace.reference import PROMISES
from tests.trace.runs import Run

ASKED = ["only-matching", "publisher-order", "no-loss", "complete", "liveness"]


def derived(sequence: int, incarnation: int = 1, topic: str = "top") -> Published:
    event = f"@application/{incarnation}/{sequence}"
    return Published(
        t=0,
        event=event,
        publisher="@application",
        incarnation=incarnation,
        sequence=sequence,
        topic=topic,
        derived=True,
    )


def found(run: Run) -> list[str]:
    """What the checkers find, which is what the definitions say."""
    violations = check_trace(run.header, run.rows, [make_checker(name) for name in ASKED])
    names = sorted({violation.checker for violation in violations})
    assert names == sorted(name for name in ASKED if not PROMISES[name](run.rows))
    return names


def test_what_every_replica_speaks_of_is_one_event_and_waits_for_no_answer() -> None:
    run = Run().subscribe("s/1/1", filter="topic = 'top'").add(derived(1)).add(derived(1))
    run.deliver("s/1/1", "@application/1/1").add(derived(1))
    assert found(run) == []


def test_one_that_reached_someone_is_owed_to_all_others() -> None:
    run = Run().subscribe("s/1/1", "r/1/1").add(derived(1)).deliver("s/1/1", "@application/1/1")
    assert found(run) == ["no-loss"]


def test_one_that_reached_nobody_may_have_been_lost_with_the_broker_that_made_it() -> None:
    run = Run().subscribe("s/1/1").add(derived(1)).add(derived(1, topic="other"))
    assert found(run) == []


def test_the_last_word_on_it_counts() -> None:
    run = Run().subscribe("s/1/1").subscribe("r/1/1", filter="topic = 'other'").add(derived(1, topic="other"))
    run.add(derived(1)).deliver("s/1/1", "@application/1/1")
    assert found(run) == []


def test_it_is_not_owed_to_who_came_after_the_first_mention() -> None:
    run = (
        Run().subscribe("s/1/1").add(derived(1)).subscribe("r/1/1").add(derived(1)).deliver("s/1/1", "@application/1/1")
    )
    assert found(run) == []


@pytest.mark.parametrize(("later", "wrong"), [((1, 3), ["publisher-order"]), ((2, 1), [])])
def test_they_come_in_order_within_one_memory_of_the_broker(later: tuple[int, int], wrong: list[str]) -> None:
    incarnation, sequence = later
    run = Run().subscribe("s/1/1").add(derived(sequence, incarnation)).add(derived(2))
    run.deliver("s/1/1", f"@application/{incarnation}/{sequence}").deliver("s/1/1", "@application/1/2")
    assert found(run) == wrong
