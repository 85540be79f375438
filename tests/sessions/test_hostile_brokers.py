"""Whatever a broker sends, its client goes on: at worst it leaves for another one."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, Received, Requested, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Complete, Connect, Disconnect, Effect, Send
from holdfast.kernel.time import SECOND
from holdfast.model.event import encode_batch
from holdfast.protocols.cursors import messages as log
from holdfast.protocols.cursors import requests as asked_of_log
from holdfast.protocols.sessions.conversation import Phase
from holdfast.protocols.sessions.messages import (
    Accepted,
    Advertised,
    AdvertiseRefused,
    Deliver,
    DirectChanged,
    Dropped,
    Overflow,
    Pong,
    Redirect,
    Refusal,
    SessionClosed,
    SessionOpened,
    SessionRefused,
    Subscribed,
    SubscribeRefused,
    SubscriptionEnded,
    Unadvertised,
    Unsubscribed,
)
from holdfast.protocols.sessions.requests import (
    Close,
    Consume,
    EndAdvertisement,
    EndSubscription,
    MakeAdvertisement,
    MakeSubscription,
    NewEvent,
    PublishEvents,
)
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.paxos.client import make_client
from tests.sessions.bench import ClientBench
from tests.sessions.command_strategies import events, integers, raw

number = st.one_of(st.integers(0, 3), integers)
addresses = st.lists(st.sampled_from(["a:1", "z:1", "z:2"]), max_size=2).map(tuple)
refusals = st.lists(st.tuples(number, st.sampled_from(Refusal), st.text(max_size=3)), max_size=2).map(tuple)
lists = st.lists(st.integers(1, 3), max_size=4)
positions = st.lists(number, max_size=4)
events_read = st.one_of(raw, st.lists(st.one_of(events, raw), max_size=4).map(encode_batch))
runs = st.lists(st.tuples(st.integers(1, 3), number, st.one_of(st.integers(0, 3), integers)), max_size=4)
placed = st.lists(st.tuples(number, st.one_of(st.integers(0, 3), integers)), max_size=3)
log_messages = (
    st.builds(log.CursorOpened, number, number, number, number),
    st.integers(0, 5).map(lambda at: log.CursorOpened(1, 1, at, at)),
    st.builds(log.CursorRefused, number, st.sampled_from(Refusal), st.text(max_size=3), number, st.text(max_size=3)),
    st.builds(log.CursorClosed, number),
    st.builds(log.CursorEnded, number, st.sampled_from(Refusal), st.text(max_size=3), number),
    st.builds(log.CursorEvents, number, number, number, positions, events_read, positions),
    st.integers(0, 5).flatmap(
        lambda at: st.builds(log.CursorEvents, st.just(1), st.just(at), st.just(at + 2), st.just([at + 1]),
                             events.map(lambda one: encode_batch([one])))
    ),
    st.builds(log.Acknowledged, number, number),
    st.builds(log.NameForgotten, number, st.booleans()),
    st.builds(log.LogTold, number, st.text(max_size=3), number, number, number),
    st.builds(log.RangeRead, number, st.text(max_size=3), number, positions, events_read, number),
    st.builds(log.LogRefused, number, st.sampled_from(Refusal), st.text(max_size=3), number),
    st.builds(log.Staged, number, number),
    st.builds(log.StagesCommitted, number, number, number, st.booleans()),
)  # fmt: skip
messages = st.one_of(
    st.builds(SessionOpened, st.integers(-1, 3), st.integers(0, 3), st.integers(-1, 5), st.integers(1, 2),
              st.lists(number, max_size=2).map(tuple), addresses, refusals, st.just(""), addresses),
    st.builds(SessionOpened, integers, integers, integers, integers),
    st.builds(SessionRefused, st.sampled_from(Refusal), st.text(max_size=3)),
    st.just(SessionClosed()),
    st.builds(Redirect, addresses),
    st.builds(DirectChanged, addresses),
    st.builds(Subscribed, number),
    st.builds(SubscribeRefused, number, st.sampled_from(Refusal), st.text(max_size=3)),
    st.builds(Unsubscribed, number),
    st.builds(Advertised, number),
    st.builds(AdvertiseRefused, number, st.sampled_from(Refusal), st.text(max_size=3)),
    st.builds(Unadvertised, number),
    st.builds(SubscriptionEnded, number, st.text(max_size=3)),
    st.builds(Accepted, st.one_of(st.integers(0, 4), integers), refusals),
    lists.flatmap(lambda found: st.builds(
        Deliver, st.tuples(*[st.tuples(st.just(subscription), number, st.just(1)) for subscription in found]).map(list),
        st.lists(events, min_size=len(found), max_size=len(found)).map(encode_batch),
        st.one_of(st.just([]), st.integers(1, 9).map(lambda first: [(first, len(found))] if found else [])))),
    st.builds(Deliver, runs, events_read, placed),
    st.builds(Dropped, number, number),
    st.just(Pong()),
    *log_messages,
)  # fmt: skip
commands = st.one_of(
    st.just(MakeSubscription("n > 0", Overflow.DISCONNECT, 2)),
    st.builds(EndSubscription, st.integers(0, 3)),
    st.just(MakeAdvertisement("n > 0")),
    st.builds(EndAdvertisement, st.integers(0, 3)),
    st.builds(Consume, st.integers(0, 3), st.integers(0, 3)),
    st.just(asked_of_log.MakeCursor("risk", "n > 0", 0, True, 2)),
    st.builds(asked_of_log.EndCursor, st.integers(0, 3)),
    st.builds(asked_of_log.ConsumeCursor, st.integers(0, 3), st.integers(0, 3)),
    st.builds(asked_of_log.AcknowledgeUpTo, st.integers(0, 3), number),
    st.builds(asked_of_log.AskBounds, number, number),
    st.builds(asked_of_log.ReadEvents, st.just("n > 0"), number, number, number, number),
    st.just(asked_of_log.ForgetCursor("risk")),
    st.just(asked_of_log.StagePart("q", 1, 1, "s", 1, 1, 1, [NewEvent({"n": 1})])),
    st.just(asked_of_log.CommitParts("q", 1, ("s",))),
    st.builds(lambda retry: PublishEvents([NewEvent({"n": 1}), NewEvent({"n": 2})], retry), st.booleans()),
)
act = st.one_of(
    st.tuples(st.just("say"), st.lists(messages, min_size=1, max_size=4)),
    st.tuples(st.just("open"), st.integers(1, 3)),
    st.tuples(st.just("link"), st.sampled_from(["b1", "b2"])),
    st.tuples(st.just("ask"), commands),
    st.tuples(st.just("down"), st.just(0)),
    st.tuples(st.just("wait"), st.sampled_from([SECOND // 100, SECOND, 6 * SECOND, 20 * SECOND])),
)


@given(acts=st.lists(act, min_size=8, max_size=20))
@settings(max_examples=300)
def test_no_broker_stops_a_client_and_every_request_is_answered_once(acts: list[tuple[str, Any]]) -> None:
    bench = ClientBench("a:1", "a:2", make=make_client)
    effects: list[Effect] = []
    links = [0]
    asked: list[int] = []

    def turn(*inputs: Input) -> None:
        """A turn, and the ends of the links that the client closes in it."""
        made = bench.handle(*inputs)
        bench.drain()
        effects.extend(made)
        for effect in made:
            if isinstance(effect, Disconnect):
                turn(LinkDown(effect.link, "b1", effect.reason))

    turn(Started(1))
    for what, argument in acts:
        dialled = [effect.address for effect in effects if isinstance(effect, Connect)]
        match what:
            case "say":
                turn(Received(links[-1], "b1", argument))
            case "open":
                links.append(links[-1] + 1)
                turn(LinkUp(links[-1], "b1", 1, Role.BROKER, True, dialled[-1]))
                turn(Received(links[-1], "b1", [SessionOpened(argument, 0, 100, 1, direct=("z:1", "z:2"))]))
            case "link":
                links.append(links[-1] + 1)
                turn(LinkUp(links[-1], argument, 1, Role.BROKER, True, dialled[-1]))
                turn(Received(links[-1], argument, [DirectChanged(("z:1", "z:2"))]))
            case "ask":
                request = len(asked) + 1
                unanswered = isinstance(argument, Consume | asked_of_log.ConsumeCursor)
                asked.append(0 if unanswered else request)
                turn(Requested(request, argument))
            case "down":
                turn(*[LinkDown(link, "b1", "gone") for link in links], ConnectFailed("", dialled[-1], ""))
            case "wait":
                bench.out.now += argument
                due = [key for key, at in bench.timers.items() if at <= bench.out.now]
                for key in due:
                    del bench.timers[key]
                turn(*[TimerFired(key) for key in due])
    turn(Requested(1000, Close()), *[LinkDown(link, "b1", "gone") for link in links])
    answers = [effect.request for effect in effects if isinstance(effect, Complete) and effect.request]
    assert sorted(answers) == sorted([*filter(None, asked), 1000])
    assert bench.part.phase is Phase.CLOSED
    for effect in effects:
        if isinstance(effect, Send):
            MESSAGES.decode(*MESSAGES.encode(effect.message))
