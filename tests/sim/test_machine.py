"""Hosts: lives, timers, pauses, the pace of turns, and the order in which effects are carried out."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

import pytest

from holdfast.kernel.inputs import Durable, LinkDown, LinkUp, Requested, Started, StorageFailed, TimerFired
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import Outbox, RecordingOutbox, Stop
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.sim.machine import Machine, Program
from holdfast.trace import schema
from tests.sim.scripted import DELAY, Place, World, message, record, sends

KEY = ("part", "name")


def _kinds(place: Place) -> list[list[str]]:
    """The turns of a place, as the names of their inputs."""
    return [[type(event).__name__ for event in turn.inputs] for turn in place.turns]


# -------------------------------------------------------------------------------------------------------------- life
def test_incarnations_rise_strictly() -> None:
    world = World()
    a = world.add("a")
    for power_cut in (True, False, False, True):
        a.host.stop(power_cut)
        a.host.start()
    incarnations = [event.incarnation for event in a.got(Started)]
    assert incarnations == sorted(set(incarnations))
    assert len(incarnations) == 5


def test_a_host_that_runs_is_not_started() -> None:
    with pytest.raises(InvariantBroken):
        World().add("a").host.start()


def test_a_host_that_is_stopped_twice_is_stopped() -> None:
    world = World()
    a = world.add("a")
    a.host.stop(power_cut=False)
    life = a.host.life
    a.host.stop(power_cut=True)
    assert (a.host.life, a.host.dark, a.host.running) == (life, False, False)


def test_nothing_reaches_a_node_that_was_stopped() -> None:
    world = World()
    a, b = world.pair()
    a.do(lambda out: out.set_timer(KEY, SECOND))
    b.do(sends("a", 1))
    turns = len(a.turns)
    a.host.stop(power_cut=False)
    a.do(sends("b", 2))
    a.host.resume()
    world.run_for(10 * SECOND)
    assert len(a.turns) == turns
    assert b.numbers() == []


def test_what_waited_for_the_disk_in_an_earlier_life_never_leaves() -> None:
    world = World()
    a, b = world.add("a", sync_us=(1_000, 1_000)), world.add("b")
    for number in (1, 2):
        world.link(a, "b")

        def append_and_send(out: Outbox, number: int = number) -> None:
            out.append("log", record(number))
            out.send("b", message(number))

        a.do(append_and_send)
        if number == 1:
            a.host.stop(power_cut=False)
            a.host.start()
    world.run_for(SECOND)
    assert b.numbers() == [2]


def test_every_life_draws_from_a_generator_of_its_own() -> None:
    drawn = []

    def make(rng: Random, streams: object) -> Place:
        drawn.append(rng.random())
        return place.make(rng, {})  # type: ignore[return-value]

    for _ in range(2):
        world = World(seed=9)
        place = world.add("a", start=False)
        place.host._make = make  # type: ignore[assignment]
        place.host.start()
        place.host.stop(power_cut=False)
        place.host.start()
    assert drawn[:2] == drawn[2:]
    assert len(set(drawn)) == 2


# ------------------------------------------------------------------------------------------------------------- timers
def test_a_timer_fires_once_at_its_time() -> None:
    world = World()
    a = world.add("a")
    a.do(lambda out: out.set_timer(KEY, 5))
    a.do(lambda out: out.set_timer((*KEY, "peer"), 7))
    world.run_for(SECOND)
    assert [(turn.time, turn.inputs) for turn in a.turns[3:]] == [
        (5, [TimerFired(KEY)]),
        (7, [TimerFired((*KEY, "peer"))]),
    ]


@pytest.mark.parametrize(("first", "second"), [(5, 9), (9, 5), (5, 5)])
def test_a_timer_that_is_set_again_is_replaced(first: int, second: int) -> None:
    world = World()
    a = world.add("a")
    a.do(lambda out: out.set_timer(KEY, first))
    a.do(lambda out: out.set_timer(KEY, second))
    world.run_for(SECOND)
    assert a.times(TimerFired) == [second]


def test_the_last_word_of_a_turn_about_a_timer_counts() -> None:
    world = World()
    a = world.add("a")

    def set_cancel_set(out: Outbox) -> None:
        out.set_timer(KEY, 5)
        out.cancel_timer(KEY)
        out.set_timer(KEY, 8)
        out.set_timer(("other",), 3)
        out.cancel_timer(("other",))

    a.do(set_cancel_set)
    world.run_for(SECOND)
    assert [(turn.time, turn.inputs) for turn in a.turns[2:]] == [(8, [TimerFired(KEY)])]


def test_a_cancelled_timer_does_not_fire() -> None:
    world = World()
    a = world.add("a")
    a.do(lambda out: out.set_timer(KEY, 5))
    a.do(lambda out: out.cancel_timer(KEY))
    a.do(lambda out: out.cancel_timer(("never", "set")))
    world.run_for(SECOND)
    assert a.got(TimerFired) == []


def test_timers_are_lost_in_a_crash() -> None:
    world = World()
    a = world.add("a")
    a.do(lambda out: out.set_timer(KEY, 5))
    a.host.stop(power_cut=False)
    a.host.start()
    world.run_for(SECOND)
    assert a.got(TimerFired) == []


def test_a_timer_in_the_past_stops_the_node() -> None:
    world = World()
    a = world.add("a")
    world.run_for(SECOND)
    with pytest.raises(InvariantBroken, match="future"):
        a.do(lambda out: out.set_timer(KEY, -1))


# ------------------------------------------------------------------------------------------------------------- pauses
def test_a_paused_host_takes_in_everything_at_once_afterwards() -> None:
    world = World()
    a, b = world.pair()
    a.do(lambda out: out.set_timer(KEY, 3 * MILLISECOND))
    turns = len(a.turns)
    a.host.pause()
    b.do(sends("a", 1))
    world.run_for(2 * MILLISECOND)
    b.do(sends("a", 2))
    b.do(lambda out: out.disconnect(1, "enough"))
    world.run_for(SECOND)
    assert len(a.turns) == turns
    a.host.resume()
    world.run_for(SECOND)
    assert _kinds(a)[turns:] == [["Received", "TimerFired", "Received", "LinkDown"]]
    assert a.numbers() == [1, 2]


def test_a_paused_host_says_nothing() -> None:
    world = World()
    a, b = world.add("a", sync_us=(1_000, 1_000)), world.add("b")
    world.link(a, "b")

    def append_and_send(out: Outbox) -> None:
        out.append("log", record(1))
        out.send("b", message(1))

    a.do(append_and_send)
    a.host.pause()
    world.run_for(SECOND)
    assert b.numbers() == []
    a.host.resume()
    world.run_for(SECOND)
    assert b.numbers() == [1]
    assert [event.token for event in a.got(Durable)] == [1]


def test_a_pause_ends_with_the_life() -> None:
    world = World()
    a = world.add("a")
    a.host.pause()
    a.host.stop(power_cut=False)
    a.host.start()
    a.do(lambda out: None)
    assert _kinds(a) == [["Started"], ["Started"], ["Requested"]]


def test_no_one_is_paused_who_does_not_run() -> None:
    world = World()
    a = world.add("a")
    a.host.stop(power_cut=False)
    a.host.pause()
    a.host.start()
    a.do(lambda out: None)
    assert _kinds(a) == [["Started"], ["Started"], ["Requested"]]


def test_a_host_that_is_paused_again_at_once_takes_in_nothing_in_between() -> None:
    world = World()
    a = world.add("a")
    a.host.pause()
    a.do(lambda out: None)
    a.host.resume()
    a.host.pause()
    world.run_for(SECOND)
    assert _kinds(a) == [["Started"]]
    a.host.resume()
    world.run_for(SECOND)
    assert _kinds(a) == [["Started"], ["Requested"]]


# --------------------------------------------------------------------------------------------------------------- pace
def test_inputs_are_gathered_into_one_turn() -> None:
    world = World()
    a = world.add("a")
    a.host.set_pace(0, 0, 10 * MILLISECOND)
    for time in (0, 3, 9, 11):
        world.at(time * MILLISECOND, lambda: a.do(lambda out: None))
    world.run_for(SECOND)
    assert [(turn.time // MILLISECOND, len(turn.inputs)) for turn in a.turns] == [(0, 1), (10, 3), (21, 1)]


def test_a_busy_host_takes_in_what_came_meanwhile_when_it_is_through() -> None:
    world = World()
    a = world.add("a")
    a.host.set_pace(4 * MILLISECOND, 3 * MILLISECOND, 0)
    for time in (0, 1, 2, 30):
        world.at(time * MILLISECOND, lambda: a.do(lambda out: None))
    world.run_for(SECOND)
    # One input takes 4 + 3 ms, two take 4 + 6.
    assert [(turn.time // MILLISECOND, len(turn.inputs)) for turn in a.turns[1:]] == [(0, 1), (7, 2), (30, 1)]
    assert a.host._busy_until == 37 * MILLISECOND


def test_messages_count_one_by_one_for_the_time_that_a_turn_takes() -> None:
    world = World()
    a, b = world.pair()
    a.host.set_pace(0, 1 * MILLISECOND, 0)
    b.do(sends("a", *range(5)))
    since = world.now + DELAY
    world.at(since + 1, lambda: a.do(lambda out: None))
    world.run_for(SECOND)
    assert a.times(Requested)[-1] == since + 5 * MILLISECOND


def test_what_a_turn_brings_about_waits_until_the_host_is_through() -> None:
    world = World()
    a, _ = world.pair()
    a.host.set_pace(10 * MILLISECOND, 0, 0)
    since = world.now
    a.do(lambda out: out.disconnect(1, "enough"))
    world.run_for(SECOND)
    assert a.times(LinkDown) == [since + 10 * MILLISECOND]


def test_turns_are_never_nested() -> None:
    depth = 0
    world = World()

    class Greedy(Program):
        def on_complete(self, host: Machine, request: int, result: object) -> None:
            if request < 3:
                host.request(0, lambda out: step(out, request + 1))

    def step(out: Outbox, number: int) -> None:
        nonlocal depth
        assert depth == 0
        depth += 1
        out.complete(number, None)
        out.disconnect(1, "enough")
        depth -= 1

    a, _ = world.pair()
    a.host._program = Greedy()
    turns = len(a.turns)
    a.do(lambda out: step(out, 1))
    assert len(a.turns) == turns + 1
    world.run_for(SECOND)
    assert _kinds(a)[turns:] == [["Requested"], ["Requested", "LinkDown"], ["Requested"]]


# ------------------------------------------------------------------------------------------------------------ effects
def test_effects_of_a_turn_are_carried_out_in_the_promised_order() -> None:
    world = World(tracing=True)
    a, b = world.pair()
    world.rows.rows.clear()

    def everything(out: Outbox) -> None:
        out.disconnect(1, "enough")
        sends("b", 1, 2)(out)
        out.note("control", what="noted")

    a.do(everything)
    world.run_for(SECOND)
    assert [type(row) for row in world.rows.rows] == [schema.Control, schema.Hop, schema.Hop]
    assert b.numbers() == [1, 2]
    assert [type(event).__name__ for turn in b.turns for event in turn.inputs][-2:] == ["Received", "LinkDown"]
    assert [(row.message, row.source, row.target, row.what) for row in world.rows.of(schema.Hop)] == [
        (1, "a", "b", "Subscribe"),
        (2, "a", "b", "Subscribe"),
    ]


def test_a_link_that_was_closed_is_gone_for_both_with_one_report() -> None:
    world = World()
    a, b = world.pair()

    def twice(out: Outbox) -> None:
        out.disconnect(1, "enough")
        out.disconnect(1, "really")
        out.disconnect(99, "no such link")

    a.do(twice)
    world.run_for(SECOND)
    assert a.got(LinkDown) == [LinkDown(1, "b", "enough")]
    assert b.got(LinkDown) == [LinkDown(1, "a", "closed by the other side")]


def test_what_is_queued_before_there_is_a_link_leaves_when_there_is_one() -> None:
    world = World()
    a, b = world.add("a"), world.add("b")
    a.do(sends("b", 1, 2))
    world.run_for(SECOND)
    world.link(a, "b")
    assert b.numbers() == [1, 2]


def test_what_was_meant_for_an_old_link_waits_until_the_node_knows_of_the_new_one() -> None:
    world = World()
    a, b = world.add("a", {LinkDown: lambda down, out: out.drop_queue("b")}, sync_us=(5_000, 5_000)), world.add("b")
    world.link(b, "a")
    a.host.set_pace(0, 0, 50 * MILLISECOND)

    def append_and_send(out: Outbox) -> None:
        out.append("log", record(1))
        out.send("b", message(1))

    a.do(append_and_send)
    world.run_for(50 * MILLISECOND)
    # The new link is there before the sync is through, but the node hears of it only after.
    b.do(lambda out: out.connect("a", "a"))
    world.run_for(SECOND)
    assert [type(event) for turn in a.turns for event in turn.inputs if isinstance(event, LinkUp | LinkDown)] == [
        LinkUp, LinkDown, LinkUp,
    ]  # fmt: skip
    assert b.numbers() == []


# ------------------------------------------------------------------------------------------------------------ stopping
def test_a_node_that_asks_to_be_stopped_is_stopped_after_the_turn() -> None:
    stopped: list[str] = []
    world = World(tracing=True)
    a, b = world.add("a", sync_us=(1_000, 1_000)), world.add("b")
    world.link(a, "b")
    world.simulation.when_stopped = lambda host: stopped.append(host.name)
    world.rows.rows.clear()

    def stop(out: Outbox) -> None:
        out.stop("can't go on")
        out.stop("the second reason does not count")
        sends("b", 1)(out)
        out.append("log", record(1))
        out.send("b", message(2))
        out.set_timer(KEY, 5)

    turns = len(a.turns)
    a.do(stop)
    assert not a.host.running
    assert stopped == ["a"]
    world.run_for(SECOND)
    assert len(a.turns) == turns + 1
    assert b.numbers() == [1]  # what waited for the disk never left
    assert [down.reason for down in b.got(LinkDown)] == ["reset by the other side"]
    assert [row for row in world.rows.rows if not isinstance(row, schema.Hop)] == [
        schema.Control(t=a.turns[turns].time, node="a", what="stopped", detail={"reason": "can't go on"}),
        schema.Fault(t=a.turns[turns].time, component="a", state="crashed"),
    ]
    a.host.start()
    assert a.stored == {"log": [1]}
    a.do(lambda out: None)
    assert a.host.running


def test_a_host_that_stops_over_an_old_link_has_no_new_one() -> None:
    world = World()
    a, b = world.pair(b={LinkDown: lambda down, out: out.stop("I am lost without a")})
    a.do(lambda out: out.connect("", "b"))
    world.run_for(SECOND)
    assert not b.host.running
    assert [up.link for up in a.got(LinkUp)] == [1, 2]
    assert [down.link for down in a.got(LinkDown)] == [1, 2]
    b.host.start()
    world.run_for(SECOND)
    assert b.host.end_to("a") is None


class _Heedless(Part):
    """A part that does not listen to its disk."""

    name: ClassVar[str] = "heedless"

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def on_storage_failed(self, failed: StorageFailed, out: Outbox) -> None:
        self._log.append(failed.reason)


@pytest.mark.parametrize("heedless", [False, True])
def test_a_node_of_parts_stops_when_its_storage_fails(heedless: bool) -> None:
    log: list[str] = []
    parts: Sequence[Part] = [_Heedless(log)] if heedless else []
    out = RecordingOutbox()
    Assembly(parts).handle([StorageFailed("no space")], out)
    assert out.take_effects() == [Stop("the storage failed: no space")]
    assert log == (["no space"] if heedless else [])


def test_the_wall_clock_of_a_host_may_be_wrong() -> None:
    walls: list[tuple[int, int]] = []
    world = World()
    a = world.add("a")
    for offset in (0, -3_600 * SECOND, 5):
        a.host.wall_offset = offset
        world.run_for(SECOND)
        a.do(lambda out: walls.append((out.now, out.wall - world.simulation.wall)))
    assert walls == [(SECOND, SECOND), (2 * SECOND, 2 * SECOND - 3_600 * SECOND), (3 * SECOND, 3 * SECOND + 5)]
