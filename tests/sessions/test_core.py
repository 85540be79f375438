"""The broker's core: sessions, publishing without doubling, overflow, and a state that is all there is."""

import tracemalloc
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import EventError
from holdfast.kernel.node import InvariantBroken
from holdfast.matching import FilterIndex
from holdfast.model.event import Event, EventBytes, encode_batch, encode_event
from holdfast.protocols.core import commands
from holdfast.protocols.core.backlog import batch_of
from holdfast.protocols.core.commands import Applied, Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.hosting import Hosting
from holdfast.protocols.core.limits import CoreLimits, HostingLimits
from holdfast.protocols.core.outputs import (
    Answered,
    CursorFed,
    CursorTaken,
    Expired,
    Freed,
    NotOpened,
    Opened,
    Output,
    Removed,
    Reply,
    Woken,
)
from holdfast.protocols.core.register import EPOCH_MAX
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.schemes.catalogue import RECORDS
from tests.sessions.bench import EPOCH, WALL, batch, event
from tests.sessions.command_strategies import any_commands, steps, to_command
from tests.sessions.counting import Counting

A, B = "client:a", "client:b"
SMALL = CoreLimits(sessions=2, subscriptions_per_session=2, backlog_events=3, backlog_bytes=300)


def make(limits: CoreLimits | None = None, log: bool = False) -> BrokerCore:
    return BrokerCore(limits, log)


def make_hosting(limits: CoreLimits | None = None, log: bool = False) -> BrokerCore:
    """One with an application."""
    core = make(limits, log)
    core.hosting = Hosting(Counting(every=2), "counting", HostingLimits(request_bytes=8, requests_in_flight=2))
    return core


def do(core: BrokerCore, *given: Command, wall: int = WALL) -> list[Any]:
    """The outputs of some commands, in plain types."""
    return [row for command in given for row in plain_outputs(core.apply(core.number + 1, wall, command))]


def plain_outputs(outputs: list[Output]) -> list[Any]:
    rows: list[Any] = []
    for output in outputs:
        match output:
            case Woken():
                rows.append(("woken", [(s.client, s.number) for s in output.subscriptions]))
            case Expired():
                events = [bytes(data) for data in output.batch.slices]
                rows.append(("expired", output.subscription.client, output.subscription.number, events))
            case Removed():
                rows.append(("removed", output.subscription.client, output.subscription.number))
            case CursorTaken():
                rows.append(("taken", output.cursor.get_state(), output.window, output.after, output.unconsumed))
            case CursorFed():
                rows.append(("fed", output.cursor.name, list(output.run.positions), output.run.batch.slices))
            case _:
                rows.append(output)
    return rows


def opened(*clients: str, limits: CoreLimits | None = None, log: bool = False) -> BrokerCore:
    core = make(limits, log)
    for client in clients:
        do(core, commands.OpenSession(client, 1, 0))
    return core


def subscribe(client: str, number: int, overflow: Overflow = Overflow.DISCONNECT, text: str = "n > 0") -> Command:
    return commands.Subscribe(client, EPOCH, number, text, overflow, 10)


def publish(client: str, first: int, events: EventBytes, confirmed: int = 0) -> Command:
    return commands.Publish(client, EPOCH, first, confirmed, events)


def skip(client: str, first: int, count: int) -> Command:
    return commands.Publish(client, EPOCH, first, 0, batch(), count)


def kept(core: BrokerCore, client: str, number: int) -> list[tuple[int, int]]:
    """(number, the publisher's sequence) of what a subscription keeps."""
    subscription = core.sessions[client].subscriptions[number]
    events = batch_of(subscription.read(0, len(subscription))).events
    return [(n, event.sequence) for n, event in enumerate(events, subscription.first_kept)]


