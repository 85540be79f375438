"""The checker `map-history`: what it takes for one history of a network's maps, and what it objects to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

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
from holdfast.schemes.tree.asked_changes import operation_of
from holdfast.schemes.tree.map_history import DISK_WITHIN, MapHistory
from holdfast.trace.checkers import check_trace
from holdfast.trace.schema import Accepted, Control, Fault, Header, Hop, Row

NAMES = ("b1", "b2", "b3")
LINKS = [("b1", "b2"), ("b2", "b3")]
FOUNDED = founding_map([NetworkMember(name, name, name) for name in NAMES], LINKS)
JOINED = planned(FOUNDED, AddBroker("s1", "s1", "s1", "b3"))
GOING = planned(JOINED, RemoveBroker("b2"))
MOVED = done(GOING)
GONE = done(MOVED)
ADD, REMOVE = AddBroker("s1", "s1", "s1", "b3"), RemoveBroker("b2")


def asked(change: Change, operator: str = "operator:1", t: int = 1, begun: bool = True) -> list[Row]:
    operation = operation_of(change, 0)
    detail = {"action": operation.action, "told": operation.told}
    rows: list[Row] = [Control(t=t, node=operator, what="change-asked", detail=detail)]
    return [*rows, Control(t=t, node=operator, what="change-begun")] if begun else rows


def adopts(node: str, network: NetworkMap, t: int = 1, **others: Any) -> Control:
    detail = {
        "node": node,
        "number": network.number,
        "members": list(network.names),
        "tree": [list(link) for link in network.tree],
        "beside": [list(link) for link in network.beside],
        "steps": [str(step) for step in network.steps],
        **others,
    }
    return Control(t=t, node=node, what="map-adopted", detail=detail)


def all_adopt(network: NetworkMap) -> list[Row]:
    return [adopts(name, network) for name in network.names]


def found(*rows: Row | Sequence[Row], forgetful: tuple[str, ...] = ()) -> list[str]:
    settings = {"brokers": NAMES, "links": LINKS, "reliability": "buffered", "forgetful": forgetful}
    flat = [one for row in rows for one in (row if isinstance(row, Sequence) else [row])]
    violations = check_trace(Header(run="x", system="tree", settings=settings), flat, [MapHistory()])
    return [violation.message for violation in violations]


def test_a_history_in_which_each_map_follows_from_the_one_before_is_sound() -> None:
    joined, gone = [asked(ADD), all_adopt(JOINED)], [asked(REMOVE, "operator:2"), all_adopt(GOING), all_adopt(MOVED)]
    assert found(*joined, *gone, adopts("b2", GONE), all_adopt(GONE)) == []


def test_a_network_that_nobody_changes_is_sound() -> None:
    assert found() == []


def test_a_map_that_nobody_asked_for_is_seen() -> None:
    assert "does not follow from 0" in found(all_adopt(JOINED))[0]
    assert "does not follow from 1" in found(asked(ADD), all_adopt(JOINED), all_adopt(GOING))[0]


def test_a_map_whose_predecessor_nobody_had_is_seen() -> None:
    assert found(asked(ADD), asked(REMOVE), adopts("b1", GOING))[0].endswith("nobody had the one before it")


def test_numbers_that_fall_in_one_life_are_seen_and_not_in_the_next() -> None:
    rows = asked(ADD) + all_adopt(JOINED)
    assert "and had 1 before" in found(*rows, adopts("b1", FOUNDED))[0]
    crashed, up = Fault(t=2, component="b1", state="crashed"), Fault(t=3, component="b1", state="up")
    assert found(*rows, crashed, up, adopts("b1", JOINED)) == []


def test_two_maps_with_one_number_are_seen() -> None:
    other = planned(FOUNDED, AddBroker("s1", "s1", "s1", "b1"))
    rows = [*asked(ADD), *asked(AddBroker("s1", "s1", "s1", "b1"), "operator:2", begun=False), adopts("b1", JOINED)]
    assert found(*rows, adopts("b2", other))[0] == "b2 adopts another map 1 than b1"


def test_a_map_that_was_lost_with_its_maker_never_was() -> None:
    """b1 told nobody: after a power cut, it makes another one with that number."""
    other = planned(FOUNDED, AddBroker("s1", "s1", "s1", "b1"))
    rows = [*asked(ADD, begun=False), *asked(AddBroker("s1", "s1", "s1", "b1"), "operator:2"), adopts("b1", JOINED)]
    crashed, up = Fault(t=2, component="b1", state="crashed"), Fault(t=3, component="b1", state="up")
    assert found(*rows, crashed, up, adopts("b1", FOUNDED), all_adopt(other)) == []
    assert found(*rows, crashed, up, all_adopt(other), forgetful=NAMES) == []


def test_a_map_that_its_maker_still_has_after_a_crash_is_a_part_of_the_history() -> None:
    """Seed 70001: nobody else had heard of the last two."""
    rows = [*asked(ADD), adopts("b1", JOINED), *asked(REMOVE, "operator:2"), adopts("b1", GOING)]
    crashed, up = Fault(t=2, component="b1", state="crashed"), Fault(t=3, component="b1", state="up")
    assert found(*rows, crashed, up, all_adopt(GOING), all_adopt(MOVED), adopts("b2", GONE), all_adopt(GONE)) == []


def test_a_change_that_began_and_came_to_nothing_is_seen() -> None:
    assert found(asked(ADD))[0].endswith("and no map comes of it")
    assert found(asked(ADD, begun=False)) == []


def test_a_member_without_the_last_map_at_the_end_is_seen_unless_it_is_not_there() -> None:
    rows = [*asked(ADD), *[adopts(name, JOINED) for name in ("b1", "b2", "s1")]]
    assert found(*rows) == ["b3 has map 0 at the end, and there is 1"]
    assert found(*rows, Fault(t=5, component="b3", state="crashed")) == []


def test_what_is_never_done_is_seen_unless_one_of_those_concerned_is_not_there() -> None:
    rows = asked(ADD) + all_adopt(JOINED) + asked(REMOVE, "operator:2") + all_adopt(GOING)
    assert found(*rows)[0].startswith("a change is never done: b3 moves from b2 to b1")
    assert found(*rows, Fault(t=5, component="b3", state="crashed")) == []
    assert found(*rows, Fault(t=5, component="s1", state="crashed")) != []


def test_who_is_no_member_takes_nothing_in_and_forwards_nothing() -> None:
    rows = asked(ADD) + all_adopt(JOINED) + asked(REMOVE, "operator:2") + all_adopt(GOING) + all_adopt(MOVED)
    rows += [adopts("b2", GONE), *all_adopt(GONE)]
    accepted = Accepted(t=9, node="b2", events=["p/1/1"])
    assert found(accepted, *rows) == []
    assert found(*rows, accepted)[0] == "b2 takes in what is published there, and is no member"
    hop = Hop(t=9 + DISK_WITHIN, message=1, source="b2", target="b1", what="Forward", events=["p/1/1"])
    assert found(*rows, hop)[0] == "b2 forwards to b1, and is no member"
    assert found(*rows, replace(hop, t=9)) == [], "what waited for its disk when it came to be none"
    assert found(Accepted(t=0, node="s1", events=["p/1/1"])) != [], "a spare is none, either"


def test_a_map_that_is_no_tree_is_seen() -> None:
    assert "a name is there twice" in " ".join(found(adopts("b1", JOINED, members=["b1", "b1", "b2"])))
