"""What was found by playing against the cycle: each scenario failed once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast
from unittest.mock import Mock

import pytest

from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.outbox import Complete, Outbox, RecordingOutbox
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.network_map import (
    AddBroker,
    Change,
    NetworkMember,
    ReplaceBroker,
    StandInMode,
    StandInProtocol,
    founding_map,
    planned,
)
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import ServiceLevels
from holdfast.schemes.tree.standin.cycle.assembly import Cycle
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Given, Provide, Provided, Release, TakeErrand
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.messages import Promised, Reserved
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded, Looked
from holdfast.schemes.tree.standin.cycle.steward import Steward
from holdfast.sim.run import header_of, run_scenario
from holdfast.sim.scenario import Action, Broker, Client, Fault, Kill, Operate, Pause, Publish, Scenario, ScenarioEvent
from holdfast.topology.generators import Kind
from holdfast.trace.schema import Row
from tests.standin.star import Played, play

SOON: Final = {"unreachable_ms": 1_500, "start_ms": 2_000}
FOR_EVER: Final = 0


def play_network(
    members: Sequence[str],
    links: Sequence[tuple[str, str]],
    faults: Sequence[Fault],
    *,
    operations: Sequence[Operate] = (),
    spares: Sequence[str] = ("r",),
    settings: dict[str, Any] | None = None,
    clients: Sequence[Client] = (),
    actions: Sequence[Action] = (),
    slow_us: dict[str, int] | None = None,
    until_ms: int = 20_000,
) -> Played:
    slow = slow_us or {}
    scenario = Scenario(
        name="found",
        seed=1,
        brokers=[
            *(Broker(id=name, durable=True, service_us_per_message=slow.get(name, 0)) for name in members),
            *(Broker(id=name, durable=True, spare=True) for name in spares),
        ],
        links=list(links),
        settings={"stand_ins": True, "sla": True, "covering": False, **SOON, **(settings or {})},
        clients=list(clients),
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=list(faults),
        operations=list(operations),
        safety_ms=until_ms,
        liveness_ms=30_000,
        checkers=["only-matching", "at-most-once", "map-history"],
    )
    rows: list[Row] = []

    class Rows:
        def see(self, row: Row) -> None:
            rows.append(row)

    outcome = run_scenario(scenario, None, [Rows()], stop_at_violation=False)
    wrong = [outcome.broken] if outcome.broken else [str(violation) for violation in outcome.violations]
    return Played(rows, wrong, header_of(scenario))


def members_of(played: Played, broker: str) -> list[str]:
    """By the last map that a broker adopted."""
    adopted = [row for row in played.told("map-adopted") if row.node == broker]
    return list(adopted[-1].detail["members"])


def numbered(count: int) -> list[str]:
    return [f"b{number:02}" for number in range(1, count + 1)]


@pytest.mark.parametrize("kind", [Kind.CHAIN, Kind.STAR])
def test_more_brokers_than_strangers_are_kept_agree_and_complain(kind: Kind) -> None:
    """Whoever sees to it calls all others, and is called by all neighbours of the broker that failed: far more than a
    broker keeps links to strangers."""
    names = numbered(30)
    inner = names[5] if kind is Kind.CHAIN else names[1]
    links = list(pairwise(names))
    if kind is Kind.STAR:
        links = [(inner, name) for name in names if name != inner]
    played = play_network(names, links, [Kill(at_ms=3_000, for_ms=FOR_EVER, host=inner, for_ever=True)])
    assert played.wrong == []
    assert "r" in members_of(played, names[0])
    assert inner not in members_of(played, names[0])


# b1 keeps the map and is away when b3 fails, so that b2 sees to it; b1 has agreed to that before b5, which stands
# still, answers. The operator's word comes to b1 in between.
BACK_IN_TIME: Final[list[Fault]] = [
    Kill(at_ms=3_000, for_ms=FOR_EVER, host="b3", for_ever=True),
    Kill(at_ms=4_600, for_ms=1_100, host="b1"),
    Pause(at_ms=5_600, for_ms=1_400, host="b5"),
]
FIVE: Final = ["b1", "b2", "b3", "b4", "b5"]
THROUGH_B3: Final = [("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b5", "b1")]


@pytest.mark.parametrize("at_ms", range(7_000, 7_100, 10))
@pytest.mark.parametrize("action", ["replace", "remove-broker", "add-link"])
def test_what_an_operator_asks_of_one_that_has_agreed_makes_no_second_map(action: str, at_ms: int) -> None:
    told = {
        "replace": {"id": "b3", "by": "r2", "address": "r2", "peer_address": "r2"},
        "remove-broker": {"id": "b3", "lost": "yes"},
        "add-link": {"one": "b1", "other": "b4", "instead_of": "b4,b5"},
    }[action]
    asked = [Operate(at_ms=at_ms, action=action, told=told)]
    played = play_network(FIVE, THROUGH_B3, BACK_IN_TIME, operations=asked, spares=("r", "r2"))
    assert played.wrong == []


@pytest.mark.parametrize(
    ("action", "told", "is_refused"),
    [
        ("add-link", {"one": "b1", "other": "b5", "instead_of": "b4,b5"}, True),
        ("replace", {"id": "b3", "by": "r", "address": "r", "peer_address": "r"}, True),
        ("replace", {"id": "b2", "by": "r", "address": "r", "peer_address": "r"}, False),
        ("remove-broker", {"id": "b3", "lost": "yes"}, True),
        ("remove-broker", {"id": "b3", "lost": "yes", "also_lost": "b2"}, False),
    ],
)
def test_who_has_agreed_makes_no_map_but_without_the_one_that_asked(
    action: str, told: dict[str, str], is_refused: bool
) -> None:
    members = [NetworkMember(name, f"{name}:1", f"{name}:2") for name in FIVE]
    roster, memory = Roster("b1", founding_map(members, CHAIN), {}), Memory("b1", False, {})
    nothing = cast("Any", Mock())
    cycle = Cycle(roster, memory, (), nothing, nothing, nothing, nothing)
    assert cycle.against(action, told) == ""
    memory.promise(Promised(0, "b2", "digest"), RecordingOutbox())
    problem = cycle.against(action, told)
    assert bool(problem) == is_refused
    assert not is_refused or problem.startswith("b2 is about to have a broker replaced, and b1 has agreed")


@pytest.mark.parametrize("at_ms", range(5_000, 5_100, 10))
def test_a_broker_that_stood_still_blames_no_neighbour_for_it(at_ms: int) -> None:
    """It looked when a burst waited, and looks again when it goes on: in between nothing was sent."""
    burst = [
        Publish(at_ms=at, client="p", events=[ScenarioEvent(topic="t", attributes={"n": at})])
        for at in range(4_950, 5_050)
    ]
    settings = {"sla": True, "queue_events": 20, "oldest_ms": 0, "sustained_ms": 2_000}
    stands_still = [Pause(at_ms=at_ms, for_ms=6_000, host="n1")]
    played = play([], stands_still, settings=settings, slow_us=4_000, every_ms=100, more=burst)
    assert played.wrong == []
    assert [row.detail for row in played.told("complaint") if row.node == "n1"] == []


@pytest.mark.parametrize("how", [{"protocol": "increm"}, {"mode": "ms-ro"}])
def test_where_events_are_stored_nobody_is_replaced_in_a_way_that_mixes_them_also_by_whoever_is_free(
    how: dict[str, str],
) -> None:
    asked = Operate(at_ms=3_000, action="replace", told={"id": "f", "mode": "ms", **how})
    played = play([asked], settings={"sla": True}, level="buffered", until_ms=10_000)
    assert played.wrong == []
    assert [row.detail["problem"][:31] for row in played.told("change-refused")] == ["where events are stored, they k"]


def test_a_spare_is_not_kept_for_one_that_needs_it_no_more() -> None:
    """b5 fails as soon as b3, for which the spare was kept, answers again."""
    chain = list(pairwise(FIVE))
    faults = [Kill(at_ms=3_000, for_ms=4_200, host="b3"), Kill(at_ms=5_000, for_ms=FOR_EVER, host="b5", for_ever=True)]
    played = play_network(FIVE, chain, faults, until_ms=12_000)
    assert played.wrong == []
    assert [row.detail["what"] for row in played.told("standin") if "is kept for" in row.detail["what"]] == []
    assert "r" in members_of(played, "b1")


def test_a_spare_that_has_given_a_place_back_is_free_at_once() -> None:
    told = [
        Operate(at_ms=2_000, action="relieve", told={"id": "b3"}),
        Operate(at_ms=6_000, action="hand-back", told={"id": "b3", "address": "b3", "peer_address": "b3"}),
    ]
    faults = [Kill(at_ms=8_000, for_ms=FOR_EVER, host="b1", for_ever=True)]  # who has asked for the spare
    played = play_network(FIVE, list(pairwise(FIVE)), faults, operations=told, until_ms=13_000)
    # What is asked for without a name is no change that could follow from a map, for who checks maps.
    assert [wrong for wrong in played.wrong if "by=''" not in wrong] == []
    assert [row.detail["what"] for row in played.told("standin") if "is kept for" in row.detail["what"]] == []
    assert "r" in members_of(played, "b2")


CHAIN: Final = list(pairwise(FIVE))


@pytest.mark.parametrize("after_ms", [1, 5, 9, 13, 17])
@pytest.mark.parametrize("who", ["b1", "b2", "b3", "b4", "r"])
def test_a_place_that_is_handed_back_is_so_in_the_end_whoever_fails_in_the_middle(who: str, after_ms: int) -> None:
    """Another spare stands in then: the stand-in that was to leave, leaves all the same."""
    settings = {"calm_ms": 2_000}
    fails = Kill(at_ms=3_000, for_ms=6_000, host="b3")
    calm = play_network(FIVE, CHAIN, [fails], spares=("r", "r2"), settings=settings)
    begun = next(row.t for row in calm.told("map-adopted") if row.detail["number"] == 1_003) // 1_000_000
    again = Kill(at_ms=begun + after_ms, for_ms=12_000, host=who)
    played = play_network(FIVE, CHAIN, [fails, again], spares=("r", "r2"), settings=settings, until_ms=45_000)
    assert played.wrong == []
    assert sorted(members_of(played, "b5")) == FIVE


def test_one_that_is_down_is_not_relieved() -> None:
    asked = Operate(at_ms=4_000, action="relieve", told={"id": "b3"})
    faults = [Kill(at_ms=3_000, for_ms=FOR_EVER, host="b3", for_ever=True)]
    played = play_network(FIVE, CHAIN, faults, operations=[asked], spares=("r", "r2"))
    assert [row.detail["action"] for row in played.told("change-wanted")] == ["replace"]
    assert sorted(members_of(played, "b5")) == ["b1", "b2", "b4", "b5", "r"]


class _Far:
    """Calls of one that is alone: nobody answers but who is provided."""

    def reach(self, peer: str, out: Outbox, address: str = "") -> bool:
        return peer == "x"

    def is_absent(self, peer: str) -> bool:
        return True


class _Providing:
    """A steward whose stand-in the program beside it provides, when that one has agreed to stand in for b3."""

    def __init__(self) -> None:
        members = [NetworkMember(name, f"{name}:1", f"{name}:2") for name in FIVE]
        self.roster = Roster("b1", founding_map(members, CHAIN), {})
        self.out = RecordingOutbox()
        self.desk = ErrandDesk()
        self.desk.on_take_errand(1, TakeErrand(), self.out)
        fakes: Any = Mock()
        fakes.against.return_value, fakes.free.return_value, fakes.is_asking = "", iter(()), False
        fakes.obstacle.return_value = ""
        memory = Memory("b1", False, {})
        self.steward = Steward(
            ServiceLevels(), self.roster, fakes, cast("Any", _Far()), fakes, fakes, fakes, self.desk, memory
        )
        assert self.steward.ask("b3", StandInMode.FAILOVER, StandInProtocol.SYNCH, self.out) == ""
        for _ in range(2):
            self.steward.on_looked(Looked(), self.out)
        assert self.given() == [Provide("b3", tuple(FIVE))]
        self.spare = NetworkMember("x", "x:1", "x:2")
        self.steward.on_errand_ended(ErrandEnded(1, Provided(self.spare, "by hand")), self.out)
        self.steward.on_reserved("x", Reserved("b3"), self.out)

    def given(self) -> list[object]:
        """Errands that were handed out since it was last asked."""
        done = [effect.result for effect in self.out.take_effects() if isinstance(effect, Complete)]
        self.desk.on_take_errand(2, TakeErrand(), self.out)
        return [one.errand for one in done if isinstance(one, Given)]

    def change_map(self, change: Change) -> None:
        before = self.roster.map
        self.roster.adopt(planned(before, change))
        self.steward.on_map_changed(MapChanged(before), self.out)


def test_one_that_was_provided_and_stands_in_by_another_map_is_not_released() -> None:
    providing = _Providing()
    providing.change_map(ReplaceBroker("b3", "x", "x:1", "x:2"))
    assert providing.given() == []
    assert not providing.steward.is_busy


def test_one_that_was_provided_for_a_map_that_is_old_is_released_before_another_is_looked_for() -> None:
    providing = _Providing()
    providing.change_map(AddBroker("b6", "b6:1", "b6:2", "b5"))
    assert providing.given() == [Release("x")]
    assert providing.steward.is_busy


def test_one_that_is_provided_late_and_again_is_not_released_while_it_is_wanted() -> None:
    providing = _Providing()
    providing.steward.on_errand_ended(ErrandEnded(0, Provided(providing.spare)), providing.out)
    assert providing.given() == []


def test_that_one_did_not_answer_long_ago_says_nothing_of_now() -> None:
    links: Any = Mock()
    links.reaches.return_value = links.wants.return_value = False
    roster: Any = Mock()
    roster.peer_address.return_value = "b5:2"
    calls, out = Calls(roster, links, cast("Any", Mock())), RecordingOutbox()
    out.begin(now=0, wall=0)
    calls.reach("b5", out)
    calls.on_connect_failed(ConnectFailed("b5", "b5:2", "refused"), out)
    assert calls.is_absent("b5")
    out.begin(now=3_600 * SECOND, wall=0)
    assert not calls.reach("b5", out)  # it is called
    assert not calls.is_absent("b5")
    calls.on_connect_failed(ConnectFailed("b5", "b5:2", "refused"), out)
    assert calls.is_absent("b5")


def test_what_fails_again_and_again_for_one_reason_is_remembered_once() -> None:
    """Nobody is to spare for a minute: history is not full of it."""
    faults = [Kill(at_ms=3_000, for_ms=60_000, host="b3")]
    played = play_network(FIVE, CHAIN, faults, spares=(), until_ms=70_000)
    assert played.wrong == []
    said = [row.detail["what"] for row in played.told("standin")]
    assert [text for text in said if "nobody is to spare" in text] != []
    assert len(said) <= 3