# --------------------------------------------------------------------------------------------------------- sessions
def test_a_new_client_gets_an_epoch_from_the_clock_and_an_old_one_its_own() -> None:
    core = make()
    assert do(core, commands.OpenSession(A, 7, 0)) == [Opened(A, 7, EPOCH)]
    assert do(core, commands.OpenSession(A, 7, EPOCH), wall=WALL * 2) == [Opened(A, 7, EPOCH)]
    assert do(core, commands.OpenSession(A, 7, 0), wall=WALL * 2) == [Opened(A, 7, EPOCH)]


def test_a_new_life_of_a_client_gets_a_larger_epoch_and_finds_nothing_of_the_old_one() -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1), publish(A, 1, batch(1)))
    assert do(core, commands.OpenSession(A, 2, 0), wall=0) == [("removed", A, 1), Opened(A, 2, EPOCH + 1)]
    session = core.sessions[A]
    assert (session.accepted, session.subscriptions, len(core.index)) == (0, {}, 0)


def test_an_epoch_is_larger_than_the_one_that_the_client_had_elsewhere() -> None:
    core = make()
    assert do(core, commands.OpenSession(A, 1, EPOCH + 50)) == [Opened(A, 1, EPOCH + 51)]


def test_a_client_that_was_superseded_is_refused_and_harms_nothing() -> None:
    core = opened(A)
    do(core, commands.OpenSession(A, 2, 0))
    before = core.get_state()
    problem = f"another client has opened a session under the name {A!r}"
    refused = messages.SessionRefused(Refusal.SUPERSEDED, problem)
    assert do(core, commands.OpenSession(A, 1, EPOCH)) == [NotOpened(A, 1, refused)]
    core.number -= 1
    assert core.get_state() == before


def test_a_client_that_had_the_same_or_a_later_epoch_elsewhere_takes_the_name_over() -> None:
    for claimed in (EPOCH, EPOCH + 9):
        core = opened(A)
        assert do(core, commands.OpenSession(A, 2, claimed)) == [Opened(A, 2, claimed + 1)]


@pytest.mark.parametrize("claimed", [2**64 - 1, EPOCH_MAX + 1, -1, -(2**63)])
def test_an_epoch_that_nobody_granted_does_not_poison_the_state(claimed: int) -> None:
    core = make()
    do(core, commands.OpenSession(A, 1, claimed))
    do(core, commands.OpenSession(A, 2, 2**64 - 1))
    copy = make()
    copy.set_state(core.get_state())
    assert 0 < copy.sessions[A].epoch < 2**63


def test_a_command_of_another_epoch_does_nothing() -> None:
    core = opened(A)
    do(core, subscribe(A, 1))
    wrong = EPOCH + 1
    for command in (
        commands.EndSession(A, wrong),
        commands.Subscribe(A, wrong, 2, "n > 0", Overflow.DISCONNECT, 10),
        commands.Unsubscribe(A, wrong, 1),
        commands.EndSubscription(A, wrong, 1, "x"),
        commands.Publish(A, wrong, 1, 0, batch(1)),
        commands.Receive(A, wrong, (1,), (1,)),
        commands.DropSubscriptions(A, wrong),
        commands.EndSession("client:nobody", EPOCH),
    ):
        before = core.get_state()
        assert do(core, command) == []
        core.number -= 1
        assert core.get_state() == before


def test_an_ended_session_is_forgotten_and_its_client_told() -> None:
    core = opened(A)
    do(core, subscribe(A, 1, Overflow.BLOCK))
    outputs = do(core, commands.EndSession(A, EPOCH))
    assert outputs == [("removed", A, 1), Freed(), Reply(A, EPOCH, messages.SessionClosed())]
    assert (core.sessions, len(core.index), core.crowding.blocking) == ({}, 0, {})


def test_a_client_that_stays_away_loses_its_subscriptions_and_keeps_its_place_in_publishing() -> None:
    core = opened(A)
    do(core, subscribe(A, 1), publish(A, 1, batch(1, 2)), commands.EndSubscription(A, EPOCH, 1, "x"), subscribe(A, 2))
    assert do(core, commands.DropSubscriptions(A, EPOCH)) == [("removed", A, 2)]
    session = core.sessions[A]
    assert (session.subscriptions, session.ended, session.accepted, list(core.register.dormant)) == ({}, {}, 2, [A])
    assert do(core, commands.OpenSession(A, 1, EPOCH)) == [Opened(A, 1, EPOCH)]
    assert core.register.dormant == {}


