"""All that can happen in one slot of Fast Paxos, searched exhaustively, with the package's picking rule and acceptor.

Messages are never taken away once they are said, so each may be lost, late, doubled or out of order: who acts takes any
part of what was said. Acceptors are alike: states that differ only in their names are one state.

Left out, unless `passing` asks for it: acceptors that pass over a ballot without a promise. One that promises each
ballot on its way up has said more and may do the same, so nothing is lost; a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise, product
from typing import Generic, NamedTuple, TypeVar

import msgspec

from holdfast.kernel.outbox import RecordingOutbox
from holdfast.schemes.paxos.acceptor import Acceptor as RealAcceptor
from holdfast.schemes.paxos.ballots import NO_ROUND, Round, fast_quorum, quorum, round_of
from holdfast.schemes.paxos.messages import AcceptorState, Vote
from tests.paxos.picking_mistakes import REAL, Rule

T = TypeVar("T")
SLOT = 1
VALUES = (b"a", b"b")  # that clients ask for
Cast = tuple[Round, bytes]
SILENT: Cast = ((-1, False), b"")  # of a ballot that an acceptor passed over without a promise


class Acceptor(NamedTuple):
    """`cast` are its votes, in the order of casting; `told` is what it said in its promise of each ballot."""

    promised: int = 0
    cast: tuple[Cast, ...] = ()
    told: tuple[Cast | None, ...] = ()

    def promise(self, ballot: int) -> Acceptor:
        return self._rise(ballot, silent_to=ballot - 1)

    def vote(self, asked: Round, value: bytes, passing: bool) -> Acceptor:
        after = self._rise(max(asked[0], self.promised), silent_to=asked[0] if passing else 0)
        return after._replace(cast=(*self.cast, (asked, value)))

    def _rise(self, ballot: int, silent_to: int) -> Acceptor:
        last = self.cast[-1] if self.cast else None
        said = (SILENT if passed <= silent_to else last for passed in range(self.promised + 1, ballot + 1))
        return Acceptor(ballot, self.cast, (*self.told, *said))


class Leader(NamedTuple):
    """Of one ballot: whether it has opened its fast round, and what it proposed in the classic one."""

    is_open: bool = False
    value: bytes = b""


# The number of what the leaders did, then those of the acceptors, in order: they have no names.
State = tuple[int, ...]
Leaders = tuple[Leader | None, ...]
Said = tuple[Cast | None, ...]


class Settled(NamedTuple):
    """What a leader did, and the promises or votes that it acted on."""

    ballot: int
    leader: Leader
    heard: Said


# A promise of a ballot, a vote, or what a leader did; with where the acceptor stood in the state before.
Step = tuple[State, int, "int | Cast | Settled"]


def real_may_vote(acceptor: Acceptor, asked: Round, value: bytes) -> bool:
    return _real_acceptor_votes(acceptor.promised, acceptor.cast[-1] if acceptor.cast else None, asked, value)


@cache
def _real_acceptor_votes(promised: int, last: Cast | None, asked: Round, value: bytes) -> bool:
    """Whether the package's acceptor votes, when it comes from the disk with this promise and this vote."""
    real, out = RealAcceptor(), RecordingOutbox()
    real.recover([AcceptorState(promised, [_vote(last)] if last else [])])
    (ballot, classic), vote = asked, msgspec.Raw(value)
    if classic:
        real.accept(ballot, SLOT, [vote], out)
    else:
        real.accept_fast(ballot, SLOT, vote, out)
    voted = bool(out.effects)
    after = (asked, value) if voted else last
    assert real.votes_from(SLOT) == ([_vote(after)] if after else []), "the next promise tells it"
    assert real.promised == (max(promised, ballot) if voted else promised)
    return voted


@cache
def real_may_promise(promised: int, ballot: int) -> bool:
    real, out = RealAcceptor(), RecordingOutbox()
    real.recover([AcceptorState(promised, [])])
    may = real.promise(ballot, out)
    assert real.promised == max(promised, ballot)
    return may


def real_is_open(leaders: Leaders, ballot: int) -> bool:
    leader = leaders[ballot - 1]
    return leader is not None and leader.is_open


def real_recover(known: Sequence[bytes], members: int, rule: Rule) -> Sequence[bytes]:
    """What the leader of a fast round may propose in the classic one, if these are the votes that it knows."""
    if len(known) < quorum(members):
        return ()
    forced = rule.pick_in_round({str(who): value for who, value in enumerate(known)}, members)
    return VALUES if forced is None else (forced,)


@dataclass(frozen=True)
class Protocol:
    """The rules that are explored; a mistake takes the place of one of them."""

    rule: Rule = REAL
    may_vote: Callable[[Acceptor, Round, bytes], bool] = real_may_vote
    is_open: Callable[[Leaders, int], bool] = real_is_open
    recover: Callable[[Sequence[bytes], int, Rule], Sequence[bytes]] = real_recover
    fast_quorum: Callable[[int], int] = fast_quorum  # of those who learn what is decided


