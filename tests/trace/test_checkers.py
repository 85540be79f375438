"""Each checker on runs written by hand: what it lets pass, and what it says about what it does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.trace.checkers import (
    CHECKERS,
    PROMISED_BY_ALL,
    VIOLATIONS_KEPT,
    Violation,
    Watch,
    check_trace,
    make_checker,
)
from holdfast.trace.errors import SampledTrace, UnknownChecker
from holdfast.trace.schema import Accepted, Header, QueueLength, Refused, Subscribed, Unsubscribed
from tests.trace.runs import HEADER, MS, Run


def violations(checker: str, run: Run) -> list[Violation]:
    return check_trace(run.header, run.rows, [make_checker(checker)])


def messages(checker: str, run: Run) -> list[str]:
    found = violations(checker, run)
    assert {violation.checker for violation in found} <= {checker}
    return [violation.message for violation in found]


def subscribed(*ids: str, filter: str = "") -> Run:
    return Run().subscribe(*ids, filter=filter)


# ------------------------------------------------------------------------------------------------------ only-matching


def test_only_matching_lets_pass_what_matches() -> None:
    run = subscribed("s/1/1", filter="topic = 'a' AND x > 1").publish("p/1/1", topic="a", x=2).deliver("s/1/1", "p/1/1")
    assert messages("only-matching", run) == []


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            subscribed("s/1/1", filter="x > 1").publish("p/1/1", x=1).deliver("s/1/1", "p/1/1"),
            "s got p/1/1 through s/1/1, whose filter does not match it: x > 1",
        ),
        (
            subscribed("s/1/1", filter="topic = 'a'").publish("p/1/1", topic="b").deliver("s/1/1", "p/1/1"),
            "s got p/1/1 through s/1/1, whose filter does not match it: topic = 'a'",
        ),
        (
            subscribed("s/1/1").deliver("s/1/1", "p/1/1").publish("p/1/1"),
            "s got p/1/1, which nobody had published by then, through s/1/1",
        ),
        (
            Run().publish("p/1/1").deliver("s/1/1", "p/1/1").subscribe("s/1/1"),
            "s got p/1/1 through s/1/1, which nobody had asked for",
        ),
        (
            subscribed("s/1/1").publish("p/1/1").unsubscribe("s/1/1").deliver("s/1/1", "p/1/1"),
            "s got p/1/1 through s/1/1, which had ended at 4.000 ms",
        ),
        (
            subscribed("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1", subscriber="t"),
            "t got p/1/1 through s/1/1, which belongs to s",
        ),
    ],
)
def test_only_matching_says_what_was_wrong_with_a_delivery(run: Run, message: str) -> None:
    assert messages("only-matching", run) == [message]
    [violation] = violations("only-matching", run)
    assert (violation.events, violation.subscriptions) == (("p/1/1",), ("s/1/1",))


def test_a_subscription_that_is_made_again_is_in_place_again() -> None:
    run = subscribed("s/1/1").unsubscribe("s/1/1").subscribe("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1")
    assert messages("only-matching", run) == []


def test_a_subscription_whose_filter_was_refused_is_owed_nothing_and_gets_nothing() -> None:
    run = Run().subscribe("s/1/1", filter="x >").publish("p/1/1").acknowledge("p/1/1")
    assert messages("only-matching", run) == messages("no-loss", run) == []
    assert len(messages("only-matching", run.deliver("s/1/1", "p/1/1"))) == 1


# ------------------------------------------------------------------------------------------------------- at-most-once


def test_at_most_once_finds_a_second_delivery() -> None:
    run = subscribed("s/1/1", "s/1/2").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1", "p/1/2")
    assert messages("at-most-once", run.deliver("s/1/2", "p/1/1")) == []  # two subscriptions, two deliveries
    run.deliver("s/1/1", "p/1/1")
    assert violations("at-most-once", run) == [
        Violation("at-most-once", 11 * MS, "s/1/1 got p/1/1 a second time", ("p/1/1",), ("s/1/1",))
    ]


def test_a_declared_redelivery_needs_a_name() -> None:
    named = Run().subscribe("s/1/1", name="risk").publish("p/1/1").deliver("s/1/1", "p/1/1")
    assert messages("at-most-once", named.deliver("s/1/1", "p/1/1", attempt=2)) == []
    unnamed = subscribed("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1").deliver("s/1/1", "p/1/1", attempt=2)
    assert messages("at-most-once", unnamed) == [
        "s/1/1 got p/1/1 as attempt 2, and the subscription has no name under which it could be redelivered"
    ]


def test_a_redelivery_needs_a_larger_attempt_each_time() -> None:
    run = Run().subscribe("s/1/1", name="risk").publish("p/1/1").deliver("s/1/1", "p/1/1", attempt=2)
    assert messages("at-most-once", run) == []  # the first attempt was made to an earlier incarnation
    for attempt in (2, 3, 1, 2):
        run.deliver("s/1/1", "p/1/1", attempt=attempt)
    assert messages("at-most-once", run) == [
        "s/1/1 got p/1/1 again as attempt 2, after attempt 2",
        "s/1/1 got p/1/1 again as attempt 1, after attempt 3",
        "s/1/1 got p/1/1 again as attempt 2, after attempt 3",
    ]


# ---------------------------------------------------------------------------------------------------- publisher-order


def test_publisher_order_is_by_incarnation_then_sequence() -> None:
    run = subscribed("s/1/1").publish("p/1/9", "p/1/10", "p/2/1", "q/1/1")
    assert messages("publisher-order", run.deliver("s/1/1", "q/1/1", "p/1/9", "p/1/10", "p/2/1")) == []
    swapped = subscribed("s/1/1").publish("p/1/9", "p/1/10", "p/2/1").deliver("s/1/1", "p/1/9", "p/2/1", "p/1/10")
    assert violations("publisher-order", swapped) == [
        Violation(
            "publisher-order",
            10 * MS,
            "s/1/1 got p/1/10 after p/2/1, which p published later",
            ("p/1/10", "p/2/1"),
            ("s/1/1",),
        )
    ]


def test_publisher_order_is_judged_by_first_deliveries() -> None:
    run = Run().subscribe("s/1/1", name="risk").publish("p/1/1", "p/1/2", "p/1/3").deliver("s/1/1", "p/1/1", "p/1/3")
    run.deliver("s/1/1", "p/1/1").deliver("s/1/1", "p/1/2", attempt=2)  # a duplicate, and a declared redelivery
    assert messages("publisher-order", run) == []
    run.deliver("s/1/1", "p/1/2").deliver("s/1/1", "p/1/2")
    assert messages("publisher-order", run) == ["s/1/1 got p/1/2 after p/1/3, which p published later"]


def test_a_redelivery_does_not_move_the_order_on() -> None:
    run = Run().subscribe("s/1/1", name="risk").publish("p/1/1", "p/1/2")
    run.deliver("s/1/1", "p/1/2", attempt=2).deliver("s/1/1", "p/1/1")
    assert messages("publisher-order", run) == []


# -------------------------------------------------------------------------------------------------------- total-order


def test_total_order_compares_what_two_subscriptions_share() -> None:
    run = subscribed("s/1/1", "t/1/1", "u/1/1").publish("p/1/1", "q/1/1", "q/1/2")
    run.deliver("s/1/1", "p/1/1", "q/1/1").deliver("t/1/1", "q/1/2", "p/1/1").deliver("u/1/1", "q/1/1", "q/1/2")
    # s: p1 q1, t: q2 p1, u: q1 q2: a circle through three, but no two of them disagree.
    assert messages("total-order", run) == []
    run.deliver("t/1/1", "q/1/1")
    assert violations("total-order", run) == [
        Violation(
            "total-order",
            18 * MS,
            "t/1/1 got q/1/2 before q/1/1, u/1/1 got q/1/1 before q/1/2",
            ("q/1/2", "q/1/1"),
            ("t/1/1", "u/1/1"),
        )
    ]


def test_total_order_holds_for_two_subscriptions_of_one_subscriber() -> None:
    run = subscribed("s/1/1", "s/1/2").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1", "p/1/2")
    assert messages("total-order", run.deliver("s/1/2", "p/1/2", "p/1/1")) == [
        "s/1/1 got p/1/1 before p/1/2, s/1/2 got p/1/2 before p/1/1"
    ]


def test_total_order_is_judged_by_first_deliveries() -> None:
    run = Run().subscribe("s/1/1", "t/1/1", name="risk").publish("p/1/1", "p/1/2")
    run.deliver("s/1/1", "p/1/1", "p/1/2", "p/1/1").deliver("t/1/1", "p/1/2", attempt=2)
    assert messages("total-order", run.deliver("t/1/1", "p/1/1", "p/1/2")) == []


# ------------------------------------------------------------------------------------------- no-loss and exactly-once


def lost(run: Run) -> list[str]:
    """The events that no-loss misses."""
    return [violation.events[0] for violation in violations("no-loss", run)]


def test_no_loss_misses_an_acknowledged_event() -> None:
    run = subscribed("s/1/1", filter="x > 1").subscribe("t/1/1").publish("p/1/1", x=2).deliver("t/1/1", "p/1/1")
    for name in ("no-loss", "exactly-once"):
        assert violations(name, run) == [
            Violation(
                name,
                4 * MS,
                "p/1/1 was acknowledged and never reached s/1/1, which was in place and wants x > 1",
                ("p/1/1",),
                ("s/1/1",),
            )
        ]


def test_exactly_once_finds_duplicates_too() -> None:
    run = subscribed("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1")
    assert messages("exactly-once", run) == []
    assert messages("exactly-once", run.deliver("s/1/1", "p/1/1")) == ["s/1/1 got p/1/1 a second time"]


@pytest.mark.parametrize(
    "run",
    [
        subscribed("s/1/1").publish("p/1/1", acknowledge=False),
        subscribed("s/1/1", filter="x > 1").publish("p/1/1", x=1),
        subscribed("s/1/1", filter="topic = 'a'").publish("p/1/1", topic="b"),
        subscribed("s/1/1").publish("p/1/1", lifetime=1),
        subscribed("s/1/1").publish("p/1/1").unsubscribe("s/1/1"),
        subscribed("s/1/1").publish("p/1/1").fault("s"),
        subscribed("s/1/1").fault("s").fault("s", "up").publish("p/1/1"),
        subscribed("s/1/1").publish("p/1/1").miss("s/1/1"),
        subscribed("s/1/1").publish("p/1/1").miss("s/1/1").publish("p/1/2").confirm("s/1/1"),
        subscribed("s/1/1").publish("p/1/1", "p/1/2").miss("s/1/1", count=2),
        Run().subscribe("s/1/1", confirm=False).publish("p/1/1").confirm("s/1/1"),
        Run().subscribe("s/1/1", confirm=False).publish("p/1/1"),
        Run().subscribe("s/1/1", confirm=False).publish("p/1/1", acknowledge=False).confirm("s/1/1")
        .acknowledge("p/1/1"),
        Run().confirm("s/1/1").miss("s/1/1").publish("p/1/1").acknowledge("p/1/2"),
    ],
    ids=[
        "not acknowledged",
        "does not match",
        "topic does not match",
        "may have expired",
        "unsubscribed",
        "crashed",
        "crashed and back",
        "told that nothing is known",
        "published before it was made anew",
        "told of as many",
        "published before the confirmation",
        "never confirmed",
        "published before, acknowledged after the confirmation",
        "not a subscription, not an event",
    ],
)  # fmt: skip
def test_no_loss_asks_only_for_what_is_owed(run: Run) -> None:
    assert lost(run) == []


def test_no_loss_is_owed_again_once_the_subscription_was_made_anew() -> None:
    run = subscribed("s/1/1").publish("p/1/1").miss("s/1/1").publish("p/1/2").confirm("s/1/1").publish("p/1/3")
    assert lost(run) == ["p/1/3"]


def test_a_second_confirmation_excuses_nothing() -> None:
    assert lost(subscribed("s/1/1").publish("p/1/1").confirm("s/1/1").publish("p/1/2")) == ["p/1/1", "p/1/2"]


def test_a_count_excuses_so_many_events_published_before_it() -> None:
    run = subscribed("s/1/1").publish("p/1/1", "p/1/2", "p/1/3").miss("s/1/1", count=2)
    assert lost(run) == ["p/1/3"]
    assert lost(run.publish("p/1/4").miss("s/1/1", count=1)) == ["p/1/4"]
    assert lost(run.miss("s/1/1", count=7).publish("p/1/5")) == ["p/1/5"]


def test_another_crash_excuses_nothing() -> None:
    assert lost(subscribed("s/1/1").publish("p/1/1").fault("b1").fault("s", "paused")) == ["p/1/1"]


def test_a_new_subscription_after_a_crash_is_owed_what_comes_then() -> None:
    run = subscribed("s/1/1").publish("p/1/1").fault("s").fault("s", "up").subscribe("s/2/1").publish("p/1/2")
    [violation] = violations("no-loss", run)
    assert (violation.events, violation.subscriptions) == (("p/1/2",), ("s/2/1",))


# --------------------------------------------------------------------------------------------- complete, and the weak


def gap(filter: str = "x > 1 AND x > 2", lifetime: int = 0, middle: str = "p/1/2") -> Run:
    """Three events, which t has all got; what s got is to be added."""
    run = subscribed("s/1/1", filter=filter).subscribe("t/1/1", filter="2 < x")
    run.publish("p/1/1", x=3).publish(middle, x=3, lifetime=lifetime).publish("p/1/3", x=3)
    return run.deliver("t/1/1", "p/1/1", middle, "p/1/3")


def test_complete_finds_a_gap_that_another_does_not_have() -> None:
    run = gap().deliver("s/1/1", "p/1/1", "p/1/3")
    assert violations("complete", run) == [
        Violation(
            "complete",
            6 * MS,
            "p/1/2 reached t/1/1 and not s/1/1, which has the same filter; "
            "both got p/1/1, published before it, and p/1/3, published after it",
            ("p/1/2",),
            ("t/1/1", "s/1/1"),
        )
    ]


def test_complete_counts_more_than_one_lack() -> None:
    run = subscribed("s/1/1", "t/1/1").publish(*(f"p/1/{n}" for n in range(1, 6)))
    run.deliver("s/1/1", "p/1/1", "p/1/3", "p/1/5").deliver("t/1/1", *(f"p/1/{n}" for n in range(1, 6)))
    assert messages("complete", run) == [
        "p/1/2 (and 1 more) reached t/1/1 and not s/1/1, which has the same filter; "
        "both got p/1/1, published before it, and p/1/3, published after it"
    ]


@pytest.mark.parametrize(
    "run",
    [
        gap().deliver("s/1/1", "p/1/1", "p/1/2", "p/1/3"),
        gap().deliver("s/1/1", "p/1/1"),
        gap().deliver("s/1/1", "p/1/3"),
        gap().deliver("s/1/1", "p/1/1", "p/1/2"),
        gap().deliver("s/1/1", "p/1/1", "p/1/3").miss("s/1/1"),
        gap().deliver("s/1/1", "p/1/1", "p/1/3").miss("s/1/1", count=1),
        gap(filter="x > 1").deliver("s/1/1", "p/1/1", "p/1/3"),
        gap(lifetime=9).deliver("s/1/1", "p/1/1", "p/1/3"),
        gap(middle="q/1/1").deliver("s/1/1", "p/1/1", "p/1/3"),
    ],
    ids=["both", "ended", "began", "behind", "told", "counted", "other filter", "expired", "other publisher"],
)
def test_complete_speaks_only_of_gaps_between_common_events(run: Run) -> None:
    assert messages("complete", run) == []


def test_complete_lets_pass_what_reached_neither() -> None:
    run = subscribed("s/1/1", "t/1/1").publish("p/1/1", "p/1/2", "p/1/3")
    assert messages("complete", run.deliver("s/1/1", "p/1/1", "p/1/3").deliver("t/1/1", "p/1/1", "p/1/3")) == []


def test_complete_excuses_no_more_than_was_told() -> None:
    assert len(messages("complete", gap().deliver("s/1/1", "p/1/1", "p/1/3").miss("t/1/1"))) == 1
    assert len(messages("complete", gap().deliver("s/1/1", "p/1/1", "p/1/3").miss("s/1/1", count=0))) == 1
    late = Run().subscribe("s/1/1").miss("s/1/1").confirm("s/1/1").subscribe("t/1/1")
    late.publish("p/1/1", "p/1/2", "p/1/3").deliver("s/1/1", "p/1/1", "p/1/3").deliver(
        "t/1/1", "p/1/1", "p/1/2", "p/1/3"
    )
    assert len(messages("complete", late)) == 1


def test_one_of_two_equal_subscriptions_that_was_told_does_not_excuse_the_other() -> None:
    run = gap().subscribe("u/1/1", filter="x > 2").deliver("s/1/1", "p/1/1", "p/1/3").deliver("u/1/1", "p/1/1", "p/1/3")
    [violation] = violations("complete", run.miss("s/1/1"))
    assert violation.subscriptions == ("t/1/1", "u/1/1")


def test_the_order_of_complete_is_the_publishers() -> None:
    run = subscribed("s/1/1", "t/1/1").publish("p/2/1", "p/1/1", "p/1/2")
    run.deliver("s/1/1", "p/1/1", "p/2/1").deliver("t/1/1", "p/1/1", "p/1/2", "p/2/1")
    assert [violation.events for violation in violations("complete", run)] == [("p/1/2",)]


def test_weak_complete_leaves_out_what_traverses_the_broker() -> None:
    run = gap().deliver("s/1/1", "p/1/1", "p/1/3")
    assert len(messages("weak-complete:b2", run)) == 1
    run.hop("b1", "b3", "p/1/2")
    assert len(messages("weak-complete:b2", run)) == 1
    run.hop("b1", "b2", "p/1/2")  # known only after the deliveries
    assert messages("weak-complete:b2", run) == []
    assert len(messages("weak-complete:b9", run)) == 1


@pytest.mark.parametrize("traversing", ["p/1/1", "p/1/3"])
def test_weak_complete_needs_two_common_events_that_kept_clear(traversing: str) -> None:
    run = gap().deliver("s/1/1", "p/1/1", "p/1/3").hop("b2", "b1", traversing)
    assert messages("weak-complete:b2", run) == []


def test_weak_ordered_leaves_out_what_traverses_the_broker() -> None:
    run = subscribed("s/1/1").publish("p/1/1", "p/1/2", "p/1/3").deliver("s/1/1", "p/1/3", "p/1/1", "p/1/2")
    assert len(messages("weak-ordered:b2", run)) == 2
    run.hop("b2", "b1", "p/1/3", "p/1/9")
    assert messages("weak-ordered:b2", run) == []
    assert len(messages("publisher-order", run)) == 2


# ------------------------------------------------------------------------- no-forgetting, bounded-queues and liveness
def test_a_forgotten_subscription_is_reported_where_that_is_promised() -> None:
    run = Run().subscribe("s/1/1").confirm("s/1/1").miss("s/1/1", count=3, reason="overflow")
    assert messages("no-forgetting", run) == []
    assert messages("no-forgetting", run.miss("s/1/1")) == ["s/1/1 of s was forgotten: forgotten"]


def ended(reason: str, overflow: str = "disconnect", events: int = 3, room: int = 2) -> list[str]:
    """What `endings` says of a subscription that was ended, with so many events published for it and room for some."""
    run = Run().add(Subscribed(t=0, subscription="s/1/1", subscriber="s", filter="n > 0", overflow=overflow))
    run.publish(*[f"p/1/{number}" for number in range(1, events + 1)], n=1).publish("p/1/99", n=0)
    run.add(Unsubscribed(t=MS, subscription="s/1/1", subscriber="s", reason=reason))
    header = replace(HEADER, settings={"backlog_events": room})
    return [violation.message for violation in check_trace(header, run.rows, [make_checker("endings")])]


def test_a_subscription_ends_for_reasons_that_the_run_explains() -> None:
    assert ended("") == []
    assert ended("overflow: more than 2 events wait") == []
    assert ended("overflow: publishers waited 1 s", overflow="block") == []
    assert ended("overflow: more than 2 events wait", events=2) == [
        "s/1/1 ended (overflow: more than 2 events wait), and 2 events were published for it, where 2 have room"
    ]
    assert ended("overflow: more than 2 events wait", overflow="drop-oldest") == [
        "s/1/1 ended (overflow: more than 2 events wait), and its policy is drop-oldest"
    ]
    assert ended("another client has opened a session") == [
        "s/1/1 ended (another client has opened a session), and nothing in the run is a reason for that"
    ]


def queue(length: int, limit: int, t: int = 0) -> QueueLength:
    return QueueLength(t=t, node="b1", queue="b2", length=length, limit=limit)


def test_a_queue_may_be_full_and_no_fuller() -> None:
    run = Run().add(queue(4, 4)).add(queue(99, 0))
    assert messages("bounded-queues", run) == []
    run.add(queue(5, 4, 7 * MS)).add(queue(6, 4)).add(queue(4, 4)).add(queue(7, 4))
    assert messages("bounded-queues", run) == [
        "queue 'b2' of b1 holds 5; its limit is 4",
        "queue 'b2' of b1 holds 7; its limit is 4",
    ]
    assert str(violations("bounded-queues", run)[0]) == (
        "bounded-queues, at 7.000 ms: queue 'b2' of b1 holds 5; its limit is 4"
    )


def test_liveness_waits_for_an_answer_to_every_question() -> None:
    run = Run().publish("p/1/1", acknowledge=False).subscribe("s/1/1", confirm=False)
    assert messages("liveness", run) == [
        "p never learned whether p/1/1 was accepted",
        "s was never told that s/1/1 is in place",
    ]
    run.add(Refused(t=run.t, event="p/1/1", publisher="p", reason="timeout")).confirm("s/1/1")
    assert messages("liveness", run) == []


@pytest.mark.parametrize("state", ["crashed", "paused"])
def test_who_crashed_waits_for_nothing(state: str) -> None:
    run = (
        Run().publish("p/1/1", acknowledge=False).subscribe("s/1/1", confirm=False).fault("p", state).fault("s", state)
    )
    assert len(messages("liveness", run)) == (0 if state == "crashed" else 2)
    assert len(messages("liveness", run.publish("p/2/1", acknowledge=False))) == (1 if state == "crashed" else 3)


def test_a_subscription_that_was_forgotten_is_made_anew() -> None:
    run = subscribed("s/1/1").miss("s/1/1", count=3)
    assert messages("liveness", run) == []
    assert messages("liveness", run.miss("s/1/1")) == ["s was never told that s/1/1 is in place"]
    assert messages("liveness", run.unsubscribe("s/1/1").miss("s/1/1").miss("t/1/1")) == []
    assert messages("liveness", subscribed("s/1/1").fault("s").miss("s/1/1")) == []


# ----------------------------------------------------------------------------------------------------- all of them


def test_a_sampled_trace_is_refused() -> None:
    header = Header(run="r/1", system="tree", sampled=True)
    with pytest.raises(SampledTrace, match="the trace of r/1 leaves rows out"):
        check_trace(header, [], [make_checker("liveness")])


def test_checkers_may_be_fed_one_by_one_or_by_a_watch() -> None:
    run = subscribed("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1", "p/1/1", "p/1/2").publish("p/1/3")
    names = [name if not entry.argument else f"{name}:b2" for name, entry in CHECKERS.items()]
    alone = [make_checker(name) for name in names]
    for checker in alone:
        for row in run.rows:
            checker.see(row)
        checker.finish()
    together = Watch(HEADER, [make_checker(name) for name in names])
    for row in run.rows:
        together.see(row)
    assert {violation.checker for violation in together.violations} == {"only-matching", "at-most-once", "exactly-once"}
    together.finish()
    assert together.violations == [violation for checker in alone for violation in checker.violations]
    assert [checker.name for checker in together.checkers] == names


def test_a_broken_run_does_not_fill_the_memory() -> None:
    run = subscribed("s/1/1").publish("p/1/1").deliver("s/1/1", *["p/1/1"] * (VIOLATIONS_KEPT + 10))
    assert len(messages("at-most-once", run)) == VIOLATIONS_KEPT


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("order", "there is no checker 'order'; there are only-matching, at-most-once, "),
        ("", "there is no checker ''; there are "),
        ("weak-ordered", "checker 'weak-ordered' needs an argument: weak-ordered:BROKER"),
        ("weak-complete:", "checker 'weak-complete' needs an argument: weak-complete:BROKER"),
        ("liveness:b2", "checker 'liveness' takes no argument, and was given 'b2'"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(name: str, problem: str) -> None:
    with pytest.raises(UnknownChecker) as caught:
        make_checker(name)
    assert caught.value.checker == name
    assert caught.value.problem.startswith(problem)


def test_every_checker_is_described_and_has_its_name() -> None:
    assert set(PROMISED_BY_ALL) <= set(CHECKERS)
    for name, entry in CHECKERS.items():
        full = f"{name}:b1" if entry.argument else name
        assert make_checker(full).name == full
        assert entry.promise


def test_a_named_subscription_may_get_what_an_earlier_filter_of_the_name_matched() -> None:
    run = Run().subscribe("s/1/-1", name="risk", filter="n > 1").publish("p/1/1", n=2)
    run.subscribe("t/1/-1", name="risk", filter="n < 1")
    assert messages("only-matching", run.deliver("t/1/-1", "p/1/1")) == []
    other = Run().subscribe("s/1/-1", name="risk", filter="n > 1").publish("p/1/1", n=2)
    other.subscribe("t/1/-1", name="audit", filter="n < 1")
    assert len(messages("only-matching", other.deliver("t/1/-1", "p/1/1"))) == 1


def test_the_order_is_that_of_what_a_publisher_publishes_at_one_broker() -> None:
    def run(*homes: str) -> Run:
        played = Run().subscribe("s/1/1").publish("p/1/1", "p/1/2")
        for number, home in enumerate(homes, 1):
            played.add(Accepted(t=0, node=home, events=[f"p/1/{number}"]))
        return played.deliver("s/1/1", "p/1/2", "p/1/1")

    assert messages("publisher-order", run("b1", "b2")) == []
    for homes in [(), ("b1", "b1")]:
        assert len(messages("publisher-order", run(*homes))) == 1


def test_a_name_that_had_another_filter_before_may_lack_what_others_got() -> None:
    for name in ("", "risk"):
        run = Run().subscribe("s/1/1").subscribe("s/1/-1", name=name).publish("p/1/1", "p/1/2", "p/1/3")
        run.deliver("s/1/1", "p/1/1", "p/1/2", "p/1/3").deliver("s/1/-1", "p/1/1", "p/1/3")
        assert len(messages("complete", run)) == (not name)