@pytest.mark.parametrize("sign", [subscribe(A, 1), publish(A, 1, batch(1))])
def test_a_client_that_was_given_up_too_early_is_awake_again_at_its_next_command(sign: Command) -> None:
    core = opened(A)
    do(core, commands.DropSubscriptions(A, EPOCH), sign)
    core.check_invariants()
    assert core.register.dormant == {}


def test_the_oldest_dormant_session_makes_room_and_without_one_there_is_none() -> None:
    core = opened(A, B, limits=SMALL)
    problem = "the broker has 2 sessions, and takes no more"
    refusal = NotOpened("client:c", 1, messages.SessionRefused(Refusal.LIMIT, problem, "sessions", 2))
    assert do(core, commands.OpenSession("client:c", 1, 0)) == [refusal]
    do(core, commands.DropSubscriptions(B, EPOCH), commands.DropSubscriptions(A, EPOCH))
    assert do(core, commands.OpenSession("client:c", 1, 0)) == [Opened("client:c", 1, EPOCH)]
    assert (list(core.sessions), list(core.register.dormant)) == ([A, "client:c"], [A])
    # A new life of a client that is known needs no room.
    assert do(core, commands.OpenSession("client:c", 2, 0)) == [Opened("client:c", 2, EPOCH + 1)]


def test_a_core_is_named_by_the_time_of_its_first_command() -> None:
    assert (opened(A).memory, make().memory) == (WALL, 0)
    core = make()
    do(core, commands.OpenSession(A, 1, 0), wall=0)
    do(core, commands.OpenSession(B, 1, 0))
    assert core.memory == 1


def test_commands_come_in_order() -> None:
    core = opened(A)
    for number in (1, 3):
        with pytest.raises(InvariantBroken, match="in order"):
            core.apply(number, WALL, commands.EndSession(A, EPOCH))


# ---------------------------------------------------------------------------------------------------- subscriptions
def test_a_subscription_that_is_asked_for_twice_is_made_once() -> None:
    core = opened(A)
    assert do(core, subscribe(A, 1), subscribe(A, 1)) == [Reply(A, EPOCH, messages.Subscribed(1))] * 2
    assert len(core.index) == 1


@pytest.mark.parametrize("other", [subscribe(A, 1, text="n > 1"), subscribe(A, 1, Overflow.BLOCK)])
def test_a_number_that_stands_for_another_filter_is_a_conflict(other: Command) -> None:
    core = opened(A)
    do(core, subscribe(A, 1))
    problem = "subscription 1 exists already, with another filter"
    assert do(core, other) == [Reply(A, EPOCH, messages.SubscribeRefused(1, Refusal.CONFLICT, problem))]


def test_a_text_that_is_no_filter_is_refused_with_its_place() -> None:
    core = opened(A)
    (reply,) = do(core, subscribe(A, 1, text="n > "))
    assert isinstance(reply, Reply)
    refused = reply.message
    assert isinstance(refused, messages.SubscribeRefused)
    assert (refused.subscription, refused.reason, refused.offset) == (1, Refusal.FILTER, 4)
    assert refused.problem
    assert refused.expected
    assert len(core.index) == 0


def test_subscriptions_are_limited_and_those_that_ended_count_until_the_client_knows() -> None:
    core = opened(A, limits=SMALL)
    do(core, subscribe(A, 1), subscribe(A, 2), commands.EndSubscription(A, EPOCH, 1, "x"))
    problem = "a session has at most 2 subscriptions"
    refused = messages.SubscribeRefused(3, Refusal.LIMIT, problem, limit="subscriptions_per_session", allowed=2)
    assert do(core, subscribe(A, 3)) == [Reply(A, EPOCH, refused)]
    do(core, commands.Unsubscribe(A, EPOCH, 1))
    assert do(core, subscribe(A, 3)) == [Reply(A, EPOCH, messages.Subscribed(3))]


