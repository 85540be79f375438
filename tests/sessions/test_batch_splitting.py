"""However a driver cuts the stream of inputs into turns, every destination hears the same.

Lanes are taken apart, and what waits for the disk from what does not, since one overtakes the other. Events are
compared one by one for each subscription, since frames may differ, and of what is cumulative the last word counts.
Links stay up: what a lost one swallows depends on when it is lost.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.broker.any_client import AnyClient
from holdfast.kernel.inputs import Input, LinkUp, Received, Requested, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Complete, Effect, Send
from holdfast.kernel.outbox import Deliver as HandedOver
from holdfast.model.event import slices_of
from holdfast.protocols.core.commands import Applied, LoggedEvents
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.sessions.messages import (
    Accepted,
    CloseSession,
    Deliver,
    Dropped,
    OpenSession,
    Overflow,
    Ping,
    Progress,
    Publish,
    Refusal,
    SessionOpened,
    Subscribe,
    Subscribed,
    SubscribeRefused,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)
from holdfast.protocols.sessions.requests import (
    UNSOLICITED,
    Close,
    Consume,
    EndSubscription,
    MakeSubscription,
    NewEvent,
    PublishEvents,
)
from tests.codec.examples import plain
from tests.sessions.bench import Bench, BrokerBench, ClientBench, batch


class ClientOfAnyScheme(ClientBench):
    def __init__(self) -> None:
        super().__init__(make=AnyClient)


CUTS = st.integers(0, 2**32 - 1).map(lambda bits: [bool(bits >> place & 1) for place in range(32)])


def heard(effects: list[Effect]) -> dict[Any, Any]:
    """What each destination hears: (who, lane or subscription) → what, in order."""
    found: dict[Any, Any] = {}
    for effect in effects:
        if isinstance(effect, Send):
            _hear(found, effect)
        elif isinstance(effect, HandedOver):
            found.setdefault(("application", effect.subscription), []).extend(effect.events)
        elif isinstance(effect, Complete):
            key = "reports" if effect.request == UNSOLICITED else effect.request
            found.setdefault(("application", "answers", key), []).append(effect.result)
        elif isinstance(effect, Append) and isinstance(effect.record, Applied):
            found.setdefault("journal", []).extend(plain(effect.record.commands))
        elif isinstance(effect, Append) and isinstance(effect.record, LoggedEvents):
            events = enumerate(msgspec.msgpack.decode(effect.record.events), effect.record.first)
            found.setdefault("log", []).extend(events)
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Unsubscribe):
            # How far the client was with a subscription that it left concerns no one.
            found.get((effect.to, "progress"), {}).pop(effect.message.subscription, None)
    return {key: what for key, what in found.items() if what}


def _hear(found: dict[Any, Any], send: Send) -> None:
    to, message = send.to, send.message
    match message:
        case Deliver():
            places = [(number, first + place) for number, first, count in message.runs for place in range(count)]
            for (number, place), data in zip(places, slices_of(message.events), strict=True):
                found.setdefault((to, "events", number), []).append((place, bytes(data)))
        case Dropped():
            found.setdefault((to, "events", message.subscription), []).append(("dropped", message.through))
        case Accepted():
            # Refusals are said again until they are confirmed.
            refused = found.get((to, "accepted"), (0, {}))[1] | {number: why for number, *why in message.refused}
            found[to, "accepted"] = (message.sequence, refused)
        case Publish():
            for place, one in enumerate(plain_events(message)):
                found.setdefault((to, "published"), {})[message.first + place] = one
        case Progress():
            said = found.setdefault((to, "progress"), {})
            for number, received, consumed in zip(
                message.subscriptions, message.received, message.consumed, strict=True
            ):
                said[number] = (received, consumed)
        case _:
            found.setdefault((to, send.lane.name, send.after.name), []).append(message)


def plain_events(message: Publish) -> list[Any]:
    decoded: list[Any] = msgspec.msgpack.decode(message.events)
    return decoded


def run(make: Callable[[], Bench], inputs: list[Input], cuts: list[bool]) -> dict[Any, Any]:
    bench = make()
    effects: list[Effect] = []
    turn: list[Input] = []
    for place, one in enumerate(inputs):
        turn.append(one)
        if cuts[place % len(cuts)]:
            effects += bench.handle(*turn)
            turn = []
    effects += bench.handle(*turn)
    return heard(effects)


def same_in_any_cut(make: Callable[[], Bench], inputs: list[Input], cuts: list[bool]) -> None:
    one_by_one = run(make, inputs, [True])
    assert run(make, inputs, cuts) == one_by_one
    assert run(make, inputs, [False]) == one_by_one


# ----------------------------------------------------------------------------------------------------------- broker
NAMES = ("a", "b", "c")
LIMITS = CoreLimits(backlog_events=4, backlog_bytes=100_000)
number = st.integers(1, 2)

client_step = st.one_of(
    st.tuples(st.just("subscribe"), number, st.sampled_from(["n > 0", "n > 3"]), st.sampled_from(Overflow)),
    st.tuples(st.just("unsubscribe"), number),
    st.tuples(st.just("publish"), st.lists(st.integers(1, 6), min_size=1, max_size=4)),
    st.tuples(st.just("publish"), st.lists(st.integers(1, 6), min_size=1, max_size=4)),
    st.tuples(st.just("publish again"), st.lists(st.integers(1, 6), min_size=1, max_size=4)),
    st.tuples(st.just("publish badly"), st.just(0)),
    st.tuples(st.just("progress"), number, st.integers(0, 5)),
    st.tuples(st.just("progress"), number, st.integers(0, 5)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("ping"), st.just(0)),
)
broker_steps = st.lists(st.tuples(st.sampled_from(NAMES), client_step), min_size=12, max_size=30)


def broker_inputs(steps: list[tuple[str, Any]]) -> list[Input]:
    """Three clients that open sessions, and then say what the steps say; each number of an event is given once."""
    inputs: list[Input] = []
    links = {name: link for link, name in enumerate(NAMES, 1)}
    for name, link in links.items():
        inputs.append(LinkUp(link, f"client:{name}", 1, Role.CLIENT, False))
        inputs.append(Received(link, f"client:{name}", [OpenSession(1)]))
    published = dict.fromkeys(NAMES, 0)
    for name, (what, *of) in steps:
        said: Message
        match what:
            case "subscribe":
                said = Subscribe(of[0], of[1], of[2], 3)
            case "unsubscribe":
                said = Unsubscribe(of[0])
            case "publish" | "publish again":
                first = published[name] + 1 if what == "publish" else max(1, published[name])
                said = Publish(first, batch(*of[0], publisher=name))
                published[name] = max(published[name], first + len(of[0]) - 1)
            case "publish badly":
                published[name] += 1
                said = Publish(published[name], batch(1, m=float("nan")))
            case "progress":
                said = Progress((of[0],), (of[1],), (of[1],))
            case "close":
                said = CloseSession()
            case _:
                said = Ping()
        inputs.append(Received(links[name], f"client:{name}", [said]))
    return inputs


@pytest.mark.parametrize("durable", [False, True])
@given(steps=broker_steps, cuts=CUTS)
@settings(max_examples=150)
def test_clients_hear_the_same_from_a_broker(durable: bool, steps: list[tuple[str, Any]], cuts: list[bool]) -> None:
    same_in_any_cut(lambda: BrokerBench(LIMITS, durable), broker_inputs(steps), cuts)


def test_the_comparison_sees_a_difference() -> None:
    steps = [("a", ("subscribe", 1, "n > 0", Overflow.DISCONNECT)), ("b", ("publish", [1, 2]))]
    inputs = broker_inputs(steps)
    whole = run(lambda: BrokerBench(LIMITS), inputs, [True])
    assert whole["client:a", "events", 1]
    assert run(lambda: BrokerBench(LIMITS), inputs[:-1], [True]) != whole


# ----------------------------------------------------------------------------------------------------------- client
broker_step = st.one_of(
    st.tuples(st.just("make"), st.integers(2, 8)),
    st.tuples(st.just("confirm"), number),
    st.tuples(st.just("refuse"), number),
    st.tuples(st.just("over"), number),
    st.tuples(st.just("ended"), number),
    st.tuples(st.just("deliver"), number, st.integers(1, 3)),
    st.tuples(st.just("deliver"), number, st.integers(1, 3)),
    st.tuples(st.just("dropped"), number, st.integers(0, 5)),
    st.tuples(st.just("consume"), number, st.integers(1, 3)),
    st.tuples(st.just("end"), number),
    st.tuples(st.just("publish"), st.integers(1, 4)),
    st.tuples(st.just("close"), st.just(0)),
)


def client_inputs(steps: list[tuple[Any, ...]]) -> list[Input]:
    inputs: list[Input] = [
        Started(1),
        LinkUp(1, "b1", 1, Role.BROKER, True, "a:1", "tree"),
        Received(1, "b1", [SessionOpened(5, 0, 100, 9)]),
    ]
    delivered: dict[int, int] = {1: 0, 2: 0}
    requested = 0
    for what, argument, *more in steps:
        said: Message | None = None
        asked: Any = None
        match what:
            case "make":
                asked = MakeSubscription("n > 0", Overflow.DISCONNECT, 1000)
            case "confirm":
                said = Subscribed(argument)
            case "refuse":
                said = SubscribeRefused(argument, Refusal.LIMIT, "no")
            case "over":
                said = Unsubscribed(argument)
            case "ended":
                said = SubscriptionEnded(argument, "overflow")
            case "deliver":
                places = list(range(delivered[argument] + 1, delivered[argument] + 1 + more[0]))
                delivered[argument] += more[0]
                said = Deliver([(argument, places[0], more[0])] if places else [], batch(*places))
            case "dropped":
                said = Dropped(argument, more[0])
            case "consume":
                asked = Consume(argument, more[0])
            case "end":
                asked = EndSubscription(argument)
            case "publish":
                asked = PublishEvents([NewEvent({"n": n}) for n in range(argument)])
            case _:
                asked = Close()
        if said is not None:
            inputs.append(Received(1, "b1", [said]))
        else:
            requested += 1
            inputs.append(Requested(requested, asked))
    inputs.append(TimerFired(("subscriber", "report")))
    return inputs


@given(steps=st.lists(broker_step, min_size=12, max_size=30), cuts=CUTS)
@settings(max_examples=150)
def test_broker_and_application_hear_the_same_from_a_client(steps: list[tuple[Any, ...]], cuts: list[bool]) -> None:
    same_in_any_cut(ClientBench, client_inputs(steps), cuts)


@given(steps=st.lists(broker_step, min_size=12, max_size=30), cuts=CUTS, asked_before=st.integers(0, 6))
@settings(max_examples=150)
def test_broker_and_application_hear_the_same_from_a_client_that_learns_its_scheme(
    steps: list[tuple[Any, ...]], cuts: list[bool], asked_before: int
) -> None:
    started, *rest = client_inputs(steps)
    asked = [one for one in rest if isinstance(one, Requested)][:asked_before]
    same_in_any_cut(ClientOfAnyScheme, [started, *asked, *(one for one in rest if one not in asked)], cuts)
