"""A subscription at its client, against the obvious model: a list of what was handed over and not consumed."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.node import InvariantBroken
from holdfast.protocols.sessions import incoming
from holdfast.protocols.sessions.incoming import IncomingSubscription, SubscriptionPhase
from holdfast.protocols.sessions.messages import Overflow

STEP = st.one_of(
    st.tuples(st.just("take"), st.sampled_from(["p", "q"]), st.integers(0, 1)),  # a new event, or an old one again
    st.tuples(st.just("take"), st.sampled_from(["p", "q"]), st.just(1)),
    st.tuples(st.just("consume"), st.just(""), st.integers(0, 5)),
    st.tuples(st.just("skip"), st.just(""), st.integers(-2, 4)),
    st.tuples(st.just("forget"), st.just(""), st.just(0)),
    st.tuples(st.just("report"), st.just(""), st.just(0)),
)


def make(window: int = 1000) -> IncomingSubscription:
    subscription = IncomingSubscription(1, 1, "n > 0", Overflow.DISCONNECT, window)
    subscription.phase = SubscriptionPhase.LIVE
    return subscription


def take(subscription: IncomingSubscription, publisher: str, sequence: int, incarnation: int = 1) -> bool:
    """Whether the application is to have the event."""
    return not subscription.take([(publisher, incarnation, sequence, 1)])


@given(steps=st.lists(STEP, min_size=12, max_size=40))
@settings(max_examples=150)
def test_a_subscription_counts_as_the_model_does(steps: list[tuple[str, str, int]]) -> None:
    subscription = make()
    received = 0
    waiting: list[int] = []  # numbers of this session that were handed over and not consumed
    older = 0  # and how many of sessions before
    reported = (0, 0)
    last: dict[str, int] = {}  # the newest sequence that was handed over
    replayed: dict[str, int] = {}  # the next old sequence that a broker that forgot may send again
    for step, publisher, argument in steps:
        match step:
            case "take":
                new = argument == 1 or replayed.get(publisher, 0) >= last.get(publisher, 0)
                sequence = (
                    last.get(publisher, 0) + 1 if new else replayed[publisher] + 1 if publisher in replayed else 0
                )
                if sequence == 0:
                    continue
                received += 1
                assert take(subscription, publisher, sequence) == new
                if new:
                    last[publisher] = sequence
                    replayed[publisher] = sequence
                    waiting.append(received)
                else:
                    replayed[publisher] = sequence
            case "consume":
                subscription.consume(argument)
                before = min(argument, older)
                older -= before
                del waiting[: argument - before]
            case "skip":
                count = max(0, argument)
                assert subscription.skip(received + argument) == count
                received += count
            case "forget":
                subscription.forgotten(True)
                assert subscription.phase is SubscriptionPhase.MAKING
                subscription.phase = SubscriptionPhase.LIVE
                older += len(waiting)
                received, waiting, reported = 0, [], (0, 0)
                replayed = dict.fromkeys(last, 0)
            case "report":
                subscription.reported()
                reported = (subscription.received, subscription.consumed)
        consumed = waiting[0] - 1 if waiting else received
        assert (subscription.received, subscription.consumed) == (received, consumed)
        quarter = subscription.window // 4
        assert subscription.urgent == (received - reported[0] >= quarter or consumed - reported[1] >= quarter)
        subscription.check_invariants()


def test_a_subscription_that_is_not_made_again_is_forgotten() -> None:
    subscription = make()
    subscription.forgotten(False)
    assert subscription.phase is SubscriptionPhase.FORGOTTEN


@pytest.mark.parametrize("window", [1, 2, 3, 4, 8])
def test_a_quarter_of_the_window_but_at_least_one_event_is_urgent(window: int) -> None:
    subscription = make(window)
    quarter = max(1, window // 4)
    for n in range(1, quarter + 1):
        assert not subscription.urgent
        take(subscription, "p", n)
    seen = [subscription.urgent]
    subscription.reported()
    seen.append(subscription.urgent)
    subscription.consume(quarter)
    seen.append(subscription.urgent)
    assert seen == [True, False, True]


@pytest.mark.parametrize("flag", ["gap", "asked"])
def test_a_gap_and_a_question_are_urgent_until_they_are_reported(flag: str) -> None:
    subscription = make()
    setattr(subscription, flag, True)
    assert subscription.urgent
    subscription.reported()
    assert not subscription.urgent


def test_an_event_that_fills_a_gap_ends_it_and_so_does_a_new_beginning() -> None:
    def gap_after(step: Callable[[IncomingSubscription], object]) -> bool:
        subscription = make()
        take(subscription, "p", 1)
        subscription.gap = True
        step(subscription)
        return subscription.gap

    assert not gap_after(lambda subscription: take(subscription, "p", 2))
    assert gap_after(lambda subscription: subscription.skip(1))
    assert not gap_after(lambda subscription: subscription.skip(2))
    assert not gap_after(lambda subscription: subscription.forgotten(True))


def test_incarnations_of_a_publisher_are_told_apart() -> None:
    subscription = make()
    assert take(subscription, "p", 5, incarnation=1)
    subscription.forgotten(True)
    assert not take(subscription, "p", 4, incarnation=1)
    assert take(subscription, "p", 1, incarnation=2)


def test_as_many_publishers_are_remembered_as_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "PUBLISHERS_MAX", 3)
    subscription = make()
    for name in "abcd":
        take(subscription, name, 1)
    assert list(subscription._seen) == [("b", 1), ("c", 1), ("d", 1)]


@pytest.mark.parametrize("field", ["consumed", "_runs", "window"])
def test_an_invariant_that_does_not_hold_is_found(field: str) -> None:
    subscription = make(4)
    for n in range(3):
        take(subscription, "p", n + 1)
    subscription.check_invariants()
    if field == "_runs":
        subscription._runs[0][0] = 4
    else:
        setattr(subscription, field, {"consumed": 4, "window": 2}[field])
    with pytest.raises(InvariantBroken):
        subscription.check_invariants()