def test_an_ended_subscription_is_not_made_again_before_its_client_knows() -> None:
    core = opened(A)
    do(core, subscribe(A, 1))
    ended = Reply(A, EPOCH, messages.SubscriptionEnded(1, "x"))
    assert do(core, commands.EndSubscription(A, EPOCH, 1, "x")) == [("removed", A, 1), ended]
    assert do(core, subscribe(A, 1), commands.EndSubscription(A, EPOCH, 1, "y")) == []
    assert do(core, commands.Unsubscribe(A, EPOCH, 1)) == [Reply(A, EPOCH, messages.Unsubscribed(1))]
    assert do(core, subscribe(A, 1)) == [Reply(A, EPOCH, messages.Subscribed(1))]


def test_an_end_that_is_asked_for_is_confirmed_as_often_as_it_is_asked_for() -> None:
    core = opened(A)
    do(core, subscribe(A, 1, Overflow.BLOCK))
    over = Reply(A, EPOCH, messages.Unsubscribed(1))
    unsubscribe = commands.Unsubscribe(A, EPOCH, 1)
    assert do(core, unsubscribe, unsubscribe) == [("removed", A, 1), Freed(), over, over]


def test_what_is_received_goes_and_only_blocking_subscriptions_free_publishers() -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1), subscribe(A, 2, Overflow.BLOCK), publish(B, 1, batch(1, 2, 3)))
    assert do(core, commands.Receive(A, EPOCH, (1, 9), (2, 2))) == []
    assert do(core, commands.Receive(A, EPOCH, (1, 2), (2, 1))) == [Freed()]
    assert (kept(core, A, 1), kept(core, A, 2)) == ([(3, 3)], [(2, 2), (3, 3)])
    assert do(core, commands.Receive(A, EPOCH, (1, 2), (2,))) == []  # counts that do not fit leave the rest alone


# ------------------------------------------------------------------------------------------------------- publishing
def test_events_reach_those_who_want_them_in_order() -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1), subscribe(A, 2, text="n = 2"), subscribe(B, 1, text="n = 9"))
    woken = [Answered(B), ("woken", [(A, 1), (A, 2)])]
    assert do(core, publish(B, 1, batch(1, 2, 3))) == woken
    assert (kept(core, A, 1), kept(core, A, 2), kept(core, B, 1)) == ([(1, 1), (2, 2), (3, 3)], [(1, 2)], [])
    assert (core.events, core.sessions[B].accepted) == (3, 3)


def test_an_event_that_nobody_wants_is_answered() -> None:
    core = opened(A)
    assert do(core, publish(A, 1, batch(1))) == [Answered(A)]
    assert do(core, publish(A, 2, batch())) == [Answered(A)]
    assert core.sessions[A].accepted == 1


@pytest.mark.parametrize(
    ("first", "numbers", "taken"),
    [
        (1, (1, 2, 3), []),  # all of it again
        (2, (2, 3, 4), [4]),  # overlapping
        (3, (3, 4, 5), [4, 5]),
        (4, (4,), [4]),
        (5, (5,), None),  # a gap
        (1, (1, 2, 3, 4, 5), [4, 5]),
    ],
)
def test_what_was_accepted_is_skipped_and_what_leaves_a_gap_is_not_taken(
    first: int, numbers: tuple[int, ...], taken: list[int] | None
) -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1), publish(B, 1, batch(1, 2, 3)))
    outputs = do(core, publish(B, first, batch(*numbers)))
    assert [sequence for _, sequence in kept(core, A, 1)] == [1, 2, 3, *(taken or [])]
    assert core.sessions[B].accepted == 3 + len(taken or [])
    expected = [] if taken is None else [Answered(B), *([("woken", [(A, 1)])] if taken else [])]
    assert outputs == expected


