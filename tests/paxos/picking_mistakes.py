"""Value-picking rules with one mistake each: what the tests of picking, and the exploration, have to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from holdfast.schemes.paxos.ballots import fast_quorum, quorum
from holdfast.schemes.paxos.messages import Value, Vote
from holdfast.schemes.paxos.picking import pick, pick_in_round

Pick = Callable[[Collection[Iterable[Vote]], int, int], dict[int, Value | None]]
PickInRound = Callable[[Mapping[str, bytes], int], bytes | None]


@dataclass(frozen=True)
class Rule:
    """What a leader proposes, after promises and within its ballot."""

    pick: Pick
    pick_in_round: PickInRound


REAL = Rule(pick, pick_in_round)


def _enough(heard: int, members: int) -> int:
    return heard + fast_quorum(members) - members


def rule(
    order: Callable[[Vote], object] = lambda vote: vote.round,
    enough: Callable[[int, int], int] = _enough,
    once: bool = True,
    only_the_highest: bool = True,
) -> Rule:
    """The rule in other words, for one slot, with places for mistakes."""

    def forced(counts: Counter[bytes], heard: int, members: int) -> bytes | None:
        return next((value for value, count in counts.items() if count >= enough(heard, members)), None)

    def wrong(promises: Collection[Iterable[Vote]], first: int, members: int) -> dict[int, Value | None]:
        told = [sorted(votes, key=order)[-1 if once else 0 :] for votes in promises]  # type: ignore[arg-type]
        votes = [vote for some in told for vote in some]
        if not votes:
            return {}
        highest = max(votes, key=order)  # type: ignore[arg-type]
        if only_the_highest and not highest.fast:
            return {first: highest.value}
        counts = Counter(bytes(vote.value) for vote in votes if order(vote) == order(highest) or not only_the_highest)
        value = forced(counts, len(promises), members)
        return {first: msgspec.Raw(counts.most_common(1)[0][0] if value is None else value)}

    return Rule(wrong, lambda votes, members: forced(Counter(votes.values()), len(votes), members))


WITHOUT_MISTAKE = rule()
# What most voted for in the highest round is no mistake: a forced value has more than half (see test_fast_picking.py).
MISTAKES: dict[str, Rule] = {
    "what most voted for in any round is picked": rule(only_the_highest=False, enough=lambda heard, members: heard + 1),
    "votes of all rounds are counted together": rule(only_the_highest=False),
    "a classic vote counts more than a fast one of a higher ballot": rule(order=lambda vote: not vote.fast),
    "a fast vote counts more than a classic one of its ballot": rule(order=lambda vote: (vote.ballot, vote.fast)),
    "a majority is taken for a fast quorum": rule(enough=lambda heard, members: heard + quorum(members) - members),
    "one vote less is enough": rule(enough=lambda heard, members: _enough(heard, members) - 1),
    "one vote more is needed": rule(enough=lambda heard, members: _enough(heard, members) + 1),
    "an acceptor counts as often as it speaks": rule(once=False),
}
