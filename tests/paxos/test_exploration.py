"""Fast Paxos in one slot, explored completely: one value is chosen, whatever is lost, late, doubled or reordered."""

from __future__ import annotations

import re
from itertools import product

import pytest

from holdfast.schemes.paxos.ballots import quorum
from tests.paxos.exploration import VALUES, Exploration
from tests.paxos.exploration_mistakes import MISTAKEN

# How many states there are, by (members, ballots): an exploration that became smaller would show it.
STATES = {(1, 3): 445, (2, 3): 2_059, (3, 3): 63_530, (4, 3): 184_233, (5, 2): 48_075}
MORE_STATES = {(5, 3): 3_879_775, (6, 2): 134_148, (7, 2): 751_031}
BOUND = 200_000


def everything(ballots: int) -> set[tuple[int, bool, bytes]]:
    """Each value, chosen in each round: what can happen must happen."""
    return set(product(range(1, ballots + 1), (True, False), VALUES))


def check(members: int, ballots: int, states: int) -> None:
    explored = Exploration(members, ballots).run()
    print(f"{members} members, {ballots} ballots: {explored.states} states")
    assert explored.problem == "", explored.transcript
    assert explored.complete
    assert explored.states == states
    assert explored.decisions == everything(ballots)


@pytest.mark.parametrize(("members", "ballots"), STATES)
def test_one_value_is_chosen_whatever_happens(members: int, ballots: int) -> None:
    """D4-B4, D4-C3: any number of acceptors may stop, and any message be lost, at any point."""
    check(members, ballots, STATES[members, ballots])


@pytest.mark.long
@pytest.mark.parametrize(("members", "ballots"), MORE_STATES)
def test_one_value_is_chosen_in_larger_groups_too(members: int, ballots: int) -> None:
    check(members, ballots, MORE_STATES[members, ballots])


def test_five_members_and_three_ballots_as_far_as_time_allows() -> None:
    explored = Exploration(5, 3, states_max=BOUND).run()
    assert explored.problem == "", explored.transcript
    assert not explored.complete
    assert explored.states >= BOUND


@pytest.mark.parametrize(("members", "ballots", "states"), [(3, 2, 18_373), (4, 2, 42_528)])
def test_acceptors_that_pass_over_ballots_add_nothing(members: int, ballots: int, states: int) -> None:
    explored = Exploration(members, ballots, passing=True).run()
    assert (explored.problem, explored.complete, explored.states) == ("", True, states)
    assert explored.decisions == Exploration(members, ballots).run().decisions


@pytest.mark.parametrize("mistake", MISTAKEN)
def test_a_mistake_is_found_and_told_step_by_step(mistake: str) -> None:
    wrong = MISTAKEN[mistake]
    found = Exploration(wrong.members, wrong.ballots, wrong.protocol).run()
    print(f"{mistake}, among {wrong.members} ({found.states} states):")
    print("\n".join(f"  {number:2} {line}" for number, line in enumerate(found.transcript, 1)))
    assert found.problem == wrong.problem
    told = [line for line in found.transcript if line.startswith("chosen")]
    assert len(told) >= (2 if "two" in wrong.problem else 1)
    # The names in the transcript hold together: those who voted by it are those who decide by it.
    for line in told:
        match = re.fullmatch(r"chosen in the (fast|classic) round of (\d+): (\w)", line)
        assert match
        kind, ballot, value = match.groups()
        vote = f" votes in the {kind} round of ballot {ballot} for {value}"
        voters = {line.removesuffix(vote) for line in found.transcript if line.endswith(vote)}
        fast = wrong.protocol.fast_quorum(wrong.members)
        assert len(voters) >= (fast if kind == "fast" else quorum(wrong.members))
        assert voters <= {f"acceptor {who}" for who in range(1, wrong.members + 1)}