def test_bytes_that_are_no_events_change_nothing() -> None:
    core = opened(A)
    assert do(core, publish(A, 1, msgspec.Raw(b"\x91\xc1"))) == []
    assert core.sessions[A].accepted == 0


def bad_event(attributes: dict[str, Any], topic: str = "", payload: bytes = b"") -> EventBytes:
    return encode_event(Event("p", 1, 1, topic, attributes, payload))


BAD = {
    "nan": bad_event({"n": float("nan")}),
    "infinite": bad_event({"other": float("-inf")}),
    "65 bits": bad_event({"n": 2**64 - 1}),
    "a topic among the attributes": bad_event({"topic": "t"}),
    "too many attributes": bad_event({f"a{n}": n for n in range(65)}),
    "a long name": bad_event({"x" * 129: 1}),
    "a long value": bad_event({"n": "x" * (64 * 1024 + 1)}),
    "a long topic": bad_event({}, "t" * (64 * 1024 + 1)),
    "a large payload": bad_event({}, "", b"x" * (512 * 1024 + 1)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_event_is_refused_alone_and_the_refusal_is_kept_until_it_is_seen(bad: EventBytes) -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1), subscribe(A, 2, text="n IS NULL OR n IS NOT NULL"))
    do(core, publish(B, 1, encode_batch([event(1), bad, event(3), bad])))
    assert [sequence for _, sequence in kept(core, A, 1)] == [1, 3]
    assert [sequence for _, sequence in kept(core, A, 2)] == [1, 3]
    session = core.sessions[B]
    assert (session.accepted, core.events) == (4, 2)
    assert [(n, why[0], bool(why[1])) for n, why in session.refused.items()] == [
        (2, Refusal.EVENT, True),
        (4, Refusal.EVENT, True),
    ]
    do(core, publish(B, 5, batch(5), confirmed=1))
    assert list(session.refused) == [2, 4]
    do(core, publish(B, 5, batch(5), confirmed=2))
    assert list(session.refused) == [4]
    do(core, publish(B, 6, batch(), confirmed=4))
    assert session.refused == {}


def test_the_largest_event_is_taken() -> None:
    core = opened(A)
    attributes: dict[str, Any] = {f"{n:0128}": n for n in range(63)} | {"n": "x" * 64 * 1024}
    do(core, publish(A, 1, encode_batch([bad_event(attributes, "t" * 64 * 1024, b"x" * 512 * 1024)])))
    assert (core.sessions[A].refused, core.events) == ({}, 1)


class CountingIndex(FilterIndex[Subscription]):
    """Counts the events that it looks at."""

    looked_at = 0

    def match_batch(self, events: Iterable[Any]) -> list[list[Subscription]]:
        pairs = list(events)
        try:
            matched = super().match_batch(pairs)
        except EventError as error:
            self.looked_at += 1 + (error.row or 0)
            raise
        self.looked_at += len(pairs)
        return matched


def test_every_event_of_a_batch_is_looked_at_twice_at_most_however_many_are_bad() -> None:
    core = opened(A)
    core.register.index = index = CountingIndex()
    events = [BAD["nan"] if n % 3 else event(n) for n in range(300)]
    do(core, publish(A, 1, encode_batch(events)))
    assert (len(core.sessions[A].refused), index.looked_at <= 600) == (200, True)


