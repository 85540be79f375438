"""Fast Paxos with one mistake each, and the smallest group that shows it: what the exploration has to find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from holdfast.schemes.paxos.ballots import NO_ROUND, Round, fast_quorum, quorum
from holdfast.schemes.paxos.picking import pick_in_round
from tests.paxos.exploration import SLOT, VALUES, Acceptor, Leaders, Protocol, real_may_vote
from tests.paxos.picking_mistakes import MISTAKES, Rule

TWO = "two values are chosen"
INVENTED = "a value is chosen that nobody asked for"


@dataclass(frozen=True)
class Mistake:
    protocol: Protocol
    members: int
    ballots: int
    problem: str = TWO


def _last(acceptor: Acceptor) -> Round:
    return acceptor.cast[-1][0] if acceptor.cast else NO_ROUND


def _votes_twice(acceptor: Acceptor, asked: Round, value: bytes) -> bool:
    again = asked == _last(acceptor) and not asked[1] and (asked, value) not in acceptor.cast
    return real_may_vote(acceptor, asked, value) or (again and asked[0] >= acceptor.promised)


def _votes_fast_below_its_promise(acceptor: Acceptor, asked: Round, value: bytes) -> bool:
    return real_may_vote(acceptor, asked, value) or (not asked[1] and asked > _last(acceptor))


def _votes_classic_below_its_promise(acceptor: Acceptor, asked: Round, value: bytes) -> bool:
    return real_may_vote(acceptor, asked, value) or (asked[1] and asked > _last(acceptor))


def _votes_fast_after_classic(acceptor: Acceptor, asked: Round, value: bytes) -> bool:
    return asked[0] >= acceptor.promised and all(asked != at for at, _ in acceptor.cast)


def _any_of_an_older_ballot(leaders: Leaders, ballot: int) -> bool:
    return any(leader is not None and leader.is_open for leader in leaders[:ballot])


def _ignores_votes(known: Sequence[bytes], members: int, rule: Rule) -> Sequence[bytes]:
    return VALUES


def _takes_the_unknown_for_silent(known: Sequence[bytes], members: int, rule: Rule) -> Sequence[bytes]:
    """As if all had been heard, and those of whom no vote is known would never vote."""
    if len(known) < quorum(members):
        return ()
    forced = [value for value, count in Counter(known).items() if count >= fast_quorum(members)]
    return forced or VALUES


def _settles_with_too_few(known: Sequence[bytes], members: int, rule: Rule) -> Sequence[bytes]:
    """Takes what it knows to be all that is needed: most of the votes, though they are no majority's."""
    return [Counter(known).most_common(1)[0][0]] if known else ()


MISTAKEN: dict[str, Mistake] = {
    "an acceptor votes twice in a fast round": Mistake(Protocol(may_vote=_votes_twice), 3, 1),
    "an acceptor votes fast after it promised more": Mistake(Protocol(may_vote=_votes_fast_below_its_promise), 3, 2),
    "an acceptor votes classic after it promised more": Mistake(
        Protocol(may_vote=_votes_classic_below_its_promise), 3, 2
    ),
    "an acceptor votes fast after it voted classic": Mistake(Protocol(may_vote=_votes_fast_after_classic), 3, 2),
    "an acceptor takes the word of an older ballot": Mistake(Protocol(is_open=_any_of_an_older_ballot), 3, 2),
    "a leader ignores the votes that it knows": Mistake(Protocol(recover=_ignores_votes), 3, 1),
    "a leader takes the unknown for silent": Mistake(Protocol(recover=_takes_the_unknown_for_silent), 3, 1),
    "a leader settles with too few votes": Mistake(Protocol(recover=_settles_with_too_few), 4, 1),
    "a leader looks at no promise": Mistake(
        Protocol(rule=Rule(lambda promises, first, members: {}, pick_in_round)), 3, 2
    ),
    "a leader makes up a value": Mistake(
        Protocol(rule=Rule(lambda promises, first, members: {SLOT: msgspec.Raw(b"c")}, pick_in_round)), 3, 1, INVENTED
    ),
    "a majority decides in a fast round": Mistake(Protocol(fast_quorum=quorum), 3, 1),
}
_SHOWN_BY: dict[str, tuple[int, int]] = {  # members and ballots
    "a classic vote counts more than a fast one of a higher ballot": (4, 3),
    "a majority is taken for a fast quorum": (5, 2),
    "one vote less is enough": (4, 2),
    "an acceptor counts as often as it speaks": (4, 2),
    "one vote more is needed": (3, 1),
}
MISTAKEN |= {
    mistake: Mistake(Protocol(rule=wrong), *_SHOWN_BY.get(mistake, (3, 2))) for mistake, wrong in MISTAKES.items()
}
