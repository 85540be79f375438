"""The acceptor: promises and votes, each on the disk before anyone hears of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.kernel.messages import Record
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.ballots import NO_ROUND, may_vote, round_of
from holdfast.schemes.paxos.messages import AcceptedVotes, AcceptorState, Promised, Value, Vote

STREAM = "acceptor"


class SafeVotes(NamedTuple):
    """Votes of one go that are on the disk."""

    ballot: int
    slots: list[int]
    fast: bool


class Acceptor:
    """State that must survive: what was promised, and the last vote in each slot."""

    def __init__(self) -> None:
        self.promised = 0
        self.votes: dict[int, Vote] = {}
        self.trimmed = 0  # slots up to here are decided, and votes in them may be forgotten
        self._under_way: deque[tuple[int, SafeVotes]] = deque()  # by token, not durable yet
        self._durable_promise = 0
        self._promise_token = 0
        self._unchecked = 0
        self._stored_bytes = 0  # of values, in votes on the disk: also in those that are forgotten

    def recover(self, records: Iterable[Record]) -> None:
        for record in records:
            match record:
                case Promised():
                    require(record.ballot >= self.promised, "promises do not fall", ballot=record.ballot)
                    self.promised = record.ballot
                case AcceptedVotes():
                    require(record.ballot >= self.promised, "no vote was against a promise", ballot=record.ballot)
                    self._vote(record.ballot, record.first, record.values, record.fast)
                case AcceptorState():
                    self.promised = record.promised
                    self.votes = {vote.slot: vote for vote in record.votes}
                    self.trimmed = record.trimmed
                    self._stored_bytes = self._bytes()
                case _:
                    broken("the acceptor's stream holds its records", record=type(record).__name__)
        self._durable_promise = self.promised

    def promise(self, ballot: int, out: Outbox) -> bool:
        """Whether nothing higher was promised. The promise is on its way to the disk then; an answer waits for it."""
        if ballot < self.promised:
            return False
        if ballot > self.promised:
            self.promised = ballot
            self._promise_token = out.append(STREAM, Promised(ballot))
        return True

    def accept(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        """Whether the values were voted for, in classic rounds. `on_durable` says when the votes are safe."""
        if ballot < self.promised:
            return False
        if not all(self.has_vote(slot, ballot) for slot in range(first, first + len(values))):
            self._write(ballot, first, values, False, out)
        return True

    def accept_fast(self, ballot: int, slot: int, value: Value, out: Outbox) -> bool:
        """Whether the value was voted for now, in the slot's fast round. There an acceptor votes once, whatever comes,
        and never after it voted in the classic round above."""
        if not self.may_vote_fast(slot, ballot):
            return False
        self._write(ballot, slot, [value], True, out)
        return True

    def may_vote_fast(self, slot: int, ballot: int) -> bool:
        vote = self.votes.get(slot)
        return may_vote(self.promised, NO_ROUND if vote is None else vote.round, round_of(ballot, fast=True))

    def has_vote(self, slot: int, ballot: int, fast: bool = False) -> bool:
        """Whether the last vote in a slot is of this round."""
        vote = self.votes.get(slot)
        return vote is not None and vote.round == round_of(ballot, fast)

    def _write(self, ballot: int, first: int, values: list[Value], fast: bool, out: Outbox) -> None:
        token = out.append(STREAM, AcceptedVotes(ballot, first, values, fast))
        self._vote(ballot, first, values, fast)
        self._promise_token = token
        self._under_way.append((token, SafeVotes(ballot, list(range(first, first + len(values))), fast)))

    def _vote(self, ballot: int, first: int, values: list[Value], fast: bool) -> None:
        self.promised = ballot
        for slot, value in enumerate(values, first):
            # A value that came in a large message would keep all of it alive.
            self.votes[slot] = Vote(slot, ballot, value.copy(), fast)
            self._stored_bytes += len(value)

    def on_durable(self, token: int) -> list[SafeVotes]:
        """The votes that are safe now."""
        if token >= self._promise_token:
            self._durable_promise = self.promised
        safe = []
        while self._under_way and self._under_way[0][0] <= token:
            safe.append(self._under_way.popleft()[1])
        return safe

    def is_safe(self, ballot: int) -> bool:
        """Whether our own promise of a ballot is on the disk."""
        return self._durable_promise >= ballot

    def votes_from(self, first: int) -> list[Vote]:
        return [self.votes[slot] for slot in sorted(self.votes) if slot >= first]

    def trim(self, before: int, out: Outbox) -> None:
        """Forgets votes in slots that are decided, executed and in a snapshot. The disk forgets them when they are half
        of what it has, or more: one that catches up has votes far ahead, and would write them again each time."""
        self.votes = {slot: vote for slot, vote in self.votes.items() if slot >= before}
        self.trimmed = max(self.trimmed, before - 1)
        kept = self._bytes()
        if self._stored_bytes < 2 * kept:
            return
        self._stored_bytes = kept
        # What is under way stays in the order of the disk: the new record stands for it.
        out.snapshot(STREAM, AcceptorState(self.promised, self.votes_from(before), self.trimmed))

    def _bytes(self) -> int:
        return sum([len(vote.value) for vote in self.votes.values()])

    def check_invariants(self) -> None:
        # A look at all votes after every turn would make long runs quadratic; short ones get it.
        self._unchecked += 1
        if self._unchecked <= len(self.votes) // 16:
            return
        self._unchecked = 0
        promised = self.promised
        for slot, vote in self.votes.items():
            # Without a call for each vote, which took a tenth of a swarm's time.
            if vote.slot != slot:
                broken("a vote is found under its slot", slot=slot)
            if vote.ballot > promised:
                broken("no vote is above the promise", slot=slot, ballot=vote.ballot)