# --------------------------------------------------------------------------------------------------------- overflow
@pytest.mark.parametrize("overflow", [Overflow.DISCONNECT, Overflow.BLOCK])
def test_a_subscription_that_overflows_ends_and_had_what_there_was_room_for(overflow: Overflow) -> None:
    core = opened(A, B, limits=SMALL)
    do(core, subscribe(A, 1, overflow), subscribe(A, 2, text="n = 5"))
    reason = "overflow: more than 3 events or 300 bytes wait"
    assert do(core, publish(B, 1, batch(1, 2, 3, 4, 5))) == [
        Answered(B),
        ("woken", [(A, 1), (A, 2)]),
        ("removed", A, 1),
        *([Freed()] if overflow is Overflow.BLOCK else []),
        Reply(A, EPOCH, messages.SubscriptionEnded(1, reason)),
    ]
    session = core.sessions[A]
    assert (list(session.subscriptions), session.ended, kept(core, A, 2)) == ([2], {1: reason}, [(1, 5)])
    assert core.sessions[B].accepted == 5


def test_a_subscription_overflows_by_bytes_too() -> None:
    core = opened(A, B, limits=SMALL)
    do(core, subscribe(A, 1))
    do(core, publish(B, 1, batch(1, 2, payload=b"x" * 120)))
    assert list(core.sessions[A].subscriptions) == [1]
    do(core, publish(B, 3, batch(3, payload=b"x" * 120)))
    assert list(core.sessions[A].subscriptions) == []


def test_nothing_is_kept_behind_the_event_that_had_no_room() -> None:
    core = opened(A, B, limits=SMALL)
    do(core, subscribe(A, 1))
    subscription = core.sessions[A].subscriptions[1]
    large = [event(n, payload=b"x" * 120) for n in (1, 2, 3)]
    do(core, publish(B, 1, encode_batch([*large, event(4)])))
    assert (subscription.last, len(subscription)) == (2, 2)


def test_an_event_that_is_kept_does_not_keep_the_batch_that_it_came_in() -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1, text="n = 1"))
    tracemalloc.start()
    for first in range(1, 101, 2):
        do(core, publish(B, first, encode_batch([event(1), event(2, payload=b"x" * 100_000)])))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept(core, A, 1)) == 50
    assert size < 1_000_000


def test_an_event_that_came_with_repeated_ones_does_not_keep_them_in_memory() -> None:
    core = opened(A, B)
    do(core, subscribe(A, 1))
    tracemalloc.start()
    do(core, publish(B, 1, batch(1)))
    for first in range(1, 51):
        do(core, publish(B, first, encode_batch([event(first, payload=b"x" * 100_000), event(first + 1)])))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept(core, A, 1)) == 51
    assert size < 1_000_000


def test_the_oldest_events_go_where_that_was_asked_for() -> None:
    core = opened(A, B, limits=SMALL)
    do(core, subscribe(A, 1, Overflow.DROP_OLDEST))
    assert do(core, publish(B, 1, batch(1, 2, 3, 4, 5))) == [Answered(B), ("woken", [(A, 1)])]
    assert kept(core, A, 1) == [(3, 3), (4, 4), (5, 5)]
    assert core.sessions[A].subscriptions[1].dropped_through == 2


# ------------------------------------------------------------------------------------------------------------ state
@given(given_commands=any_commands, log=st.booleans())
@settings(max_examples=150)
def test_no_command_raises_and_every_state_can_be_kept(given_commands: list[Command], log: bool) -> None:
    core = make_hosting(SMALL, log)
    do(core, commands.OpenSession(A, 1, 0), commands.OpenSession(B, 1, 0))
    for command in given_commands:
        core.apply(core.number + 1, WALL, command)
        core.check_invariants()
    copy = make_hosting(SMALL, log)
    copy.set_state(core.get_state())
    copy.check_invariants()
    assert copy.get_state() == core.get_state()


