"""Who stands in for whom, in the map of a network (D0-A10: it holds the topology, and nothing else)."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import (
    LOST_ABOVE,
    AddBroker,
    HandBack,
    Learn,
    Leave,
    Move,
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    ReplaceBroker,
    Resting,
    StandInMode,
    StandInProtocol,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection

LINKS = [("b1", "b2"), ("b2", "b3"), ("b2", "b4")]


def network(*names: str, links: list[tuple[str, str]] = LINKS) -> NetworkMap:
    return founding_map(
        [NetworkMember(name, f"{name}:1", f"{name}:2") for name in names or ("b1", "b2", "b3", "b4")], links
    )


def replace(name: str, by: str, mode: StandInMode = StandInMode.FAILOVER) -> ReplaceBroker:
    return ReplaceBroker(name, by, f"{by}:1", f"{by}:2", StandInProtocol.SYNCH, mode)


def everything_done(after: NetworkMap) -> NetworkMap:
    while after.steps:
        assert flaw(after) == ""
        after = done(after)
    assert flaw(after) == ""
    return after


def test_a_stand_in_is_where_the_other_was_at_once() -> None:
    after = planned(network(), replace("b2", "b7"))
    assert after.names == ("b1", "b7", "b3", "b4")
    assert after.tree == (("b1", "b7"), ("b7", "b3"), ("b7", "b4"))
    assert after.step == Learn("b7", "b2", StandInProtocol.SYNCH)
    assert (after.maker, after.stand_in("b2"), after.rests("b2"), flaw(after)) == ("b7", "b7", True, "")


def test_the_map_with_a_stand_in_is_above_all_that_the_other_may_have_made() -> None:
    assert planned(network(), replace("b1", "b7")).number == LOST_ABOVE + 1


def test_who_stands_in_for_a_stand_in_stands_in_for_both() -> None:
    after = planned(planned(network(), replace("b2", "b7")), replace("b7", "b8"))
    assert (after.stand_in("b2"), after.stand_in("b7")) == ("b8", "b8")
    assert flaw(everything_done(after)) == ""


def test_what_is_handed_back_is_as_it_was_before() -> None:
    """The broker is joined as a leaf; its stand-in's neighbours come over one by one, and it leaves."""
    before = everything_done(planned(network(), replace("b2", "b7")))
    after = planned(before, HandBack("b2", "b2:1", "b2:2"))
    assert after.steps == (
        Move("b1", "b7", "b2"), Move("b3", "b7", "b2"), Move("b4", "b7", "b2"), Leave("b7", rests=True),
    )  # fmt: skip
    last = everything_done(after)
    assert {frozenset(link) for link in last.tree} == {frozenset(link) for link in LINKS}
    assert (last.resting, last.former) == ((Resting("b7"),), ())
    assert objection(last, replace("b3", "b7"), False) == ""  # it is there for the next one


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (replace("b9", "b7"), "there is no broker 'b9' in this network; there is b1, b2, b3, b4"),
        (replace("b2", "b3"), "'b3' is a member already: a stand-in is a broker that runs, and is none"),
        (ReplaceBroker("b2", "b7", "", ""), "b7 has no address that others could dial"),
        (ReplaceBroker("b2", "b7", "b1:1", "b7:2"), "b7 has the address b1:1, which b1 has"),
        (HandBack("b2", "b2:1", "b2:2"), "'b2' is a member, and nobody stands in for it"),
        (HandBack("b9", "b9:1", "b9:2"), "nobody stands in for 'b9'"),
    ],
)
def test_what_can_t_be_is_refused_in_words(change: ReplaceBroker | HandBack, problem: str) -> None:
    assert objection(network(), change, False) == problem


def test_where_events_detour_nobody_stands_in() -> None:
    assert "nobody stands in" in objection(network(), replace("b2", "b7"), True)


def test_one_replacement_at_a_time() -> None:
    after = planned(network(), replace("b2", "b7"))
    assert objection(after, replace("b3", "b8"), False) == (
        "another change is under way: b7 learns the tables of b2 (synch)"
    )
    assert objection(after, replace("b7", "b8"), False) == ""  # the stand-in has failed, too


def test_a_member_that_was_lost_is_no_stand_in() -> None:
    lost = planned(network(), RemoveBroker("b4", lost=True))
    assert objection(lost, replace("b2", "b4"), False).startswith("b4 was a member before")


