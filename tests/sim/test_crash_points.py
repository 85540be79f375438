"""One change of a small network, and something that goes wrong after just one turn: any turn of any broker in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.routing.messages import MoveStage
from holdfast.protocols.routing.network_map import AddBroker, AddLink, Change, Link, Move, RemoveBroker
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.moving import Moving
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Fault, Kill, Scenario
from tests.sim.crash_points import Mishap, play, points, small_change

BUFFERED, BYPASSED, PERIODIC = Reliability.BUFFERED, Reliability.BYPASS_BUFFERED, Reliability.PERIODIC
TURNS = 90  # of each broker, from when the change is asked for; it is done by then
QUICK = 12  # points of a case and a seed in every run
FULL = 75  # in full ones
LONG = 300  # and in campaigns, with other seeds


class Case(NamedTuple):
    links: list[Link]
    changes: dict[int, Change]  # by when they are asked for
    concerned: tuple[str, ...]
    spares: tuple[str, ...] = ()
    beside: tuple[Link, ...] = ()  # where the level detours

    def scenario(self, level: Reliability, seed: int, **options: Any) -> Scenario:
        links = [*self.links, *self.beside] if level.detours else self.links
        return small_change(level, links, self.changes, seed, self.spares, **options)


CHAIN = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
SLID = AddLink("b1", "b3", ("b1", "b2"))
THREE = ("b1", "b2", "b3")
CASES = {
    "slide": Case([*CHAIN[:2], ("b1", "b4")], {600: SLID}, THREE, (), (("b4", "b3"),)),
    "between": Case(CHAIN[:2], {600: AddBroker("s1", "s1", "s1", "b2", "b3")}, ("b2", "b3", "s1"), ("s1",)),
    "inner": Case([*CHAIN[:2], ("b2", "b4")], {600: RemoveBroker("b2")}, ("b1", "b2", "b3", "b4")),
    "replace": Case(CHAIN, {600: AddLink("b1", "b4", ("b2", "b3"))}, ("b1", "b2", "b3", "b4")),
    "two": Case(CHAIN, {600: SLID, 640: AddLink("b2", "b4", ("b2", "b3"))}, ("b1", "b2", "b3", "b4")),
    "keeper": Case([("b1", "b2"), ("b1", "b3"), ("b2", "b4")], {600: AddLink("b2", "b3", ("b2", "b1"))}, THREE),
}
# An operator who was not answered may ask for the first again when the second is done: so it is only played as below.
AND_BACK = Case(CHAIN, {600: SLID, 640: AddLink("b1", "b2", ("b1", "b3"))}, THREE)


def explore(case: Case, level: Reliability, seed: int, most: int) -> None:
    """So many points, evenly over all that there are."""
    scenario = case.scenario(level, seed)
    outcome, played = play(scenario)
    assert outcome.problem == ""
    found = list(points(played, case.concerned, TURNS))
    step = max(1, len(found) // most)
    for mishap in found[seed % step :: step]:
        outcome, _ = play(scenario, mishap)
        assert outcome.problem == "", mishap


@pytest.mark.parametrize("level", [BUFFERED, BYPASSED])
def test_a_move_stands_what_goes_wrong_after_any_turn(level: Reliability) -> None:
    explore(CASES["slide"], level, 1, QUICK)


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("level", [BUFFERED, BYPASSED])
@pytest.mark.parametrize("name", CASES)
def test_changes_stand_what_goes_wrong_after_any_turn(name: str, level: Reliability, seed: int) -> None:
    explore(CASES[name], level, seed, FULL)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("level", [BUFFERED, BYPASSED])
@pytest.mark.parametrize("name", CASES)
def test_changes_stand_what_goes_wrong_after_many_more_turns(name: str, level: Reliability, seed: int) -> None:
    explore(CASES[name], level, seed, LONG)


# What was found so: the case, the level, the seed, and what went wrong.
FOUND: list[tuple[Case, Reliability, int, tuple[Mishap, ...]]] = [
    # What the broker that moves had told by way of old hid what others had advertised since.
    (CASES["inner"], BUFFERED, 19, ()),
    (CASES["inner"], BUFFERED, 3, (Mishap("b1", 39, 0),)),
    # Copies that came around went to who was held back, over a link that was good again.
    (CASES["slide"], BYPASSED, 1, (Mishap("b1", 8),)),
    (CASES["replace"], BYPASSED, 3, (Mishap("b1", 20, 3),)),
    # Whoever stood in for a neighbour was looked for in the tree of the map, and not in the one that events go along.
    (CASES["slide"], BYPASSED, 1, (Mishap("b2", 30),)),
    # New kept quiet towards old before that one had heard all, so that nothing more was sent to it.
    (AND_BACK, BYPASSED, 3, (Mishap("b3", 173, reset="b1"), Mishap("b3", 148, 0, 3), Mishap("b1", 71, None, 300))),
    # A broker that has moved was told what its own earlier life had advertised.
    (CASES["keeper"], BYPASSED, 3, (Mishap("b3", 31, None, 3), Mishap("b1", 27, 0, 40, also=("b2", "b3")))),
    # The broker did not listen to old any more when it had a new link to it.
    (CASES["replace"], BYPASSED, 11, (Mishap("b2", 26, None, 3),)),
    # It had been told everything by old, just before its link moved on.
    (CASES["slide"], BYPASSED, 22, (Mishap("b3", 23, reset="b2"), Mishap("b1", 19, 1))),
    # Broker and old had forgotten how far they were, and new had not.
    (
        CASES["replace"],
        PERIODIC,
        5,
        (Mishap("b2", 42, 0, 3), Mishap("b3", 35, 2, 300), Mishap("b3", 70, reset="b2")),
    ),
    # Where nothing is told again to who was restarted, new was not told again either, and waited for the word for ever.
    (
        CASES["slide"],
        Reliability.NONE,
        1,
        (Mishap("b2", 12, None, 700), Mishap("b1", 18, reset="b3"), Mishap("b3", 40)),
    ),
]


@pytest.mark.parametrize(("case", "level", "seed", "mishaps"), FOUND)
def test_what_went_wrong_once_is_stood(case: Case, level: Reliability, seed: int, mishaps: tuple[Mishap, ...]) -> None:
    outcome, _ = play(case.scenario(level, seed), *mishaps)
    assert outcome.problem == ""


def test_events_under_an_advertisement_that_came_while_a_move_waits_reach_the_broker_that_moves() -> None:
    """New is down for longer than publishers wait. What is advertised meanwhile is known to the broker before it gets
    the events under that which old still has for it."""
    topics = [*(f"x{number}" for number in range(40)), "v"]
    options = {"events_ms": 3_000, "safety_ms": 6_000, "gaps_ms": (20, 60, 150), "topics": topics, "subscribed": 12}
    outcome, _ = play(CASES["slide"].scenario(BUFFERED, 1, **options), Mishap("b3", 8, 3, 2_600))
    assert outcome.problem == ""


def loss(case: Case, level: Reliability, seed: int, lost: str, at_ms: int) -> Scenario:
    """A broker is lost for good while the change is under way, and declared lost. Which way events take then is new:
    those that wait on the old one may come later."""
    changes = {**case.changes, max(case.changes) + 90: RemoveBroker(lost, lost=True)}
    scenario = small_change(level, case.links, changes, seed, case.spares)
    faults: list[Fault] = [Kill(at_ms=at_ms, for_ms=0, host=lost, for_ever=True)]
    operations = [replace(operation, ends="", ends_after_ms=0) for operation in scenario.operations]
    checkers = [name for name in scenario.checkers if not name.startswith("publisher-order")]
    return replace(scenario, faults=faults, operations=operations, checkers=checkers)


def lose(name: str, level: Reliability, seed: int, times_ms: range) -> None:
    for lost in CASES[name].concerned:
        for at_ms in times_ms:
            outcome = run_scenario(loss(CASES[name], level, seed, lost, at_ms))
            assert outcome.problem == "", (lost, at_ms)


# What was found so: the case, who is lost, and when.
LOST = [
    ("inner", "b2", 610),  # new had put aside what the broker told, and threw it away
    ("slide", "b1", 610),  # what waited at the broker for new was for a neighbour of old, too
    ("replace", "b1", 635),  # who told such a neighbour its own entries was refused
    ("replace", "b3", 610),
]


@pytest.mark.parametrize(("name", "lost", "at_ms"), LOST)
def test_of_what_waits_nothing_is_lost_when_one_of_the_three_is(name: str, lost: str, at_ms: int) -> None:
    assert run_scenario(loss(CASES[name], BUFFERED, 2, lost, at_ms)).problem == ""


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("level", [BUFFERED, BYPASSED])
@pytest.mark.parametrize("name", ["slide", "between", "inner", "replace"])
def test_of_what_waits_nothing_is_lost_whenever_one_of_the_three_is(name: str, level: Reliability, seed: int) -> None:
    lose(name, level, seed, range(602, 650, 4))


class ForgetsItsStage(Moving):
    """The disk says how far a broker was, and it does not look."""

    def _resume(self, stage: MoveStage, move: Move, out: Outbox) -> None:
        pass


def test_a_broker_that_forgets_how_far_it_was_is_seen() -> None:
    factories = Factories(kit=BrokerKit(scheme=NetworkKit(moving=ForgetsItsStage)))
    scenario = CASES["slide"].scenario(BUFFERED, 1)
    _, played = play(scenario)
    found = list(points(played, ("b1",), 30))
    assert any(not play(scenario, mishap, factories=factories)[0].clean for mishap in found[::-4])