@given(taken=steps, cut=st.integers(0, 25), log=st.booleans())
@settings(max_examples=200)
def test_a_core_from_a_state_has_the_same_future(taken: list[tuple[Any, ...]], cut: int, log: bool) -> None:
    core, journal = make_hosting(SMALL, log), []
    copy: BrokerCore | None = None
    for place, step in enumerate(taken):
        if place == cut:
            copy = make_hosting(SMALL, log)
            do(copy, commands.OpenSession("client:z", 1, 1))  # what was there before is replaced
            copy.set_state(core.get_state())
        command = to_command(core, step)
        journal.append(command)
        wall = WALL + place
        outputs = do(core, command, wall=wall)
        core.check_invariants()
        if copy is not None:
            assert do(copy, command, wall=wall) == outputs
            copy.check_invariants()
            assert copy.get_state() == core.get_state()
    # The journal, as it is written and read, leads to the same state too.
    replayed = make_hosting(SMALL, log)
    for place, command in enumerate(journal):
        record = RECORDS.decode(*RECORDS.encode(Applied(place + 1, WALL + place, [command])))
        assert isinstance(record, Applied)
        do(replayed, *record.commands, wall=record.wall)
    assert replayed.get_state() == core.get_state()


def test_a_state_of_another_format_stops_the_node() -> None:
    state = msgspec.msgpack.decode(make().get_state())
    with pytest.raises(InvariantBroken, match="format"):
        make().set_state(msgspec.msgpack.encode([2, *state[1:]]))


def test_contradictions_in_the_state_are_found() -> None:
    def change_name(core: BrokerCore) -> None:
        core.sessions[A].client = "client:x"

    def change_index(core: BrokerCore) -> None:
        core.index.remove(core.sessions[A].subscriptions[1])

    def change_sessions(core: BrokerCore) -> None:
        core.sessions[A].subscriptions.pop(2)

    def change_ended(core: BrokerCore) -> None:
        core.sessions[A].ended[1] = "x"

    def change_blocking(core: BrokerCore) -> None:
        core.crowding.blocking.clear()

    def change_dormant(core: BrokerCore) -> None:
        core.register.dormant[A] = None

    def change_dormant_more(core: BrokerCore) -> None:
        core.register.dormant["client:x"] = None

    def change_refused(core: BrokerCore) -> None:
        core.sessions[A].refused[1] = (Refusal.EVENT, "x")

    def change_ledger(core: BrokerCore) -> None:
        core.sessions[A].ledger.bytes += 1

    def change_ledger_blocking(core: BrokerCore) -> None:
        core.sessions[A].ledger.blocking = {}

    def change_crowded_ledgers(core: BrokerCore) -> None:
        core.crowding._crowded_ledgers[core.sessions[A].ledger] = None

    for change in (
        change_name, change_index, change_sessions, change_ended, change_blocking, change_dormant,
        change_dormant_more, change_refused, change_ledger, change_ledger_blocking, change_crowded_ledgers,
    ):  # fmt: skip
        core = opened(A)
        do(core, subscribe(A, 1), subscribe(A, 2, Overflow.BLOCK))
        core.check_invariants()
        change(core)
        with pytest.raises(InvariantBroken):
            core.check_invariants()


def test_the_subscriptions_of_a_session_share_what_they_may_keep() -> None:
    large: dict[str, Any] = {"payload": b"x" * 75}
    room = 3 * len(event(1, **large)) + 10
    core = opened(A, B, limits=CoreLimits(backlog_bytes_per_session=room))
    do(
        core,
        subscribe(A, 1, text="n = 1"),
        subscribe(A, 2, Overflow.DROP_OLDEST, "n = 2"),
        subscribe(A, 3, text="n = 3"),
    )
    do(core, publish(B, 1, batch(1, 1, 2, **large)))
    assert [len(core.sessions[A].subscriptions[n]) for n in (1, 2, 3)] == [2, 1, 0]
    # The one that drops makes room from its own; the others end, for a reason that names the session.
    do(core, publish(B, 4, batch(2, 2, **large)))
    assert kept(core, A, 2) == [(3, 2)]
    reason = f"overflow: more than {room} bytes wait for the session"
    assert Reply(A, EPOCH, messages.SubscriptionEnded(3, reason)) in do(core, publish(B, 6, batch(3, **large)))
    do(core, commands.Receive(A, EPOCH, (1,), (2,)))
    do(core, subscribe(A, 4, text="n = 3"), publish(B, 7, batch(3, **large)))
    assert kept(core, A, 4) == [(1, 3)]
    core.check_invariants()
    core.set_state(core.get_state())
    core.check_invariants()
    assert core.sessions[A].ledger.bytes > 0


