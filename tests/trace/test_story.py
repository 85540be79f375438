"""The story of one event, and the summary of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.trace import story as story_module
from holdfast.trace.errors import UnknownEvent
from holdfast.trace.schema import Acknowledged, Delivered, Expired, Header, Published, Refused
from holdfast.trace.story import story
from holdfast.trace.summary import percentile, summary
from tests.trace.example import example_run
from tests.trace.perfect import PerfectRun
from tests.trace.runs import HEADER, MS, Run


def told(run: Run, event: str = "p/1/1") -> list[str]:
    return story(run.header, run.rows, event)


def fates(run: Run, event: str = "p/1/1") -> list[str]:
    """The last part: who wanted the event, and what became of that."""
    lines = told(run, event)
    return lines[len(lines) - lines[::-1].index("") :]


def test_a_story_tells_the_way_the_faults_and_the_fates() -> None:
    run = example_run()
    assert told(run, "feed/1/1") == [
        "event feed/1/1 in run stocks/17 (tree)",
        "",
        "published by feed at 10.000 ms; times below count from then",
        "  topic   =  'stock'",
        "  symbol  =  'IBM'",
        "  price   =  101.5",
        "",
        "      -1.000 ms  ! b1>b3       cut",
        "       0.000 ms  published     by feed",
        "       1.000 ms  feed -> b1    Publish (message 11)",
        "       2.000 ms  b1 -> b2      Forward (message 12)",
        "       3.000 ms  b1 -> risk    Deliver (message 13)",
        "       4.000 ms  acknowledged  to feed",
        "       5.000 ms  delivered     to risk/1/1 via b1",
        "       6.000 ms  ! b2          crashed",
        "      10.000 ms  ! b2          up",
        "      14.000 ms  ! b1>b3       healed",
        "",
        "wanted by 4 subscriptions, 3 of which did not get it",
        "  risk/1/1   topic = 'stock' AND price > 100  got it at 5.000 ms",
        "  desk/1/1   symbol = 'IBM'                   did not get it: desk crashed at 8.000 ms",
        "  audit/1/1  every event                      "
        "did not get it: its owner was told that its broker had lost it (restarted empty) at 9.000 ms",
        "  watch/1/1  price > 50                       did not get it: it was confirmed only at 12.000 ms",
    ]


def test_a_story_ends_with_the_last_delivery_when_all_got_it() -> None:
    run = Run().subscribe("s/1/1").publish("p/1/1").hop("p", "b1", "p/1/1", "p/1/2").fault("b1", "paused")
    run.deliver("s/1/1", "p/1/1").fault("b1", "up").publish("p/1/2")
    assert told(run)[4:] == [
        "       0.000 ms  published     by p",
        "       1.000 ms  acknowledged  to p",
        "       2.000 ms  p -> b1       Forward (message 4, with 1 more)",
        "       3.000 ms  ! b1          paused",
        "       4.000 ms  delivered     to s/1/1",
        "",
        "wanted by 1 subscription, and delivered to all",
        "  s/1/1  every event  got it at 4.000 ms",
    ]


def test_what_was_repaired_before_the_publication_is_no_part_of_the_story() -> None:
    run = Run().fault("b1").fault("b2").fault("b1", "up").publish("p/1/1").hop("b1", "b2", "p/1/1")
    assert [line.split("ms", 1)[1].strip() for line in told(run)[4:8]] == [
        "! b2          crashed",
        "published     by p",
        "acknowledged  to p",
        "b1 -> b2      Forward (message 5)",
    ]


def test_what_an_owner_of_a_name_did_not_get_its_next_one_did() -> None:
    run = Run().subscribe("s/1/1", name="risk").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1").unsubscribe("s/1/1")
    run.publish("p/1/3").subscribe("t/1/1", name="risk").deliver("t/1/1", "p/1/2", attempt=2).deliver("t/1/1", "p/1/3")
    assert told(run, "p/1/2")[-3:] == [
        "wanted by 1 subscription, and delivered to all",
        "  s/1/1  every event  t/1/1 got it under its name at 8.000 ms",
        "  t/1/1  every event  got it at 8.000 ms, kept for its name",
    ]
    assert told(run, "p/1/3")[-1] == "  t/1/1  every event  got it at 5.000 ms, kept for its name"


def test_details_of_every_step_are_told() -> None:
    event = Published(t=0, event="p/1/1", publisher="p", incarnation=1, sequence=1, topic="a", lifetime=2 * MS)
    run = Run(replace(HEADER, sampled=True)).subscribe("s/1/1", "s/1/2").add(event)
    run.add(Acknowledged(t=0, event="p/1/1", publisher="p"))
    run.add(Refused(t=0, event="p/1/1", publisher="p", reason="time\x1bout"))
    place = ("log", 7)
    run.add(Delivered(t=MS, event="p/1/1", subscription="s/1/1", subscriber="s", via="b", position=place, attempt=2))
    run.add(Delivered(t=MS, event="p/1/1", subscription="s/1/1", subscriber="s"))
    assert told(run) == [
        "event p/1/1 in run hand/1 (tree, sampled: rows are left out)",
        "",
        "published by p at 0.000 ms; times below count from then",
        "  topic     =  'a'",
        "  lifetime  =  2.000 ms",
        "",
        "       0.000 ms  published     by p",
        "       0.000 ms  acknowledged  to p",
        "       0.000 ms  refused       to p: time\ufffdout",
        "       1.000 ms  delivered     to s/1/1 via b, position 7, attempt 2",
        "       1.000 ms  delivered     to s/1/1",
        "",
        "wanted by 2 subscriptions, 1 of which did not get it",
        "  s/1/1  every event  got it at 1.000 ms, 2 times",
        "  s/1/2  every event  did not get it: the event may have expired",
    ]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run().subscribe("s/1/1").publish("p/1/1"), "the trace does not say why"),
        (Run().subscribe("s/1/1").publish("p/1/1", acknowledge=False), "the event was not acknowledged"),
        (Run().subscribe("s/1/1").publish("p/1/1").unsubscribe("s/1/1"), "it was unsubscribed at 2.000 ms"),
        (Run().subscribe("s/1/1", confirm=False).publish("p/1/1"), "it was never confirmed"),
        (Run().subscribe("s/1/1").miss("s/1/1", count=3).publish("p/1/1"), "the trace does not say why"),
        (
            Run().subscribe("s/1/1").publish("p/1/1").miss("s/1/1", count=3, reason="overflow"),
            "its owner was told of 3 missed events (overflow) at 2.000 ms",
        ),
        (
            Run().subscribe("s/1/1").miss("s/1/1").publish("p/1/1").confirm("s/1/1"),
            "its owner was told that its broker had lost it (forgotten) before that; it was confirmed only at 2.000 ms",
        ),
        (
            Run().subscribe("s/1/1").miss("s/1/1").confirm("s/1/1").publish("p/1/1").fault("s").unsubscribe("s/1/1"),
            "s crashed at 2.000 ms; it was unsubscribed at 3.000 ms",
        ),
    ],
)
def test_a_story_says_why_somebody_did_not_get_the_event(run: Run, reason: str) -> None:
    assert fates(run) == [
        "wanted by 1 subscription, 1 of which did not get it",
        f"  s/1/1  every event  did not get it: {reason}",
    ]


@pytest.mark.parametrize(
    "run",
    [
        Run().publish("p/1/1"),
        Run().subscribe("s/1/1", filter="x > 1").publish("p/1/1", x=1),
        Run().publish("p/1/1").subscribe("s/1/1"),
        Run().subscribe("s/1/1").fault("s").publish("p/1/1"),
        Run().subscribe("s/1/1").unsubscribe("s/1/1").publish("p/1/1"),
    ],
)
def test_who_was_not_there_or_does_not_match_did_not_want_it(run: Run) -> None:
    assert fates(run) == ["No subscription that was there at the time wanted it."]


def test_deliveries_that_nobody_asked_for_are_told() -> None:
    run = (
        Run()
        .subscribe("s/1/1", filter="x > 1")
        .publish("p/1/1", x=1)
        .deliver("s/1/1", "p/1/1")
        .deliver("t/1/1", "p/1/1")
    )
    assert fates(run) == [
        "No subscription that was there at the time wanted it.",
        "  s/1/1  x > 1  got it at 2.000 ms, though it did not wait for it then",
        "  t/1/1  ?      got it at 3.000 ms, though nobody asked for that",
    ]


def test_an_event_from_nowhere_has_a_story() -> None:
    run = Run().subscribe("s/1/1").hop("b1", "s", "p/1/1").deliver("s/1/1", "p/1/1")
    assert told(run) == [
        "event p/1/1 in run hand/1 (tree)",
        "",
        "Nobody published it, as far as the trace tells; times are from 2.000 ms on.",
        "",
        "       0.000 ms  b1 -> s    Forward (message 2)",
        "       1.000 ms  delivered  to s/1/1",
        "",
        "delivered to",
        "  s/1/1  every event  got it at 1.000 ms, though it did not wait for it then",
    ]


def test_an_event_that_was_published_twice_says_so() -> None:
    run = Run().publish("p/1/1", acknowledge=False).subscribe("s/1/1").publish("p/1/1", acknowledge=False)
    assert told(run)[2:6] == [
        "published by p at 0.000 ms; times below count from then",
        "",
        "       0.000 ms  published  by p",
        "       3.000 ms  published  by p",
    ]


def test_an_unknown_event_suggests_ids_that_are_close() -> None:
    run = Run().publish(*(f"feed/1/{n}" for n in range(1, 30)), "other/1/1")
    with pytest.raises(UnknownEvent) as caught:
        told(run, "fed/1/17")
    assert caught.value.close[0] == "feed/1/17"
    assert str(caught.value).startswith("the trace has no event 'fed/1/17'; did you mean feed/1/17 or ")
    with pytest.raises(UnknownEvent, match=r"^the trace has no event 'zzz'$"):
        told(run, "zzz")


def test_close_ids_are_found_late_in_a_long_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story_module, "IDS_KEPT", 5)
    run = Run().publish(*(f"other/1/{n}" for n in range(9)), "feed/1/1", "feed/1/2")
    with pytest.raises(UnknownEvent) as caught:
        told(run, "feed/1/3")
    assert sorted(caught.value.close) == ["feed/1/1", "feed/1/2"]


@given(st.binary(min_size=30, max_size=120))
def test_every_event_of_any_run_has_a_story(source: bytes) -> None:
    run = Run()
    run.rows = PerfectRun(source).rows
    for row in run.rows:
        if isinstance(row, Published):
            lines = told(run, row.event)
            got = {r.subscription for r in run.rows if isinstance(r, Delivered) and r.event == row.event}
            assert {line.split()[0] for line in lines if "  got it at" in line} == got


def test_a_summary_counts_and_measures() -> None:
    run = Run(replace(HEADER, seed=7, sampled=True)).subscribe("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1")
    run.publish("p/1/2").deliver("s/1/1", "p/1/9").deliver("s/1/1", "p/1/2", attempt=2).deliver("s/1/1", "p/1/2")
    assert summary(run.header, run.rows) == [
        "run hand/1, system tree, seed 7, sampled",
        "from 0.000 to 9.000 ms",
        "",
        "           2  published",
        "           2  acknowledged",
        "           1  subscribed",
        "           1  confirmed",
        "           4  delivered",
        "",
        "deliveries: 4, subscriptions that got any: 1",
        "from publication to delivery: p50 2.000 ms, p99 4.000 ms, max 4.000 ms",
    ]


def test_a_summary_of_nothing_is_short() -> None:
    header = Header(run="r", system="tree")
    assert summary(header, []) == [
        "run r, system tree, seed 0", "empty", "", "", "deliveries: 0, subscriptions that got any: 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "p50", "p99"), [(1, 1, 1), (2, 1, 2), (100, 50, 99), (101, 51, 100), (1000, 500, 990)]
)
def test_percentiles_are_nearest_ranks(count: int, p50: int, p99: int) -> None:
    assert (percentile(range(1, count + 1), 0.50), percentile(range(1, count + 1), 0.99)) == (p50, p99)


def test_who_did_not_get_it_in_time_is_told_where_it_expired() -> None:
    run = Run().subscribe("s/1/1", "t/1/1").publish("p/1/1", lifetime=2 * MS)
    run.add(Expired(t=run.t, event="p/1/1", subscription="s/1/1", subscriber="s", node="b1"))
    run.add(Expired(t=run.t, event="p/1/1", subscription="s/1/1", subscriber="s", node="s"))
    lines = told(run)
    assert [line.split("ms", 1)[1].strip() for line in lines[7:9]] == [
        "expired       at b1, for s/1/1",
        "expired       at s, for s/1/1",
    ]
    assert lines[-2:] == [
        "  s/1/1  every event  did not get it: at b1, it had expired at 2.000 ms",
        "  t/1/1  every event  did not get it: the event may have expired",
    ]