class Numbers(Generic[T]):
    """Small numbers for what is compared often."""

    def __init__(self) -> None:
        self.all: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, thing: T) -> int:
        number = self._numbers.setdefault(thing, len(self.all))
        if number == len(self.all):
            self.all.append(thing)
        return number


@dataclass
class Exploration:
    """A breadth-first search: so the first problem that is found is one of the shortest."""

    members: int
    ballots: int
    protocol: Protocol = Protocol()
    states_max: int | None = None  # None: all there are
    passing: bool = False
    problem: str = ""
    transcript: list[str] = field(default_factory=list)
    decisions: set[tuple[int, bool, bytes]] = field(default_factory=set)  # (ballot, fast, value) that was ever chosen
    complete: bool = False

    def __post_init__(self) -> None:
        # Acceptors and leaders as they may be, by number; and what is worked out of them once.
        self._acceptors: Numbers[Acceptor] = Numbers()
        self._leaders: Numbers[Leaders] = Numbers()
        self._acting: dict[tuple[int, int], list[tuple[int, int | Cast]]] = {}
        self._led: dict[tuple[int, int], int] = {}
        self._picks: dict[Said, dict[bytes | None, Said]] = {}
        self._recoveries: dict[Said, dict[bytes, Said]] = {}
        self._quorum, self._fast_quorum = quorum(self.members), self.protocol.fast_quorum(self.members)
        acceptors = (self._acceptors.of(Acceptor()),) * self.members
        self._start: State = (self._leaders.of((None,) * self.ballots), *acceptors)
        self._before: dict[State, State] = {self._start: self._start}

    @property
    def states(self) -> int:
        return len(self._before)

    def run(self) -> Exploration:
        front = [self._start]
        while front:
            reached: list[State] = []
            for state in front:
                for after, place, what in self._steps(state):
                    if after in self._before:
                        continue
                    self._before[after] = state
                    if place and not isinstance(what, int) and self._is_wrong(after):  # Only votes make decisions.
                        self._tell(after)
                        return self
                    reached.append(after)
                if self.states_max is not None and self.states >= self.states_max:
                    return self
            front = reached
        self.complete = True
        return self

    # ------------------------------------------------------------------------------------------------ what is wrong
    def _is_wrong(self, state: State) -> bool:
        chosen = self._chosen(state)
        if not chosen:
            return False
        self.decisions |= chosen
        values = {value for _, _, value in chosen}
        if len(values) > 1:
            self.problem = "two values are chosen"
        elif not values <= set(VALUES):
            self.problem = "a value is chosen that nobody asked for"
        return bool(self.problem)

    def _chosen(self, state: State) -> set[tuple[int, bool, bytes]]:
        votes = [cast for number in state[1:] for cast in self._acceptors.all[number].cast]
        chosen = set()
        for cast in set(votes):
            (ballot, classic), value = cast
            if votes.count(cast) >= (self._quorum if classic else self._fast_quorum):
                chosen.add((ballot, not classic, value))
        return chosen

    # --------------------------------------------------------------------------------------------- what may happen
    def _steps(self, state: State) -> Iterator[Step]:
        leaders = state[0]
        for place in range(1, len(state)):
            number = state[place]
            if place > 1 and state[place - 1] == number:
                continue  # One just like it was looked at.
            others = state[1:place] + state[place + 1 :]
            for after, what in self._acts(number, leaders):
                yield (leaders, *sorted((*others, after))), place, what
        known = [self._acceptors.all[number] for number in state[1:]]
        for ballot, leader in enumerate(self._leaders.all[leaders], 1):
            if leader is None or (leader.is_open and not leader.value):
                for made, heard in self._leads(ballot, leader, known):
                    yield (self._with(leaders, ballot, made), *state[1:]), 0, Settled(ballot, made, heard)

    def _acts(self, number: int, leaders: int) -> list[tuple[int, int | Cast]]:
        """What an acceptor may be next: after a promise, or a vote."""
        key = (number, leaders)
        if key not in self._acting:
            acceptor, said = self._acceptors.all[number], self._leaders.all[leaders]
            last = self.ballots if self.passing else min(acceptor.promised + 1, self.ballots)
            promises = [b for b in range(acceptor.promised + 1, last + 1) if real_may_promise(acceptor.promised, b)]
            asked = [(round_of(b, fast=False), leader.value) for b, leader in enumerate(said, 1) if leader]
            opened = [b for b in range(1, self.ballots + 1) if self.protocol.is_open(said, b)]
            asked += [(round_of(b, fast=True), value) for b, value in product(opened, VALUES)]
            votes = [(at, value) for at, value in asked if value and self.protocol.may_vote(acceptor, at, value)]
            found: list[tuple[int, int | Cast]] = [(self._acceptors.of(acceptor.promise(b)), b) for b in promises]
            found += [(self._acceptors.of(acceptor.vote(*vote, self.passing)), vote) for vote in votes]
            self._acting[key] = found
        return self._acting[key]

    def _leads(self, ballot: int, leader: Leader | None, known: list[Acceptor]) -> Iterator[tuple[Leader, Said]]:
        if leader is None:
            promised = [acceptor.told[ballot - 1] for acceptor in known if acceptor.promised >= ballot]
            for value, heard in self._picked([said for said in promised if said != SILENT]).items():
                if value is not None:
                    yield Leader(value=value), heard
                else:
                    yield Leader(is_open=True), heard
                    yield from ((Leader(value=free), heard) for free in VALUES)
        else:
            at = round_of(ballot, fast=True)
            votes: list[Cast | None] = [cast for acceptor in known for cast in acceptor.cast if cast[0] == at]
            for value, heard in self._recovered(votes).items():
                yield Leader(is_open=True, value=value), heard

    def _picked(self, told: list[Cast | None]) -> dict[bytes | None, Said]:
        """What the rule wants, for each part of the promises that is a majority; and one such part."""
        if len(told) < self._quorum:
            return {}
        key = tuple(sorted(told, key=_order))
        if key not in self._picks:
            found: dict[bytes | None, Said] = {}
            for heard in _parts(key, self._quorum):
                promises = [[_vote(cast)] * 2 if cast else [] for cast in heard]  # What is said may come twice.
                value = self.protocol.rule.pick(promises, SLOT, self.members).get(SLOT)
                found.setdefault(None if value is None else bytes(value), heard)
            self._picks[key] = found
        return self._picks[key]

    def _recovered(self, votes: list[Cast | None]) -> dict[bytes, Said]:
        """What the leader may settle its fast round with, for each part of the votes."""
        key = tuple(sorted(votes, key=_order))
        if key not in self._recoveries:
            found: dict[bytes, Said] = {}
            for heard in _parts(key, 0):
                known = [cast[1] for cast in heard if cast]
                for value in self.protocol.recover(known, self.members, self.protocol.rule):
                    found.setdefault(value, heard)
            self._recoveries[key] = found
        return self._recoveries[key]

    def _with(self, leaders: int, ballot: int, made: Leader) -> int:
        before = self._leaders.all[leaders]
        return self._leaders.of((*before[: ballot - 1], made, *before[ballot:]))

    # -------------------------------------------------------------------------------------------------- what it was
    def _tell(self, last: State) -> None:
        """The way to a state, with names for the acceptors again."""
        way = [last]
        while way[-1] != self._start:
            way.append(self._before[way[-1]])
        names = [f"acceptor {who}" for who in range(1, self.members + 1)]
        for before, after in pairwise(reversed(way)):
            place, what = next((place, what) for found, place, what in self._steps(before) if found == after)
            if isinstance(what, Settled):
                self.transcript.append(_shown_leader(what))
                continue
            self.transcript.append(f"{names[place - 1]} {_shown_act(what)}")
            names = _renamed(before[1:], after[1:], place - 1, names)
        for ballot, fast, value in sorted(self._chosen(last), key=lambda chosen: (chosen[0], not chosen[1], chosen[2])):
            self.transcript.append(f"chosen in the {'fast' if fast else 'classic'} round of {ballot}: {value.decode()}")