def test_a_blocking_subscription_may_be_full_for_what_others_of_its_session_keep() -> None:
    large: dict[str, Any] = {"payload": b"x" * 75}
    size = len(event(1, **large))
    core = opened(A, B, limits=CoreLimits(backlog_bytes_per_session=4 * size))
    do(core, subscribe(A, 1, text="n = 1"), subscribe(A, 2, Overflow.BLOCK, "n = 2"), subscribe(B, 1, Overflow.BLOCK))
    blocking = core.sessions[A].subscriptions[2]
    do(core, publish(B, 1, batch(1, 1, **large)))
    assert list(core.crowding.possibly_full(1, size)) == []
    do(core, publish(B, 3, batch(1, **large)))
    assert list(core.crowding.possibly_full(1, size)) == [blocking, core.sessions[B].subscriptions[1]]
    core.check_invariants()
    core.set_state(core.get_state())
    core.check_invariants()
    assert Freed() in do(core, commands.Receive(A, EPOCH, (1,), (2,)))
    assert core.sessions[A].subscriptions[2] not in core.crowding.possibly_full(1, size)
    core.check_invariants()
    do(core, publish(B, 4, batch(1, 1, **large)))
    assert Freed() in do(core, commands.Unsubscribe(A, EPOCH, 1))
    core.check_invariants()


def test_a_batch_that_the_session_has_no_room_for_is_kept_event_by_event() -> None:
    large: dict[str, Any] = {"payload": b"x" * 75}
    size = len(event(1, **large))
    core = opened(A, B, limits=CoreLimits(backlog_bytes_per_session=3 * size))
    do(core, subscribe(A, 1, text="n = 1"), subscribe(A, 2, Overflow.DROP_OLDEST, "n = 2"))
    do(core, publish(B, 1, batch(1, 2, 2, 2, 2, **large)))
    assert (kept(core, A, 1), kept(core, A, 2)) == ([(1, 1)], [(3, 2), (4, 2)])
    subscription = core.sessions[A].subscriptions[2]
    assert (subscription.dropped_through, len(subscription)) == (2, 2)
    core.check_invariants()


def test_a_client_that_had_a_session_elsewhere_since_begins_anew() -> None:
    """It counts from 1 by now, and takes what it had here for gone; one that missed an answer knows of no later one."""
    core = make()
    do(core, commands.OpenSession(A, 7, 0, 1), commands.Publish(A, EPOCH, 1, 0, batch(1, 2, publisher="a")))
    assert do(core, commands.OpenSession(A, 7, EPOCH - 5, 1)) == [Opened(A, 7, EPOCH)]
    assert core.sessions[A].accepted == 2
    assert do(core, commands.OpenSession(A, 7, EPOCH + 5, 1)) == [Opened(A, 7, EPOCH + 6)]
    assert core.sessions[A].accepted == 0


@pytest.mark.parametrize("late", [False, True], ids=["before", "behind"])
def test_a_number_that_was_given_up_is_one_events_or_nobodys_and_never_anothers(late: bool) -> None:
    """What was sent under it may be applied before the client's word that it gave it up, or behind."""
    core = opened(A, B)
    do(core, subscribe(B, 1))
    given_up, skipped = publish(A, 1, batch(1)), skip(A, 1, 1)
    for command in (skipped, given_up) if late else (given_up, skipped):
        do(core, command)
    assert core.sessions[A].accepted == 1
    do(core, publish(A, 2, batch(2)))
    assert core.sessions[A].accepted == 2
    assert [sequence for _, sequence in kept(core, B, 1)] == ([2] if late else [1, 2])
    do(core, skip(A, 5, 1))  # something before it is missing
    assert core.sessions[A].accepted == 2
    core.check_invariants()
