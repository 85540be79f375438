"""Real-time reliability of a run, against its definition over all rows at once (D1-A4, D1-B10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast import Filter
from holdfast.trace.reliability import Reliability, ReliabilityMeter, measure_reliability, told, total
from holdfast.trace.schema import Confirmed, Delivered, Fault, Published, Row, Subscribed, Unsubscribed
from tests.trace.perfect import PerfectRun
from tests.trace.runs import MS, Run, owner


def by_definition(rows: Sequence[Row], subscribed: Subscribed, end: int) -> tuple[int, int]:
    """(of interest and decided, on time): quadratic, and a sentence of the definition a line."""
    id, at = subscribed.subscription, rows.index(subscribed)
    confirmed = [n for n, row in enumerate(rows) if isinstance(row, Confirmed) and row.subscription == id and n > at]
    ends = [
        n
        for n, row in enumerate(rows)
        if n > at
        and (
            (isinstance(row, Unsubscribed) and row.subscription == id)
            or (isinstance(row, Fault) and row.state == "crashed" and row.component == subscribed.subscriber)
        )
    ]
    over = ends[0] if ends else len(rows)
    until = rows[over].t if ends else end
    wanted = on_time = 0
    for n, event in enumerate(rows):
        if not isinstance(event, Published) or not confirmed or not confirmed[0] < n < over:
            continue
        if not Filter(subscribed.filter).matches(event.attributes, event.topic):
            continue
        if event.lifetime and event.t + event.lifetime > until:
            continue
        wanted += 1
        on_time += any(
            isinstance(row, Delivered)
            and (row.event, row.subscription) == (event.event, id)
            and not (event.lifetime and row.t >= event.t + event.lifetime)
            for row in rows[n:]
        )
    return wanted, on_time


LIFETIMES = st.lists(st.sampled_from([0, 1, 3, 10, 30, 1000]), min_size=1, max_size=8)


@given(st.binary(min_size=60, max_size=300), LIFETIMES)
@settings(max_examples=200)
def test_what_is_measured_is_what_the_definition_says(source: bytes, lifetimes: list[int]) -> None:
    rows: list[Row] = []
    for row in PerfectRun(source).rows:
        if isinstance(row, Subscribed):
            row = replace(row, name="")  # of one with a name, tests of their own
        if isinstance(row, Published):
            lifetime = lifetimes[row.sequence % len(lifetimes)]
            row = Published(
                t=row.t,
                event=row.event,
                publisher=row.publisher,
                incarnation=row.incarnation,
                sequence=row.sequence,
                topic=row.topic,
                attributes=row.attributes,
                lifetime=lifetime,
            )
        rows.append(row)
    for end in (None, rows[-1].t // 2):
        last = rows[-1].t if end is None else end
        measured = {one.subscription: (one.wanted, one.on_time) for one in measure_reliability(rows, end)}
        wanted = {row.subscription: by_definition(rows, row, last) for row in rows if isinstance(row, Subscribed)}
        if end is None:
            assert measured == wanted
        assert all(on_time <= count for count, on_time in measured.values())


def counts(run: Run, end: int | None = None) -> list[tuple[int, int]]:
    return [(one.wanted, one.on_time) for one in measure_reliability(run.rows, end)]


def idle(run: Run, count: int) -> Run:
    for _ in range(count):
        run.fault("b9", "paused")
    return run


def test_events_on_time_are_counted_once_and_late_ones_not() -> None:
    run = Run().subscribe("s/1/1").publish("p/1/1", "p/1/2", "p/1/3", lifetime=8 * MS)
    run.deliver("s/1/1", "p/1/1", "p/1/1")
    idle(run, 9)
    run.deliver("s/1/1", "p/1/2")
    assert counts(run) == [(3, 1)]


def test_at_its_deadline_an_event_is_late() -> None:
    for lifetime, on_time in ((2 * MS, 0), (2 * MS + 1, 1)):
        run = Run().subscribe("s/1/1").publish("p/1/1", lifetime=lifetime).deliver("s/1/1", "p/1/1")
        assert counts(idle(run, 3)) == [(1, on_time)]


def test_events_of_the_last_lifetime_do_not_count() -> None:
    """Right censoring: neither those that came nor those that may still come."""
    run = Run().subscribe("s/1/1").publish("p/1/1", lifetime=5 * MS).deliver("s/1/1", "p/1/1")
    idle(run, 3)
    run.publish("p/1/2", "p/1/3", lifetime=5 * MS).deliver("s/1/1", "p/1/2")
    assert counts(run) == [(1, 1)]
    assert counts(run, end=run.t + 9 * MS) == [(3, 2)]


def test_events_without_a_lifetime_count_to_the_end() -> None:
    assert counts(Run().subscribe("s/1/1").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1")) == [(2, 1)]


def test_what_was_published_while_no_broker_took_it_counts() -> None:
    """The denominator is what was published, not what was accepted."""
    run = Run().subscribe("s/1/1").fault("b1").publish("p/1/1", acknowledge=False)
    assert counts(run) == [(1, 0)]


def test_interest_begins_with_the_first_confirmation_and_lasts_over_a_loss() -> None:
    run = Run().subscribe("s/1/1", confirm=False).publish("p/1/1").confirm("s/1/1").publish("p/1/2")
    run.miss("s/1/1").publish("p/1/3").confirm("s/1/1").publish("p/1/4").deliver("s/1/1", "p/1/1", "p/1/4")
    assert counts(run) == [(3, 1)]


def test_interest_ends_with_the_subscription() -> None:
    run = Run().subscribe("s/1/1", "t/1/1", "u/1/1", confirm=True).publish("p/1/1", lifetime=5 * MS + 1)
    run.deliver("s/1/1", "p/1/1").deliver("t/1/1", "p/1/1").deliver("u/1/1", "p/1/1")
    run.unsubscribe("s/1/1").fault("t").publish("p/1/2")
    idle(run, 5)
    assert counts(run) == [(0, 0), (1, 1), (2, 1)], "what ends before an event's deadline is censored there"


def test_a_name_is_one_subscription_for_all_of_its_owners() -> None:
    """What one owner did not get before it went, and what was published while nobody had it, the next one gets."""
    run = Run().subscribe("s/1/1", name="risk").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1").unsubscribe("s/1/1")
    assert counts(run.publish("p/1/3")) == [(1, 1)], "the rest is kept for whoever comes"
    run.subscribe("t/1/1", name="risk").publish("p/1/4")
    assert counts(run) == [(4, 1)]
    run.deliver("t/1/1", "p/1/2", "p/1/3", attempt=2).deliver("t/1/1", "p/1/4")
    assert counts(run) == [(4, 4)]
    assert counts(run.fault("t").publish("p/1/5")) == [(4, 4)]


def test_who_loses_a_name_to_another_owner_does_not_end_it() -> None:
    run = Run().subscribe("s/1/1", name="risk").subscribe("t/1/1", name="risk").unsubscribe("s/1/1").publish("p/1/1")
    assert counts(run) == [(1, 0)]
    assert counts(run.deliver("t/1/1", "p/1/1")) == [(1, 1)]


def test_a_name_with_another_filter_is_another_one_and_has_still_to_get_what_was_kept() -> None:
    run = Run().subscribe("s/1/1", name="risk", filter="n = 1").publish("p/1/1", n=1).unsubscribe("s/1/1")
    run.subscribe("t/1/1", name="risk", filter="n = 2").publish("p/1/2", n=1).publish("p/1/3", n=2)
    assert counts(run.deliver("t/1/1", "p/1/1", "p/1/3")) == [(1, 1), (1, 1)]


def test_each_filter_has_its_own_interest_and_subscriptions_share_it() -> None:
    run = Run().subscribe("s/1/1", filter="x > 1").subscribe("t/1/1", filter="x > 1").subscribe("u/1/1", filter="x = 1")
    run.publish("p/1/1", x=1).publish("p/1/2", x=2).publish("p/1/3", x=3).deliver("t/1/1", "p/1/2", "p/1/3", "p/1/1")
    assert counts(run) == [(2, 0), (2, 2), (1, 0)]


def test_a_filter_that_is_none_wants_nothing_and_a_ratio_of_nothing_is_none() -> None:
    run = Run().subscribe("s/1/1", filter="no filter (").publish("p/1/1")
    (one,) = measure_reliability(run.rows)
    assert (one.wanted, one.ratio) == (0, None)


def test_an_event_that_no_broker_could_take_is_wanted_by_nobody() -> None:
    run = Run().subscribe("s/1/1").publish("p/1/1", x=float("nan"))
    assert counts(run) == [(0, 0)]


def test_what_each_replica_says_of_a_derived_event_counts_once() -> None:
    run = Run().subscribe("s/1/1")
    for _ in range(3):
        run.add(Published(t=run.t, event="@a/1/1", publisher="@a", incarnation=1, sequence=1, derived=True))
    assert counts(run.deliver("s/1/1", "@a/1/1")) == [(1, 1)]


def test_the_total_weighs_subscriptions_by_what_they_wanted() -> None:
    measured = [Reliability("s/1/1", "s", "", 3, 3), Reliability("t/1/1", "t", "x > 1", 1, 0), _empty("u/1/1")]
    assert total(measured).ratio == pytest.approx(0.75)
    assert total([]).ratio is None
    assert told(measured) == [
        "s/1/1  every event  1.00000  3 of 3 on time",
        "t/1/1  x > 1        0.00000  0 of 1 on time",
        "u/1/1  every event        -  0 of 0 on time",
        "all 3               0.75000  3 of 4 on time",
    ]


def _empty(id: str) -> Reliability:
    return Reliability(id, owner(id), "", 0, 0)


def test_memory_is_a_byte_for_an_event_and_subscription() -> None:
    """What grows with deliveries must be small: experiments have millions of them."""
    meter, run = ReliabilityMeter(), Run().subscribe("s/1/1")
    for n in range(1, 1_001):
        run.publish(f"p/1/{n}", acknowledge=False).deliver("s/1/1", f"p/1/{n}", f"p/1/{n}")
    for row in run.rows:
        meter.see(row)
    (subscription,) = meter._subscriptions.values()
    assert len(subscription.got) == 1_000