def _renamed(before: State, after: State, changed: int, names: list[str]) -> list[str]:
    """Who stands where after one of them has changed."""
    stay = [(number, name) for at, (number, name) in enumerate(zip(before, names, strict=True)) if at != changed]
    left = list(after)
    for number, _ in stay:
        left.remove(number)
    return [name for _, name in sorted([*stay, (left[0], names[changed])])]


def _parts(said: Said, least: int) -> list[Said]:
    sizes = range(least, len(said) + 1)
    return list(dict.fromkeys(part for size in sizes for part in combinations(said, size)))


def _order(cast: Cast | None) -> Cast:
    return cast or (NO_ROUND, b"")


def _vote(cast: Cast) -> Vote:
    (ballot, classic), value = cast
    return Vote(SLOT, ballot, msgspec.Raw(value), not classic)


def _shown_act(what: int | Cast) -> str:
    if isinstance(what, int):
        return f"promises ballot {what}"
    (ballot, classic), value = what
    return f"votes in the {'classic' if classic else 'fast'} round of ballot {ballot} for {value.decode()}"


def _shown_leader(what: Settled) -> str:
    does = f"proposes {what.leader.value.decode()}" if what.leader.value else "opens the fast round"
    heard = [
        f"{cast[1].decode()} in the {'classic' if cast[0][1] else 'fast'} round of {cast[0][0]}" if cast else "no vote"
        for cast in what.heard
    ]
    return f"leader of ballot {what.ballot} {does} (heard: {', '.join(heard) or 'nothing'})"
