"""A broker whose neighbours change while events are on their way: what it sends, stores, acknowledges, holds back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.kernel.inputs import Durable
from holdfast.kernel.outbox import Append, Disconnect, Effect, Outbox, Send
from holdfast.model.event import EVENT_BYTES_MAX, PAYLOAD_BYTES_MAX
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.messages import AcknowledgeEvents, EventsStored, Forward, Introduction, Routes
from holdfast.protocols.routing.network_map import Move
from holdfast.protocols.routing.notices import NeighbourAccepted, NeighbourConnected
from tests.routing.bench import NetworkBench
from tests.sessions.bench import batch

LEVELS = ["none", "buffered"]
T = {"topic": "t"}


class Changing(NetworkBench):
    """Right wants all events on topic t, which left advertises."""

    def __init__(self, level: str, **settings: Any) -> None:
        super().__init__(level, **settings)
        self.meet("left", "right")
        self.say("left", Routes([("left.1.1", "topic = 't'")], [], full=True))
        self.say("right", Routes([], [("right.1.1", "topic = 't'")], full=True))

    def change(self, *acts: Callable[[Forwarding, Outbox], object]) -> list[Effect]:
        for act in acts:
            act(self.forwarding, self.out)
        return self.handle()

    def wants(self, name: str) -> None:
        """From now on that one wants everything, and nobody else does."""
        router: Any = self.neighbours.router
        router.match = lambda source, events: {name: list(range(len(events)))}


def forwarded(effects: list[Effect]) -> list[tuple[str, int, int]]:
    """To whom, the first number, and how many."""
    return [
        (each.to, each.message.first, len(msgspec.msgpack.decode(each.message.events)))
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, Forward)
    ]


def acknowledged(effects: list[Effect]) -> list[tuple[str, int]]:
    return [
        (each.to, each.message.number)
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, AcknowledgeEvents)
    ]


def stored(effects: list[Effect]) -> list[EventsStored]:
    return [each.record for each in effects if isinstance(each, Append) and isinstance(each.record, EventsStored)]


@pytest.mark.parametrize("level", LEVELS)
def test_what_waits_for_a_suspended_neighbour_is_sent_when_it_goes_on(level: str) -> None:
    bench = Changing(level)
    assert forwarded(bench.say("left", Forward(1, batch(1, **T)))) == [("right", 1, 1)]
    bench.change(lambda part, out: part.suspend("right"))
    effects = bench.say("left", Forward(2, batch(2, 3, **T)))
    assert (forwarded(effects), acknowledged(effects)) == ([], [("left", 3)])
    assert bench.forwarding.progress.sent_through("right") == 1
    assert forwarded(bench.change(lambda part, out: part.go_on("right", out))) == [("right", 2, 2)]


@pytest.mark.parametrize("level", LEVELS)
def test_what_was_never_sent_is_sent_to_the_one_that_it_is_moved_to(level: str) -> None:
    bench = Changing(level)
    bench.say("left", Forward(1, batch(1, **T)))
    bench.change(lambda part, out: part.suspend("right"))
    bench.say("left", Forward(2, batch(2, 3, **T)))
    through: list[int] = []
    bench.change(lambda part, out: through.append(part.move("right", "left", out)))
    assert through == [1]
    assert forwarded(bench.change(lambda part, out: part.go_on("right", out))) == []
    assert bench.forwarding.feeds["left"].following == 3


@pytest.mark.parametrize("level", LEVELS)
def test_who_was_dropped_may_still_acknowledge_and_repeat_but_say_nothing_new(level: str) -> None:
    """Both were on their way when it was a neighbour."""
    bench = Changing(level)
    bench.say("left", Forward(1, batch(1, **T)))
    bench.change(lambda part, out: part.drop("left", out))
    assert acknowledged(bench.say("left", Forward(1, batch(1, **T)))) == [("left", 1)]
    bench.change(lambda part, out: part.drop("right", out))
    assert [each for each in bench.say("right", AcknowledgeEvents(1)) if isinstance(each, Disconnect)] == []
    assert "never sent" in bench.closed("right", AcknowledgeEvents(2))
    assert "no neighbour" in bench.closed("left", Forward(2, batch(2, **T)))


@pytest.mark.parametrize("level", LEVELS)
def test_what_was_taken_in_is_acknowledged_though_its_sender_is_dropped_in_the_same_turn(level: str) -> None:
    bench = Changing(level)
    bench.forwarding.on_forward("left", Forward(1, batch(1, **T)), bench.out)
    effects = bench.change(lambda part, out: part.drop("left", out))
    assert (acknowledged(effects), forwarded(effects)) == ([("left", 1)], [("right", 1, 1)])


@pytest.mark.parametrize("level", LEVELS)
def test_who_comes_back_on_the_same_link_goes_on_with_higher_numbers(level: str) -> None:
    bench = Changing(level)
    bench.say("left", Forward(1, batch(1, 2, **T)))
    bench.change(lambda part, out: part.drop("right", out), lambda part, out: part.add("right", out))
    assert forwarded(bench.say("left", Forward(3, batch(3, **T)))) == [("right", 3, 1)]
    assert acknowledged(bench.say("right", Forward(1, batch(9, topic="u")))) == [("right", 1)]


def test_a_new_neighbour_is_sent_what_it_has_not_stored_of_what_the_disk_had() -> None:
    """Its introduction came before it was a neighbour."""
    bench = Changing("buffered")
    bench.change(lambda part, out: part.drop("right", out))
    bench.down("right")
    bench.up("right")
    bench.say("right", bench.introduction("right", stored_feed="disk", stored=4))
    bench.change(lambda part, out: part.add("right", out))
    assert forwarded(bench.say("left", Forward(1, batch(1, **T)))) == [("right", 5, 1)]


def test_a_move_is_one_record_and_events_of_its_turn_are_on_the_right_side_of_it() -> None:
    bench = Changing("buffered")
    bench.change(lambda part, out: part.add("third", out), lambda part, out: part.suspend("third"))
    bench.change(lambda part, out: part.suspend("right"))
    bench.say("left", Forward(1, batch(1, **T)))
    bench.forwarding.on_forward("left", Forward(2, batch(2, **T)), bench.out)
    bench.forwarding.move("right", "third", bench.out)
    bench.wants("third")
    bench.forwarding.on_forward("left", Forward(3, batch(3, **T)), bench.out)
    before, behind = stored(bench.handle())
    assert (before.moves, before.following, before.places) == ([], {"left": 1, "right": 2, "third": 1}, [(1,)])
    assert [(moved.old, moved.new, moved.through, moved.at, moved.count) for moved in behind.moves] == [
        ("right", "third", 0, 1, 2)
    ]
    assert (behind.following, behind.places) == ({"left": 1, "right": 1, "third": 3}, [(2,)])


def test_how_far_a_feed_is_taken_in_is_told_apart_from_how_far_the_disk_has_it() -> None:
    bench = Changing("buffered")
    bench.say("left", Forward(1, batch(1, 2, **T)))
    assert (bench.forwarding.progress.taken_in("left"), claimed(bench)) == (2, 0)
    bench.handle(Durable(bench.out.token))
    assert (bench.forwarding.progress.taken_in("left"), claimed(bench)) == (2, 2)


def claimed(bench: Changing) -> int:
    """How far an introduction would say that the feed is stored."""
    bench.forwarding.on_neighbour_connected(NeighbourConnected("left"), bench.out)
    [introduction] = [e.message for e in bench.out.take_effects() if isinstance(e, Send)]
    assert isinstance(introduction, Introduction)
    return introduction.stored


@pytest.mark.parametrize("level", LEVELS)
def test_publishers_wait_for_a_suspended_neighbour_when_what_waits_is_more_than_may_be_stored(level: str) -> None:
    """As they would if it were down: not at the size at which they wait for one that is slow."""
    bench = Changing(level, queue_bytes=EVENT_BYTES_MAX, store_bytes=3 * EVENT_BYTES_MAX)
    bench.change(lambda part, out: part.suspend("right"))
    congested = []
    for number in (1, 3, 5, 7):
        payload = bytes(PAYLOAD_BYTES_MAX * 9 // 10)
        bench.say("left", Forward(number, batch(number, number + 1, payload=payload, **T)))
        congested.append(bench.forwarding.room.is_congested())
    assert congested == [False, False, False, True]


def test_what_a_lost_neighbour_never_acknowledged_goes_to_another_and_its_records_go_when_that_has_it() -> None:
    bench = Changing("buffered")
    bench.say("left", Forward(1, batch(1, 2, **T)))
    bench.say("right", AcknowledgeEvents(1))
    bench.down("right")
    bench.say("left", Forward(3, batch(3, **T)))
    effects = bench.change(
        lambda part, out: part.move_all("right", "left", out), lambda part, out: part.drop("right", out)
    )
    assert forwarded(effects) == [("left", 1, 2)]
    bench.say("left", AcknowledgeEvents(2))
    assert bench.node.measure()["feeds_events"] == 0


def test_where_nothing_is_stored_what_found_no_link_in_a_turn_goes_with_what_is_moved() -> None:
    bench = Changing("none")
    bench.down("right")
    bench.forwarding.on_forward("left", Forward(1, batch(1, **T)), bench.out)
    effects = bench.change(lambda part, out: part.move_all("right", "left", out))
    assert forwarded(effects) == [("left", 1, 1)]
    assert bench.node.measure()["events_lost_total"] == 0


def test_dropping_counts_what_is_given_up() -> None:
    bench = Changing("none")
    bench.change(lambda part, out: part.suspend("right"))
    bench.say("left", Forward(1, batch(1, 2, **T)))
    bench.change(lambda part, out: part.drop("right", out))
    assert bench.node.measure()["events_lost_total"] == 2


def test_a_copy_that_came_around_a_failure_is_not_sent_to_a_neighbour_that_is_held_back() -> None:
    """It may not know yet that this broker is its neighbour, and would take that for a mistake."""
    bench = Changing("bypass+buffered")
    router: Any = bench.neighbours.router
    router.match = lambda source, events: {"right": list(range(len(events)))}
    ways: Any = bench.forwarding._ways
    ways.carries_events = lambda peer: True
    assert forwarded(bench.say("left", Forward(0, batch(1, **T)))) == [("right", 0, 1)]
    bench.change(lambda part, out: part.suspend("right"))
    assert forwarded(bench.say("left", Forward(0, batch(2, **T)))) == []
    ways.carries_events = lambda peer: False
    bench.forwarding.on_forward("left", Forward(0, batch(3, **T)), bench.out)
    ways.carries_events = lambda peer: True  # its link has become good in the turn
    assert forwarded(bench.handle()) == []


def test_what_was_to_go_around_a_link_that_has_become_good_in_the_turn_goes_over_it_with_a_number() -> None:
    """Where nothing is stored, events without a number come by detours only."""
    bench = Changing("bypass")
    bench.wants("right")
    ways: Any = bench.forwarding._ways
    ways.carries_events = lambda peer: False
    forwarding = bench.forwarding
    forwarding.on_forward("left", Forward(1, batch(1, **T)), bench.out)
    ways.carries_events = lambda peer: True
    assert forwarded(bench.handle()) == [("right", 1, 1)]


def test_what_comes_when_a_link_has_become_good_in_the_turn_goes_behind_what_was_to_go_around_it() -> None:
    bench = Changing("bypass")
    bench.wants("right")
    ways: Any = bench.forwarding._ways
    ways.carries_events = lambda peer: False
    bench.forwarding.on_forward("left", Forward(1, batch(1, **T)), bench.out)
    ways.carries_events = lambda peer: True
    effects = bench.say("left", Forward(2, batch(2, **T)))
    (forward,) = [message for message in bench.told(effects, "right") if isinstance(message, Forward)]
    assert (forward.first, forward.event_ids()) == (1, ["p/1/1", "p/1/2"])


@pytest.mark.parametrize("level", LEVELS)
def test_events_wait_until_a_neighbour_has_our_map(level: str) -> None:
    """By the one that it has, it may be no neighbour in the tree."""
    bench = Changing(level)
    acquaintances: Any = bench.forwarding._acquaintances
    del acquaintances.greeted["right"]
    bench.change(lambda part, out: part.drop("right", out), lambda part, out: part.add("right", out))
    assert forwarded(bench.say("left", Forward(1, batch(1, **T)))) == []
    bench.forwarding.on_neighbour_accepted(NeighbourAccepted("right", 1), bench.out)
    assert forwarded(bench.handle()) == [("right", 1, 1)]


def test_what_a_neighbour_tells_whose_place_was_taken_is_known_as_from_who_took_it_until_that_one_tells_all() -> None:
    """Events that it was sent under an advertisement come over its link, and may be ahead of the taker's word."""
    bench = NetworkBench("buffered")
    bench.meet("left", "right")
    bench.say("right", Routes(full=True))
    neighbours: Any = bench.neighbours
    roster = neighbours._roster
    roster.map = replace(roster.map, steps=(Move("middle", "left", "right"),))
    roster.is_on_side = lambda broker, source: True
    neighbours.take_place("left", "right", None, bench.out)
    bench.handle()
    effects = bench.say("left", Routes([("left.1.1", "topic = 't'")], [], ["left.1.0"], ticket=7))
    assert bench.told(effects, "left") == []
    assert list(neighbours.router.advertisements.by_source["right"]) == ["left.1.1"]
    bench.say("right", Routes(full=True))
    bench.say("left", Routes([("left.1.2", "topic = 'u'")]))
    assert list(neighbours.router.advertisements.by_source["right"]) == []
