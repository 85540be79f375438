"""Events that expire: never handed over after their deadline, counted, and no gap in anyone's numbers (D1-A4)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import Append, Disconnect
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.model.event import (
    DEADLINE_MAX,
    Event,
    EventBytes,
    deadlines_in,
    encode_batch,
    encode_event,
)
from holdfast.protocols.core import commands
from holdfast.protocols.core.backlog import Run, batch_of
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.lifetimes import RUNS_MAX, Deadlines, Outcomes
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.outputs import Answered, Expired, Freed, Logged, Woken
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions import messages, requests
from holdfast.protocols.sessions.messages import Deliver, Dropped, Overflow, Progress, Subscribed
from tests.sessions.bench import WALL, BrokerBench, ClientBench, event, sent, shown
from tests.sessions.test_core import A, B, kept, opened, publish, subscribe

EVENTS_MAX = 5


def mortal(n: int, lifetime: int = 1 * SECOND, publisher: str = "p", at: int = WALL) -> EventBytes:
    return encode_event(Event(publisher, 1, n, "", {"n": n}, b"", at, lifetime))


# ---------------------------------------------------------------------------------------------------------- deadlines
@pytest.mark.parametrize(
    ("published_at", "lifetime", "deadline"),
    [(5, 0, 0), (5, 7, 12), (0, 7, 7), (2**64 - 1, 2**64 - 1, DEADLINE_MAX), (5, -9, 1), (-(2**63), 1, 1)],
)
def test_a_deadline_is_publication_plus_lifetime_and_fits_into_what_is_kept(
    published_at: int, lifetime: int, deadline: int
) -> None:
    """D1-A4. A publisher may say anything; 0 is for ever, and no other deadline is taken for that."""
    one = Event("p", 1, 2, "t", {"n": 1}, b"x", published_at, lifetime)
    assert one.deadline == deadline
    assert EventBatch.of([encode_event(one)]).deadlines == ([deadline] if deadline else None)
    assert deadlines_in(encode_batch([encode_event(one)])) == ([deadline] if deadline else [])


def test_a_range_without_lifetimes_has_no_deadlines() -> None:
    assert deadlines_in(encode_batch([event(1), event(2)])) == []
    assert deadlines_in(encode_batch([event(1), mortal(2, 1)])) == [0, WALL + 1]
    # Short forms that other encoders may write.
    assert deadlines_in(msgspec.Raw(msgspec.msgpack.encode([["p", 1, 1, "", {}]]))) == []


# ----------------------------------------------------------------------------------- one subscription, and its model
class Model:
    """A list of what is kept, (number, deadline), and what became of the rest."""

    def __init__(self) -> None:
        self.last = 0
        self.kept: list[tuple[int, int]] = []
        self.expired: list[int] = []
        self.outcomes = Outcomes()
        self.received = 0

    def add(self, deadline: int) -> None:
        self.last += 1
        self.kept.append((self.last, deadline))
        if len(self.kept) > EVENTS_MAX:
            del self.kept[0]
            self.outcomes.dropped += 1

    def receive(self, number: int) -> None:
        before = len(self.kept)
        self.kept = [(n, deadline) for n, deadline in self.kept if n > number]
        self.outcomes.on_time += before - len(self.kept)
        self.received = max(self.received, min(number, self.last))

    def expire(self, before: int) -> list[int]:
        gone = []
        while self.kept and 0 < self.kept[0][1] <= before:
            gone.append(self.kept.pop(0)[0])
        self.expired += gone
        self.outcomes.expired += len(gone)
        return gone


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([0, 0, 3, 5, 9])),
        st.tuples(st.just("receive"), st.integers(0, 20)),
        st.tuples(st.just("expire"), st.sampled_from([2, 3, 7, 9])),
        st.tuples(st.just("restore"), st.just(0)),
    ),
    min_size=10,
    max_size=50,
)


@given(steps=STEPS)
@settings(max_examples=300)
def test_what_expired_leaves_a_subscription_in_order_and_is_remembered_until_it_is_confirmed(
    steps: list[tuple[str, int]],
) -> None:
    ring, model = Subscription("client:c", 1, Filter("n > 0"), Overflow.DROP_OLDEST, 3), Model()
    for step, argument in steps:
        match step:
            case "add":
                model.add(argument)
                assert ring.add(Run(EventBatch.of([event(model.last)])), EVENTS_MAX, 100_000)
                if argument:
                    ring.perish([(model.last, argument)])
            case "receive":
                model.receive(argument)
                ring.receive(argument)
            case "expire":
                gone = model.expire(argument)
                assert ring.has_expired(argument) == bool(gone)
                assert batch_of(ring.expire(argument)).ids == [f"p/1/{n}" for n in gone]
            case "restore":
                ring = Subscription.from_state(ring.get_state())
        ring.check_invariants(EVENTS_MAX)
        assert (len(ring), ring.last) == (len(model.kept), model.last)
        assert ring.outcomes == model.outcomes
        missing = [n for n in model.expired if n > model.received]
        runs = ring.expired_runs(model.received, ring.first_kept - 1)
        dropped = Dropped(1, 0, runs)
        assert dropped.expired_between(model.received, ring.first_kept - 1) == len(missing)
        assert all(dropped.expired_between(n - 1, n) == 1 for n in missing)


def test_what_is_remembered_of_expired_events_is_bounded() -> None:
    deadlines = Deadlines()
    for n in range(1, 4 * RUNS_MAX, 2):  # never two in a row
        deadlines.add([(n, 5)])
        deadlines.expire(n, 1)
        deadlines.check_invariants(n + 1, n + 1)
    assert len(deadlines.runs(0, 10**6)) == 2 * RUNS_MAX


def test_late_events_are_those_that_the_client_counts_and_each_counts_once() -> None:
    ring = Subscription("client:c", 1, Filter(""), Overflow.DISCONNECT, 3)
    for n in range(1, 7):
        ring.add(Run(EventBatch.of([event(n)])), 99, 10_000)
    ring.receive(2, 1)
    ring.receive(2, 1)  # said again
    assert ring.outcomes == Outcomes(on_time=1, expired=1)
    ring.receive(4, 3)
    assert ring.outcomes == Outcomes(on_time=1, expired=3)
    ring.receive(5, 99)  # no more than there were
    assert ring.outcomes == Outcomes(on_time=1, expired=4)
    again = Subscription.from_state(ring.get_state())
    again.receive(6, 4)
    assert again.outcomes == Outcomes(on_time=2, expired=4)


def test_reliability_is_the_share_of_what_came_on_time() -> None:
    """D1-B10, as far as a broker can know it; where nothing was wanted nothing was lost."""
    assert Outcomes().on_time_per_mille == 1_000
    assert Outcomes(on_time=2, expired=1).on_time_per_mille == 666
    assert Outcomes(on_time=1, expired=1, dropped=2).on_time_per_mille == 250


# ----------------------------------------------------------------------------------------------------------- the core
def test_who_wants_an_event_that_has_expired_when_it_is_accepted_does_not_get_it() -> None:
    core = opened(A, B)
    core.apply(core.number + 1, WALL, subscribe(A, 1))
    events = encode_batch([mortal(1), event(2), mortal(3, 2 * SECOND), mortal(-4)])
    outputs = core.apply(core.number + 1, WALL + SECOND, publish(B, 1, events))
    wanted = core.sessions[A].subscriptions[1]
    answered, expired, woken = outputs
    assert answered == Answered(B)
    assert isinstance(expired, Expired)
    assert expired.subscription is wanted
    assert [bytes(data) for data in expired.batch.slices] == [bytes(mortal(1))]
    assert isinstance(woken, Woken)
    assert kept(core, A, 1) == [(1, 2), (2, 3)], "numbers have no gaps"
    assert core.sessions[B].accepted == 4, "its publisher did nothing wrong"
    assert core.register.outcomes() == Outcomes(expired=1)


def test_an_event_lives_until_its_deadline_and_not_at_it() -> None:
    for wall, count in ((WALL + SECOND - 1, 1), (WALL + SECOND, 0)):
        core = opened(A, B)
        core.apply(core.number + 1, WALL, subscribe(A, 1))
        core.apply(core.number + 1, wall, publish(B, 1, encode_batch([mortal(1)])))
        assert len(core.sessions[A].subscriptions[1]) == count


def test_an_expired_event_has_its_place_in_the_log() -> None:
    core = opened(A, B, log=True)
    outputs = core.apply(core.number + 1, WALL + SECOND, publish(B, 1, encode_batch([mortal(1), event(2)])))
    (logged,) = [output for output in outputs if isinstance(output, Logged)]
    assert (logged.first, len(logged.batch)) == (1, 2)


def test_what_expires_at_the_head_goes_and_what_expires_behind_it_waits() -> None:
    core = opened(A, B)
    core.apply(core.number + 1, WALL, subscribe(A, 1))
    events = encode_batch([mortal(1), mortal(2, 9 * SECOND), mortal(3), event(4)])
    core.apply(core.number + 1, WALL, publish(B, 1, events))
    outputs = core.apply(core.number + 1, WALL, commands.ExpireEvents("", WALL + SECOND))
    assert [type(output) for output in outputs] == [Expired, Woken]
    assert kept(core, A, 1) == [(2, 2), (3, 3), (4, 4)]
    core.apply(core.number + 1, WALL, commands.ExpireEvents("", WALL + 9 * SECOND))
    assert kept(core, A, 1) == [(4, 4)], "those behind it have their turn"
    assert core.register.outcomes() == Outcomes(expired=3)
    core.check_invariants()


def test_what_expires_makes_room_for_publishers_that_wait() -> None:
    core = opened(A, B, limits=CoreLimits(backlog_events=4))
    core.apply(core.number + 1, WALL, subscribe(A, 1, Overflow.BLOCK))
    core.apply(core.number + 1, WALL, publish(B, 1, encode_batch([mortal(n) for n in range(1, 5)])))
    assert core.crowding.possibly_full(1, 10)
    outputs = core.apply(core.number + 1, WALL, commands.ExpireEvents("", WALL + SECOND))
    assert outputs[-1] == Freed()
    assert not core.crowding.possibly_full(1, 10)
    core.check_invariants()


def test_what_became_of_events_outlives_their_subscription() -> None:
    core = opened(A, B)
    core.apply(core.number + 1, WALL, subscribe(A, 1))
    core.apply(core.number + 1, WALL, publish(B, 1, encode_batch([mortal(1), mortal(2), event(3)])))
    epoch = core.sessions[A].epoch
    core.apply(core.number + 1, WALL, commands.Receive(A, epoch, (1,), (2,), (1,)))
    core.apply(core.number + 1, WALL, commands.Unsubscribe(A, epoch, 1))
    assert core.register.outcomes() == Outcomes(on_time=1, expired=1)
    assert not core.register.perishing
    copy = BrokerCore()
    copy.set_state(core.get_state())
    assert copy.register.outcomes() == core.register.outcomes()


def test_a_subscription_with_deadlines_that_is_not_listed_is_found() -> None:
    core = opened(A, B)
    core.apply(core.number + 1, WALL, subscribe(A, 1))
    core.apply(core.number + 1, WALL, publish(B, 1, encode_batch([mortal(1)])))
    core.check_invariants()
    core.register.perishing.clear()
    with pytest.raises(InvariantBroken, match="deadlines"):
        core.check_invariants()


# ------------------------------------------------------------------------------------------------- the broker's node
def broker(**settings: Any) -> BrokerBench:
    bench = BrokerBench(**settings)
    bench.open("s", messages.Subscribe(1, "n > 0", Overflow.DISCONNECT, 2))
    bench.open("p")
    return bench


def say(bench: BrokerBench, *events: EventBytes, first: int = 1) -> list[Any]:
    return bench.say("p", messages.Publish(first, encode_batch(list(events))))


def outcomes(bench: BrokerBench) -> dict[str, int]:
    names = ("events_on_time_total", "events_expired_total", "events_dropped_total", "on_time_of_arrived_per_mille")
    measured = bench.node.measure()
    return {name.removeprefix("events_").removesuffix("_total"): measured[name] for name in names}


def test_a_client_is_told_which_numbers_it_need_not_wait_for() -> None:
    bench = broker()
    rows = say(bench, *(mortal(n) for n in range(1, 5)), event(5))
    assert sent(rows, "client:s") == [("Deliver", [(1, 1, 1), (1, 2, 2)])], "it has room for two"
    told = [row for row in sent(shown(bench.advance(2 * SECOND)), "client:s") if isinstance(row, Dropped)]
    assert told == [Dropped(1, 4, (3, 4))]
    rows = bench.say("s", Progress((1,), (4,), (4,)))
    assert sent(rows, "client:s") == [("Deliver", [(1, 5, 5)])]


def test_what_expires_is_given_up_a_moment_later_so_that_clients_can_say_that_they_have_it() -> None:
    bench = broker(expire_after=2 * SECOND)
    say(bench, mortal(1), mortal(2))
    bench.advance(2 * SECOND)
    bench.say("s", Progress((1,), (1,), (1,)))
    assert outcomes(bench) == {"on_time": 1, "expired": 0, "dropped": 0, "on_time_of_arrived_per_mille": 1_000}
    bench.advance(2 * SECOND)
    assert outcomes(bench) == {"on_time": 1, "expired": 1, "dropped": 0, "on_time_of_arrived_per_mille": 500}


def test_what_waits_for_a_client_that_is_away_expires_too_and_a_restart_remembers() -> None:
    bench = broker(durable=True)
    bench.handle(bench.down("s"))
    say(bench, mortal(1), event(2))
    effects = bench.advance(4 * SECOND)
    records = [effect.record for effect in effects if isinstance(effect, Append)]
    expiries = [c for r in records if isinstance(r, commands.Applied) for c in r.commands]
    assert expiries == [commands.ExpireEvents("", WALL + SECOND)]
    assert outcomes(bench)["expired"] == 1


def test_time_that_passes_without_anything_to_expire_costs_no_command() -> None:
    bench = broker(durable=True)
    say(bench, event(1), mortal(2, 3600 * SECOND))
    assert not [effect for effect in bench.advance(30 * SECOND) if isinstance(effect, Append)]


def test_late_events_are_told_in_as_many_counts_as_subscriptions_or_not_at_all() -> None:
    bench = broker()
    say(bench, mortal(1))
    bench.say("s", Progress((1,), (1,), (1,), late=(1,)))
    assert outcomes(bench) == {"on_time": 0, "expired": 1, "dropped": 0, "on_time_of_arrived_per_mille": 0}
    (closed,) = bench.say("s", Progress((1,), (1,), (1,), late=(1, 1)))
    assert isinstance(closed, Disconnect)
    assert "late" in closed.reason


# --------------------------------------------------------------------------------------------------------- the client
def client(window: int = 100) -> ClientBench:
    bench = ClientBench()
    bench.open()
    bench.ask(requests.MakeSubscription("n > 0", Overflow.DISCONNECT, window))
    bench.say(Subscribed(1))
    return bench


def come(*events: EventBytes, first: int = 1) -> Deliver:
    return Deliver([(1, first, len(events))], encode_batch(events))


def expired(count: int) -> tuple[Any, ...]:
    return ("complete", requests.UNSOLICITED, requests.EventsExpired(1, count))


def test_what_comes_after_its_deadline_is_not_handed_over_and_counted() -> None:
    bench = client()
    bench.out.wall = WALL + SECOND
    rows = bench.say(come(mortal(1, 2 * SECOND), mortal(2), event(3), mortal(4, SECOND + 1), mortal(5, SECOND - 1)))
    assert rows == [("deliver", 1, [1, 3, 4]), expired(2)]


def test_what_comes_too_late_makes_room_as_if_it_were_consumed() -> None:
    bench = client(window=4)
    bench.out.wall = WALL + SECOND
    assert sent(bench.say(come(*(mortal(n) for n in range(1, 5)))), "b1") == [Progress((1,), (4,), (4,), late=(4,))]
    rows = bench.say(come(event(5), mortal(6), first=5))
    assert sent(rows, "b1") == [Progress((1,), (6,), (4,), late=(5,))], "what is handed over waits to be consumed"
    assert sent(bench.ask(requests.Consume(1, 1)), "b1") == [Progress((1,), (6,), (6,), late=(5,))]


def test_a_clock_that_is_wrong_makes_events_live_longer_or_shorter() -> None:
    """The assumption of D1-A4 is that clocks agree; a skew is what they are wrong by, and no more."""
    for skew, delivered in ((-SECOND, True), (SECOND, False)):
        bench = client()
        bench.out.wall = WALL + SECOND // 2 + skew
        assert (("deliver", 1, [1]) in bench.say(come(mortal(1)))) == delivered


def test_an_event_that_its_application_had_before_does_not_count_as_expired() -> None:
    bench = client()
    bench.say(come(mortal(1)))
    bench.handle(bench.down())
    bench.advance(2 * SECOND)
    bench.open(epoch=6, memory=10)
    bench.say(Subscribed(1))
    assert bench.say(come(mortal(1), mortal(2))) == [expired(1)]


def test_numbers_that_expired_at_the_broker_are_no_loss_for_want_of_room() -> None:
    bench = client()
    bench.say(come(event(1)))
    missed = requests.EventsMissed(1, 2, "overflow")
    assert bench.say(Dropped(1, 7, (1, 2, 4, 5, 7, 7))) == [expired(4), ("complete", requests.UNSOLICITED, missed)]
    assert bench.say(Dropped(1, 9, (8, 9))) == [expired(2)]
    assert not [row for row in bench.say(Dropped(1, 9, (8, 9))) if row[0] == "complete"], "said again"
    bench.advance(MILLISECOND * 50)


def test_half_a_run_is_a_breach_of_protocol() -> None:
    bench = client()
    (closed,) = bench.say(Dropped(1, 3, (1,)))
    assert isinstance(closed, Disconnect)
    assert "half" in closed.reason