def test_nobody_stands_where_the_stand_in_was_lost() -> None:
    after = everything_done(planned(network(), replace("b2", "b7")))
    lost = planned(after, RemoveBroker("b7", lost=True))
    assert (lost.stand_in("b2"), lost.resting) == ("", (Resting("b2"),))


def test_a_map_of_before_stand_ins_is_read() -> None:
    """Golden bytes: a map with what stand-ins brought, and one without."""
    after = planned(network(), replace("b2", "b7"))
    written = bytes.fromhex(
        "98cd03e99493a26231a462313a31a462313a3293a26237a462373a31a462373a3293a26233a462333a31a462333a3293a26234a462343a31"
        "a462343a329392a26231a2623792a26237a2623392a26237a26234909194"
        "03a26237a26232a573796e6368909192a26232a2623790"
    )
    unknown = tuple(msgspec.structs.replace(member, since=0) for member in after.members)
    assert msgspec.msgpack.decode(written, type=NetworkMap) == msgspec.structs.replace(after, members=unknown)
    older = bytes.fromhex("96009193a26231a462313a31a462313a3290909090")
    assert msgspec.msgpack.decode(older, type=NetworkMap) == founding_map([NetworkMember("b1", "b1:1", "b1:2")], [])


def since(network: NetworkMap) -> dict[str, int]:
    return {member.name: member.since for member in network.members if member.since}


def test_a_map_says_since_when_each_member_is_one() -> None:
    """So that who has its place back knows that it was away, whichever maps it has heard of."""
    replaced = planned(network(), replace("b2", "b7"))
    assert since(replaced) == {"b7": replaced.number}
    back = planned(everything_done(replaced), HandBack("b2", "b2:1", "b2:2"))
    assert since(back) == {"b7": replaced.number, "b2": back.number}
    assert since(everything_done(back)) == {"b2": back.number}
    again = planned(everything_done(back), replace("b2", "b7"))
    assert since(again) == {"b7": again.number}
    added = planned(everything_done(back), AddBroker("b9", "b9:1", "b9:2", "b1"))
    assert since(added) == {"b2": back.number, "b9": added.number}


def test_who_shares_the_work_of_another_and_then_has_its_place_is_a_member_since_then() -> None:
    shares = planned(network(), replace("b2", "b7", StandInMode.SHARE))
    assert since(shares) == {"b7": shares.number}
    instead = planned(everything_done(shares), replace("b2", "b7"))
    assert since(instead) == {"b7": instead.number}


def test_nobody_is_a_member_since_a_map_that_is_not_there_yet() -> None:
    founded = network()
    for number in (-1, 1, 2**70):
        first, *others = founded.members
        members = (msgspec.structs.replace(first, since=number), *others)
        assert flaw(msgspec.structs.replace(founded, members=members))


@pytest.mark.parametrize(
    ("resting", "step"),
    [
        ((Resting("b1"),), None),
        ((Resting("b9"), Resting("b9")), None),
        ((), Learn("b3", "b9", StandInProtocol.SYNCH)),
        ((Resting("b9", "b3"),), Learn("b9", "b9", StandInProtocol.SYNCH)),
        ((Resting("b9", "b9"),), Learn("b3", "b9", StandInProtocol.SYNCH)),  # who follows a circle comes to no end
        ((Resting("b8", "b9"), Resting("b9", "b8")), Learn("b3", "b8", StandInProtocol.SYNCH)),
    ],
)
def test_a_map_that_can_t_be_is_no_map(resting: tuple[Resting, ...], step: Learn | None) -> None:
    wrong = msgspec.structs.replace(network(), resting=resting, steps=() if step is None else (step,))
    assert flaw(wrong)


def test_two_stand_ins_may_share_the_work_of_two_brokers_at_a_time() -> None:
    """Each of them sees the tree with itself in the place of its broker, and without the other one."""
    chain = network("b1", "b2", "b3", "b4", "b5", links=[("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")])
    after = chain
    for faulty, by in (("b1", "s1"), ("b5", "s2")):
        change = ReplaceBroker(faulty, by, f"{by}:1", f"{by}:2", mode=StandInMode.SHARE)
        assert objection(after, change, False) == ""
        after = everything_done(planned(after, change))
    assert after.seen_by("s1").neighbours("s1") == ("b2",)
    assert after.seen_by("s2").path("s2", "b1") == ["s2", "b4", "b3", "b2", "b1"]
