"""The picking rule for fast rounds: every split of votes, every majority that is heard, against the definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product

import msgspec
import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.schemes.paxos.ballots import fast_quorum, quorum
from holdfast.schemes.paxos.messages import Vote
from holdfast.schemes.paxos.picking import pick, pick_in_round
from tests.paxos.oracle import may_be_chosen, may_have_a_fast_quorum
from tests.paxos.picking_mistakes import MISTAKES, REAL, WITHOUT_MISTAKE, Rule

SLOT = 1
A, B, C = b"\x01", b"\x02", b"\x03"


def vote(ballot: int, value: bytes, fast: bool = True) -> Vote:
    return Vote(SLOT, ballot, msgspec.Raw(value), fast)


TWO_VALUES = (None, vote(1, A), vote(1, B))
THREE_VALUES = (*TWO_VALUES, vote(1, C))
# A fast and a classic round of two ballots; the upper classic one has its value as well.
MIXED = (None, vote(1, A), vote(1, B), vote(1, A, fast=False), vote(2, A), vote(2, B), vote(2, B, fast=False))
SPLITS: dict[str, tuple[Sequence[int], Sequence[Vote | None]]] = {
    "two values": ((1, 2, 3, 4, 5, 6, 7, 9), TWO_VALUES),
    "three values": ((3, 4, 5, 7), THREE_VALUES),
    "mixed rounds": ((3, 4, 5), MIXED),
}


def heard_sets(members: int) -> Iterator[tuple[int, ...]]:
    for size in range(quorum(members), members + 1):
        yield from combinations(range(members), size)


def shown(told: Mapping[int, list[Vote]]) -> str:
    """Votes as a reader wants them: who voted in which round for what."""
    votes = [(who, vote) for who, votes in told.items() for vote in votes]
    return ", ".join(
        f"{who}: {vote.ballot} {'fast' if vote.fast else 'classic'} {bytes(vote.value)!r}" for who, vote in votes
    )


def problem(rule: Rule, members: int, choices: Sequence[Vote | None]) -> tuple[str, int]:
    """What the rule does wrong, and how many cases were looked at: every majority, with every vote of each."""
    tellings = [[] if choice is None else [choice] for choice in choices]

    @cache  # The rule does not get to know which acceptors it hears: they are told apart by the oracle only.
    def picked(split: tuple[int, ...], talkative: bool) -> bytes | None:
        promises = [tellings[choice] for choice in split]
        if talkative:  # Its vote, and one in a lower round, said again and again.
            promises[0] = [vote(0, C), *promises[0] * len(split)] if promises[0] else []
        value = rule.pick(promises, SLOT, members).get(SLOT)
        return None if value is None else bytes(value)

    cases = 0
    for heard in heard_sets(members):
        for split in product(range(len(choices)), repeat=len(heard)):
            told = {who: tellings[choice] for who, choice in zip(heard, split, strict=True)}
            cast = {bytes(some.value) for votes in told.values() for some in votes}
            if not cast:
                continue
            cases += 1
            possible = may_be_chosen(told, SLOT, members)
            if len(possible) > 1:
                return f"two values may be chosen: {members} members, {shown(told)}", cases
            for talkative in (False, True):
                value = picked(split, talkative)
                if value not in (possible or cast):
                    return f"picked {value!r}, and {possible} may be chosen: {members} members, {shown(told)}", cases
    return "", cases


def problem_in_round(rule: Rule, members: int, values: bytes) -> tuple[str, int]:
    """The same for a leader that knows who has voted in its fast round: what must be proposed, and whether any."""
    cases = 0
    for heard in heard_sets(members):
        for split in product(values, repeat=len(heard)):
            voted = {who: bytes([value]) for who, value in zip(heard, split, strict=True)}
            forced = rule.pick_in_round({str(who): value for who, value in voted.items()}, members)
            possible = may_have_a_fast_quorum(voted, members)
            cases += 1
            if possible != (set() if forced is None else {forced}):
                return f"forced {forced!r}, and {possible} may be chosen: {members} members, {voted}", cases
    return "", cases


def first_problem(rule: Rule) -> str:
    """The smallest case that shows a mistake."""
    for members in (3, 4, 5):
        for votes in (TWO_VALUES, MIXED):
            if found := problem(rule, members, votes)[0]:
                return found
        if found := problem_in_round(rule, members, A + B)[0]:
            return found
    return ""


@pytest.mark.parametrize(
    ("split", "members"),
    [
        pytest.param(split, members, marks=[pytest.mark.full] if members > 7 else [])
        for split, (sizes, _) in SPLITS.items()
        for members in sizes
    ],
)
def test_what_is_picked_never_contradicts_what_may_be_chosen(split: str, members: int) -> None:
    """D4-B4."""
    votes = SPLITS[split][1]
    found, cases = problem(REAL, members, votes)
    assert found == ""
    wanted = sum(len(votes) ** len(heard) - 1 for heard in heard_sets(members))
    assert cases == wanted, "every split for every majority, but those without a vote"


@pytest.mark.parametrize("members", range(1, 10))
def test_the_leader_of_a_fast_round_must_propose_what_may_be_chosen_and_else_is_free(members: int) -> None:
    values = A + B + C if members <= 5 else A + B
    found, cases = problem_in_round(REAL, members, values)
    assert found == ""
    assert cases == sum(len(values) ** len(heard) for heard in heard_sets(members))


@pytest.mark.parametrize("members", [3, 4, 5, 7])
def test_what_is_decided_in_a_fast_round_is_picked_by_every_majority(members: int) -> None:
    """Without the oracle: all votes of all acceptors, those with a decision, and every part of them that is heard."""
    decisions = 0
    for votes in product((None, A, B), repeat=members):
        decided = [value for value in (A, B) if votes.count(value) >= fast_quorum(members)]
        for heard in heard_sets(members) if decided else ():
            promises = [[vote(1, value)] if (value := votes[who]) else [] for who in heard]
            assert [bytes(value or b"") for value in pick(promises, SLOT, members).values()] == decided
            decisions += 1
            known = {str(who): value for who in heard if (value := votes[who])}
            if len(known) >= quorum(members):
                assert pick_in_round(known, members) == decided[0]
    assert decisions > 0


@pytest.mark.parametrize("members", [3, 4, 5])
def test_the_definition_means_that_some_votes_of_the_others_would_decide(members: int) -> None:
    """The oracle itself: a value may be chosen if and only if those who were not heard can have made it so."""
    for heard in heard_sets(members):
        others = members - len(heard)
        for split in product((None, A, B), repeat=len(heard)):
            possible = {
                value
                for value in {*split} - {None}
                for unheard in product((None, A, B), repeat=others)
                if (split + unheard).count(value) >= fast_quorum(members)
            }
            assert may_have_a_fast_quorum(dict(zip(heard, split, strict=True)), members) == possible


@pytest.mark.parametrize("members", range(1, 10))
def test_a_forced_value_has_more_than_half_of_what_is_heard(members: int) -> None:
    """So preferring what most voted for, among the votes of the highest round, is no way to overlook one."""
    for heard in range(quorum(members), members + 1):
        for split in product((A, B, None), repeat=heard):
            counts = Counter(split)
            for value in may_have_a_fast_quorum(dict(enumerate(split)), members):
                assert 2 * counts[value] > heard


@pytest.mark.parametrize(
    ("votes", "picked"),
    [
        ([vote(1, A), vote(1, A), vote(1, B)], A),
        ([vote(1, B), vote(1, A), vote(1, B)], B),
        ([vote(1, C), vote(1, B), vote(1, A)], A),  # free: all pick the smallest
        ([vote(1, B), None, None], B),  # free: nobody is disappointed without need
        ([vote(1, A), vote(1, A), vote(1, B, fast=False)], B),
        ([vote(1, A), vote(1, A), vote(2, B)], B),
        ([vote(1, A, fast=False), vote(2, B), vote(2, C)], B),
        ([None, None, None], None),
    ],
)
def test_what_is_picked_of_three_votes_in_five(votes: list[Vote | None], picked: bytes | None) -> None:
    chosen = pick([[vote] if vote else [] for vote in votes], SLOT, members=5)
    assert chosen == ({} if picked is None else {SLOT: msgspec.Raw(picked)})


@pytest.mark.parametrize("members", [3, 4, 5])
def test_nothing_is_picked_from_fast_votes_of_less_than_a_majority(members: int) -> None:
    few = quorum(members) - 1
    with pytest.raises(InvariantBroken, match="majority"):
        pick([[vote(1, A)]] * few, SLOT, members)
    with pytest.raises(InvariantBroken, match="majority"):
        pick_in_round({str(who): A for who in range(few)}, members)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_rule_is_seen(mistake: str) -> None:
    found = first_problem(MISTAKES[mistake])
    print(f"{mistake}: {found}")
    assert "may be chosen" in found


def test_the_rule_in_other_words_has_no_mistake_by_itself() -> None:
    assert first_problem(WITHOUT_MISTAKE) == ""
    assert first_problem(REAL) == ""
