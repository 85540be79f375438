"""What a broker tells operators of the network's map: what a change waits for, that it is no member, how its site file
differs."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import msgspec
import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Level, Note, Send
from holdfast.protocols.operating.messages import Change as ChangeAsked
from holdfast.protocols.operating.messages import ChangeBegun, Inspect, Inspected
from holdfast.protocols.routing.messages import MapAdopted
from holdfast.protocols.routing.network_map import (
    AddBroker,
    Change,
    HandBack,
    Leave,
    Move,
    NetworkMap,
    RemoveBroker,
    ReplaceBroker,
    StandInMode,
    Step,
    done,
    planned,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.mapping import held_up
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

GRAPH = BrokerGraph(("b1", "b2", "b3", "b4"), (("b1", "b2"), ("b2", "b3"), ("b3", "b4")))
ADDRESSES = {name: f"{name}:2" for name in (*GRAPH.brokers, "b8")}
FOUNDED = RoutingSettings(name="b2", graph=GRAPH).founding_map


def under_way(step: Step | None) -> NetworkMap:
    return msgspec.structs.replace(FOUNDED, number=1, steps=(step,) if step else ())


@pytest.mark.parametrize(
    ("step", "up", "suspected", "said"),
    [
        (None, [], [], ""),
        (Move("b3", "b2", "b1"), ["b1", "b3"], [], ""),
        (Move("b3", "b2", "b1"), ["b3"], [], "b2 has no link with b1"),
        (Move("b3", "b2", "b1"), [], [], "b2 has no link with b3 and b1"),
        (Move("b3", "b2", "b1"), ["b1"], ["b1"], "b2 has no link with b3; b2 hears nothing from b1"),
        (Move("b4", "b3", "b2"), ["b3"], [], "b2 has no link with b4"),
        (Leave("b4"), [], [], ""),
        (Leave("b1"), ["b3"], [], "b2 has no link with b1"),
    ],
)
def test_who_carries_a_step_out_says_which_links_it_lacks(
    step: Step | None, up: list[str], suspected: list[str], said: str
) -> None:
    assert held_up(Roster("b2", under_way(step), {}), up, suspected) == said


def test_a_stand_in_says_whom_it_has_still_to_hear_and_its_neighbours_which_links_they_lack() -> None:
    learning = planned(FOUNDED, ReplaceBroker("b3", "b8", "c:8", "p:8"))
    stand_in = Roster("b8", learning, {})
    assert held_up(stand_in, ["b2", "b4"], []) == ""
    assert held_up(stand_in, ["b2", "b4"], ["b2"], ["b2", "b4"]) == (
        "b8 hears nothing from b2; b8 has not heard everything from b4"
    )
    assert held_up(stand_in, ["b4"], [], ["b2"]) == "b8 has no link with b2"
    assert held_up(Roster("b2", learning, {}), [], []) == "b2 has no link with b8"
    assert held_up(Roster("b1", learning, {}), [], []) == ""


def changed(*changes: Change) -> NetworkMap:
    network = FOUNDED
    for change in changes:
        network = planned(network, change)
        while network.steps:
            network = done(network)
    return network


class Told(Bench):
    """b2, with what its disk has, as an operator sees it."""

    def __init__(self, name: str, network: NetworkMap) -> None:
        settings = RoutingSettings(name=name, graph=GRAPH, addresses=ADDRESSES)
        streams = {"map": [MapAdopted(network)]}
        super().__init__(make_broker(BrokerSettings(name, durable=True), Random(1), streams, routing=settings))
        notes = [each for each in self.handle(Started(1)) if isinstance(each, Note)]
        self.warned = [note.fields["what"] for note in notes if note.level is Level.WARNING]

    def ask(self, **told: str) -> str:
        """What is against it that a broker is removed."""
        self.handle(LinkUp(1, "operator", 1, Role.OPERATOR, False))
        effects = self.handle(Received(1, "operator", [ChangeAsked(1, "remove-broker", told)]))
        [begun] = [each.message for each in effects if isinstance(each, Send) and isinstance(each.message, ChangeBegun)]
        return begun.problem

    def facts(self) -> Mapping[str, str]:
        self.handle(LinkUp(1, "operator", 1, Role.OPERATOR, False))
        effects = self.handle(Received(1, "operator", [Inspect(1)]))
        [answer] = [each.message for each in effects if isinstance(each, Send) and isinstance(each.message, Inspected)]
        return answer.facts


def test_a_broker_that_was_removed_says_so_at_every_start() -> None:
    gone = Told("b2", changed(RemoveBroker("b2")))
    assert gone.warned == ["no-member-any-more"]
    assert gone.facts()["problem"] == "no member any more: stop it"
    spare = Told("b8", FOUNDED)
    assert spare.warned == []
    assert spare.facts()["problem"] == "no member of this network yet"
    assert "problem" not in Told("b2", FOUNDED).facts()


def test_a_change_that_waits_is_told_with_the_reason() -> None:
    facts = Told("b2", under_way(Leave("b4"))).facts()
    assert facts["change"] == "b4 is on its way out"
    assert "change_problem" not in facts
    assert Told("b3", under_way(Leave("b4"))).facts()["change_problem"] == "b3 has no link with b4"


@pytest.mark.parametrize(
    ("name", "told", "problem"),
    [
        ("b2", {"id": "b1"}, "b1 keeps the map of this network: ask it"),
        ("b2", {"id": "b1", "lost": "yes"}, ""),
        ("b3", {"id": "b1", "lost": "yes"}, "b2 keeps the map of this network: ask it"),
        ("b3", {"id": "b1", "lost": "yes", "also_lost": "b2"}, ""),
        ("b3", {"id": "b2", "lost": "yes", "also_lost": "b1"}, ""),
        ("b4", {"id": "b2", "lost": "yes", "also_lost": "b1"}, "b3 keeps the map of this network: ask it"),
        ("b3", {"id": "b1", "lost": "yes", "also_lost": "b2, b3,b4"}, "nobody keeps the map of this network: ask it"),
        ("b3", {"id": "b1", "lost": "yes", "also_lost": "b9"}, "there is no broker 'b9' in this network"),
    ],
)
def test_of_those_that_are_not_lost_the_first_makes_the_map_without_one_that_is(
    name: str, told: dict[str, str], problem: str
) -> None:
    assert Told(name, FOUNDED).ask(**told) == problem


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([RemoveBroker("b4")], "the site file lists b4, no member of the network"),
        ([RemoveBroker("b4"), RemoveBroker("b3")], "the site file lists b3, b4, no members of the network"),
        ([AddBroker("b9", "c:1", "p:1", "b1")], "the site file does not list b9, a member"),
        (
            [AddBroker("b8", "c:1", "p:1", "b1"), RemoveBroker("b4")],
            "the site file lists b4, no member of the network; it lists b8, a member, as spare",
        ),
    ],
)
def test_how_the_site_file_differs_is_said_in_words(changes: list[Change], said: str) -> None:
    assert Told("b2", changed(*changes)).facts()["difference"] == said


REPLACED = ReplaceBroker("b3", "b8", "c:8", "p:8")


def test_who_stands_in_for_whom_is_told_and_is_no_difference_from_the_site_file() -> None:
    facts = Told("b2", changed(REPLACED)).facts()
    assert (facts["members"], facts["links"]) == ("b1, b2, b8, b4", "b1-b2, b2-b8, b8-b4")
    assert facts["resting"] == "b3 by b8"
    assert "difference" not in facts
    facts = Told("b2", changed(REPLACED, ReplaceBroker("b8", "b9", "c:9", "p:9"))).facts()
    assert facts["resting"] == "b3 by b9, b8 by b9"
    assert facts["difference"] == "the site file does not list b9, a member"
    assert "resting" not in Told("b2", FOUNDED).facts()


def test_a_stand_in_that_has_gone_again_rests_and_may_come_again() -> None:
    returned = changed(REPLACED, HandBack("b3", "c:3", "p:3"))
    facts = Told("b2", returned).facts()
    assert facts["resting"] == "b8"
    assert "difference" not in facts
    assert Told("b8", returned).facts()["problem"] == "no member for now: it may stand in again, or be added"
    problem = "b8 stands in for it: `holdfast standin hand-back` gives it its place again"
    assert Told("b3", changed(REPLACED)).facts()["problem"] == problem


def test_who_shares_whose_work_is_told_and_is_no_difference_from_the_site_file() -> None:
    shared = changed(ReplaceBroker("b3", "b8", "c:8", "p:8", mode=StandInMode.SHARE))
    facts = Told("b2", shared).facts()
    assert facts["sharing"] == "b3 by b8"
    assert "resting" not in facts
    assert "difference" not in facts
