"""Who belongs to a group: what each change comes to, and what is against it."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from holdfast.schemes.paxos.ballots import EPOCH, PLACES, epoch_of, next_ballot, place_of, quorum
from holdfast.schemes.paxos.membership import (
    VOTERS_MAX,
    AddLearner,
    Cancel,
    Change,
    ChangeProtocol,
    GroupMember,
    Leave,
    Membership,
    Promote,
    Remove,
    changed,
    flaw,
    founders,
    objection,
)
from holdfast.schemes.paxos.settings import Member, Protocol
from holdfast.schemes.paxos.transfer import make_state, pack, unpack

NAMES = ["a", "b", "c"]
THREE = founders([Member(n, f"{n}:1", f"{n}:2") for n in NAMES], {n: f"disk-{n}" for n in NAMES}, Protocol.BATCH)


def new(name: str, replaces: str = "") -> AddLearner:
    return AddLearner(name, f"{name}:1", f"{name}:2", f"disk-{name}", replaces)


def after(*changes: Change, start: Membership = THREE) -> Membership:
    for change in changes:
        assert objection(start, change) == "", change
        start = changed(start, change)
    return start


def test_a_newcomer_counts_for_nothing_until_it_is_made_a_voter() -> None:
    learning = after(new("d"))
    assert (learning.voters, learning.epoch, learning.number) == (("a", "b", "c"), 0, 1)
    voting = after(Promote("d"), start=learning)
    assert (voting.voters, voting.epoch, voting.number) == (("a", "b", "c", "d"), 1, 2)


def test_who_is_replaced_goes_when_the_other_one_votes() -> None:
    voting = after(new("d", "b"), Promote("d"))
    assert [(member.name, member.leaving) for member in voting.members] == [
        ("a", False), ("b", True), ("c", False), ("d", False),
    ]  # fmt: skip
    done = after(Remove("b"), start=voting)
    assert (done.voters, done.epoch, done.former, done.under_way) == (("a", "c", "d"), 2, ("b",), "")


def test_one_change_at_a_time() -> None:
    for begun in (after(new("d")), after(Leave("b")), after(new("d", "b"), Promote("d"))):
        assert begun.under_way
        for other in (new("e"), Leave("c"), new("e", "a")):
            assert objection(begun, other) == begun.under_way
            assert changed(begun, other) is begun


def test_what_has_begun_can_be_given_up() -> None:
    assert after(new("d"), Cancel()).voters == THREE.voters
    assert after(new("d"), Cancel()).former == ("d",)
    assert after(Leave("b"), Cancel()).under_way == ""
    assert objection(THREE, Cancel()) == "no change is under way"


def test_a_learner_goes_without_a_new_epoch() -> None:
    gone = after(new("d"), Remove("d"))
    assert (gone.voters, gone.epoch) == (THREE.voters, 0)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (new("b"), "b is a member already"),
        (AddLearner("d", "a:1", "d:2", "disk"), "d has an address that another member has"),
        (AddLearner("d", "d:1", "a:2", "disk"), "d has an address that another member has"),
        (AddLearner("d", "", "d:2", "disk"), "d has no address that others could dial"),
        (AddLearner("d", "d:1", "d:2", ""), "'d' is no name of a replica with a disk"),
        (new("d\n"), "'d\\n' is no name of a replica with a disk"),
        (new("d" * 65), f"'{'d' * 64}…' is no name of a replica with a disk"),
        (AddLearner("d", "d:\0", "d:2", "disk"), "d has no address that others could dial"),
        (AddLearner("d", "d:1", "ä" * 129, "disk"), "d has no address that others could dial"),
        (Leave("x" * 16_000), f"there is no replica '{'x' * 64}…' that votes; there is a, b, c"),
        (new("d", "x"), "there is no replica 'x' that votes; there is a, b, c"),
        (Leave("x"), "there is no replica 'x' that votes; there is a, b, c"),
        (Remove("b"), "b votes, and is not on its way out"),
        (Remove("x"), "there is no replica 'x' that votes; there is a, b, c"),
        (Promote("b"), "b is no learner"),
        (ChangeProtocol(Protocol.BATCH), "the protocol is batch already"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_with_the_reason_and_changes_nothing(
    change: Change, problem: str
) -> None:
    assert objection(THREE, change) == problem
    assert changed(THREE, change) is THREE


@pytest.mark.parametrize(
    "absurd",
    [
        Membership(()),
        Membership((*THREE.members, THREE.members[0])),
        Membership((*THREE.members, GroupMember("d", 0, "d:1", "d:2", "disk"))),
        Membership((*THREE.members, GroupMember("d", -1, "d:1", "d:2", "disk"))),
        Membership((*THREE.members, GroupMember("d", PLACES, "d:1", "d:2", "disk"))),
        Membership((GroupMember("d", 0, "d:1", "d:2", "disk", votes=False),)),
        Membership(THREE.members, epoch=-1),
        Membership(THREE.members, epoch=2**22, number=2**22),
        Membership(THREE.members, epoch=2, number=1),
    ],
)
def test_what_no_group_comes_to_is_told_from_a_membership(absurd: Membership) -> None:
    """Two at one place would use the same ballots, and one name twice would vote twice."""
    assert flaw(absurd)
    assert not flaw(THREE)
    assert not flaw(after(new("d", "a"), Promote("d"), Remove("a")))
    assert unpack(7, pack(make_state(7, 5, b"state", absurd))) is None
    assert unpack(7, pack(make_state(7, 5, b"state", THREE))) is not None


def test_a_name_is_never_used_again() -> None:
    gone = after(Leave("b"), Remove("b"))
    assert objection(gone, new("b")).startswith("b was a member before")


def test_the_last_voter_stays_and_there_are_not_too_many() -> None:
    one = after(Leave("a"), Remove("a"), Leave("b"), Remove("b"))
    assert objection(one, Leave("c")) == "c is the last one that votes"
    many = founders([Member(f"m{n}", f"p{n}", f"c{n}") for n in range(VOTERS_MAX)], {}, Protocol.BATCH)
    assert objection(many, new("d")) == f"a group has at most {VOTERS_MAX} voters"
    assert objection(many, new("d", "m1")) == ""


def test_a_change_of_the_protocol_is_no_new_epoch() -> None:
    multi = after(ChangeProtocol(Protocol.MULTI))
    assert (multi.protocol, multi.epoch, multi.number) == (Protocol.MULTI, 0, 1)


def test_ballots_of_two_replicas_are_never_equal_though_places_are_given_again() -> None:
    """Of all epochs that random changes lead through: (epoch, place) belongs to one name."""
    owners: dict[tuple[int, int], str] = {}
    for seed in range(200):
        rng, group, owners = Random(seed), THREE, {}
        for number in range(40):
            changes: list[Change] = [new(f"n{number}"), new(f"n{number}", rng.choice(group.voters))]
            changes += [Leave(rng.choice(group.voters))]
            changes += [Promote(member.name) for member in group.members if not member.votes]
            changes += [Remove(member.name) for member in group.members if member.leaving or not member.votes]
            group = changed(group, rng.choice(changes))
            for member in group.members:
                if member.votes:
                    assert owners.setdefault((group.epoch, member.place), member.name) == member.name
    assert owners


def test_majorities_before_and_after_a_change_have_a_member_in_common() -> None:
    """More than the protocol needs, since no slot is decided by two epochs; but it costs nothing to know it."""
    for voters in range(1, VOTERS_MAX):
        small, large = [f"m{n}" for n in range(voters)], [f"m{n}" for n in range(voters + 1)]
        for left in itertools.combinations(small, quorum(len(small))):
            for right in itertools.combinations(large, quorum(len(large))):
                assert set(left) & set(right)


def test_a_ballot_of_a_later_epoch_is_above_all_of_the_one_before() -> None:
    last = EPOCH - 1
    ballot = next_ballot(last, 3, 1)
    assert (epoch_of(ballot), place_of(ballot)) == (1, 3)
    assert epoch_of(last) == 0
    assert next_ballot(ballot, 3, 1) > ballot
