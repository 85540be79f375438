"""What the checker `network` makes of maps that change: which words have got there, and what failures excuse."""

from __future__ import annotations

from holdfast.protocols.routing.network_map import (
    AddBroker,
    Change,
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    done,
    founding_map,
    planned,
)
from holdfast.schemes.tree.outages import SOON, Outages
from holdfast.schemes.tree.timeline import FOR_EVER
from holdfast.trace.schema import Control, Fault

NAMES = ("b1", "b2", "b3", "b4")
LINKS = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
FOUNDED = founding_map([NetworkMember(name, name, name) for name in NAMES], LINKS)
GRACE, PROMPT = 1_000, 10


class Told:
    """Outages of a network that changes, fed by hand."""

    def __init__(self, prompt: int = PROMPT) -> None:
        self.map = FOUNDED
        self.outages = Outages(NAMES, LINKS, GRACE, 5, changes=True, prompt=prompt)

    def fault(self, t: int, component: str, state: str) -> None:
        self.outages.see(Fault(t=t, component=component, state=state))

    def adopt(self, t: int, network: NetworkMap, *nodes: str) -> None:
        self.map = network
        for node in nodes or network.names:
            self.outages.adopt(Control(t=t, node=node, what="map-adopted", detail=self._detail(network)))

    @staticmethod
    def _detail(network: NetworkMap) -> dict[str, object]:
        steps = [str(step) for step in network.steps]
        lists = {"members": network.names, "tree": network.tree, "beside": network.beside, "steps": steps}
        return {"number": network.number, **lists}

    def change(self, t: int, until: int, change: Change) -> None:
        """All adopt what is planned at once, and what is done at the end."""
        self.adopt(t, planned(self.map, change))
        while self.map.steps:
            self.adopt(until, done(self.map))


def test_a_word_gets_to_the_next_broker_promptly_where_nothing_failed() -> None:
    told = Told()
    assert told.outages.reaches("b4", "b1", 100) == 100 + 3 * PROMPT
    assert Told(prompt=0).outages.reaches("b4", "b1", 100) == 100 + 3 * GRACE
    told.fault(200, "b2", "crashed")
    told.fault(300, "b2", "up")
    assert told.outages.reaches("b4", "b1", 100) == 100 + 3 * PROMPT
    assert told.outages.reaches("b4", "b1", 175) == 300 + GRACE, "b2 went before it had told it, and has to come back"


def test_a_word_that_a_change_overtakes_has_got_there_a_while_after_it() -> None:
    told = Told()
    told.change(110, 500, RemoveBroker("b2"))
    assert told.outages.reaches("b4", "b1", 50) == 50 + 3 * PROMPT, "before it began"
    assert told.outages.reaches("b4", "b1", 100) == 500 + SOON + 2 * PROMPT, "b3 has moved from b2 to b1"
    assert told.outages.reaches("b4", "b1", 1) == 1 + 3 * PROMPT, "it was known then, and is not forgotten"


def test_a_word_waits_for_a_change_that_is_never_done() -> None:
    told = Told()
    told.adopt(110, planned(FOUNDED, RemoveBroker("b2")))
    assert told.outages.reaches("b4", "b1", 105) == FOR_EVER
    assert told.outages.reaches("b4", "b1", 50) < 110


def test_a_word_of_who_is_no_member_yet_has_got_there_when_it_is() -> None:
    told = Told()
    assert told.outages.reaches("s1", "b1", 5) == FOR_EVER
    joined = planned(FOUNDED, AddBroker("s1", "s1", "s1", "b1"))
    told.adopt(100, joined, *NAMES)
    told.adopt(150, joined, "s1")
    assert told.outages.reaches("s1", "b2", 5) == 150 + SOON + 2 * PROMPT


def test_a_change_that_a_failure_meets_is_known_later() -> None:
    told = Told()
    told.fault(200, "b4", "crashed")
    told.fault(210, "b4", "up")
    told.change(110, 500, RemoveBroker("b2"))
    assert told.outages.reaches("b3", "b1", 105) == 500 + GRACE + PROMPT
    assert not told.outages.is_settled(500 + GRACE - 1)
    assert told.outages.is_settled(500 + GRACE)


def test_a_change_that_no_failure_meets_leaves_all_settled() -> None:
    told = Told()
    told.adopt(110, planned(FOUNDED, RemoveBroker("b2")))
    assert told.outages.is_settled(200)
    assert not told.outages.any_ever


def test_a_failure_counts_while_its_broker_is_a_member() -> None:
    told = Told()
    told.fault(0, "s1", "absent")
    assert told.outages.is_settled(50)
    told.change(110, 500, RemoveBroker("b4"))
    told.fault(600, "b4", "crashed")
    told.fault(600, "b4", "gone")
    assert told.outages.is_settled(700)
    assert not told.outages.any_ever
    assert told.outages.is_former("b4")
    assert not told.outages.is_blocked("b1", "b3")


def test_what_a_lost_broker_had_is_excused_and_nothing_that_came_later() -> None:
    told = Told()
    told.fault(200, "b2", "crashed")
    told.fault(200, "b2", "gone")
    assert told.outages.is_blocked("b1", "b4")
    told.change(300, 300, RemoveBroker("b2", lost=True))
    assert told.outages.wiped_since("b1", "b4", 150)
    assert not told.outages.wiped_since("b1", "b4", 250), "it waited beside the lost one, and goes another way"
    assert not told.outages.wiped_since("b3", "b4", 150), "another path"
    assert not told.outages.is_blocked("b1", "b4"), "what is lost blocks nothing any more"
    assert told.outages.is_settled(300 + GRACE)


def test_a_failure_on_the_way_before_or_after_a_move_touches_what_was_under_way() -> None:
    told = Told()
    told.change(100, 200, RemoveBroker("b2"))
    told.fault(210, "b2", "crashed")
    assert not told.outages.touched("b1", "b4", 5_000)
    told.fault(300, "b1>b3", "cut")
    told.fault(310, "b1>b3", "healed")
    assert told.outages.touched("b1", "b4", 150), "b3 has been beside b1 since then"
    assert not told.outages.touched("b3", "b4", 150)


def test_a_link_that_is_to_be_counts_from_the_moment_at_which_it_is_worked_on() -> None:
    told = Told()
    told.fault(50, "b1>b3", "cut")
    told.fault(60, "b1>b3", "healed")
    assert told.outages.is_settled(100)
    told.adopt(110, planned(FOUNDED, RemoveBroker("b2")))
    told.fault(150, "b1>b3", "cut")
    told.fault(160, "b1>b3", "healed")
    assert not told.outages.is_settled(300)


def test_a_map_that_nobody_has_any_more_never_was() -> None:
    told = Told()
    told.adopt(110, planned(FOUNDED, RemoveBroker("b2")), "b1")
    told.fault(120, "b1", "crashed")
    told.fault(130, "b1", "up")
    told.outages.adopt(Control(t=130, node="b1", what="map-adopted", detail=Told._detail(FOUNDED)))
    assert told.outages.maps.latest.number == 0
    assert told.outages.maps.unsettled[-1].end == 130
