"""The leader's side of fast rounds: opens them, looks into slots that are not decided, and closes them (D4-B4).

What is opened is never closed within a ballot: to go back to classic rounds the leader takes a new ballot. In an open
one its own proposals are for one slot each, so that no command of its own is voted for in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol

import msgspec

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.schemes.paxos.fallback import Fallback
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import Proposal, Suggest, Value, Voted, check_value, digest_of_value
from holdfast.schemes.paxos.notices import (
    BallotWanted,
    FastRoundsOpened,
    FastSlotExecuted,
    FastVoteCast,
    FastVotesCounted,
)
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.picking import pick_in_round
from holdfast.schemes.paxos.proposer import NOTHING, Phase

_proposal = msgspec.msgpack.Decoder(Proposal).decode


class Voting(Protocol):
    """Who asks for votes in classic rounds."""

    def propose(self, ballot: int, first: int, values: list[Value], out: Outbox) -> None: ...


class Executing(Protocol):
    """Who executes what is decided."""

    wall: int  # the time that the last command had

    def execute(self, out: Outbox) -> None: ...


class FastVoting(Protocol):
    """Who votes in fast rounds, and counts votes there."""

    def permit(self, ballot: int, first: int, out: Outbox) -> None: ...

    def free_slots(self) -> Iterator[int]: ...

    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None: ...

    def count(self, voter: str, ballot: int, slot: int, value: Value, out: Outbox) -> None: ...

    def value_in(self, slot: int, digest: bytes) -> Value | None: ...


class Coordinator(Part):
    """Fast rounds of the ballot by which this replica leads."""

    name: ClassVar[str] = "coordinator"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Voted: REPLICAS}
    notices: ClassVar[tuple[type[Notice], ...]] = (FastVoteCast, FastVotesCounted, FastSlotExecuted)

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        fallback: Fallback,
        learner: Executing,
        fast: FastVoting,
        voter: Voting,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._peers, self._liveness = view.peers, view.liveness
        self._acceptor, self._proposer = memory.acceptor, memory.proposer
        self._decided, self._count = memory.decided, memory.count
        self._fallback, self._learner, self._fast, self._voter = fallback, learner, fast, voter
        self.decided_fast = 0  # slots that were decided in open fast rounds …
        self.recovered = 0  # … and of which so many needed a classic one
        self.given_up = 0  # times that fast rounds were
        self._seen: dict[int, int] = {}  # slot that is not decided → when we first saw it used
        self._asked: dict[int, int] = {}  # slot → when we last suggested something because it was not decided
        self._recovering: set[int] = set()  # slots that went on to a classic round
        self._placed: dict[int, dict[bytes, Value]] = {}  # slot → what is known to have been voted for there
        self._timed_at = 0  # when we last proposed something of our own, which has a time
        self._timer_set = False

    # --------------------------------------------------------------------------------------------- opening and closing
    def begin(self) -> None:
        """This replica leads."""
        self._fallback.begin()

    def close(self) -> None:
        """The ballot is no longer ours, or not the latest. What was voted for may lose its slot still."""
        self._seen, self._asked, self._recovering = {}, {}, set()

    def stop(self) -> None:
        """This replica does not lead any more: others care for what was proposed."""
        self.close()
        self._placed = {}

    def _answering(self, now: int) -> set[str]:
        """The others that could vote."""
        return self._liveness.present(now) & set(self._roster.voters) - {self._settings.name}

    def open_or_close(self, is_held: bool, out: Outbox) -> None:
        """What a leader's turn leads to. `is_held`: a change of the group is due, which is not for open fast rounds."""
        wanted = self._roster.is_fast and not is_held
        if self._proposer.fast_from:
            # A link that is away for a moment is no reason.
            voters = 1 + len(self._answering(out.now))
            reason = self._fallback.reason_to_close(voters, self._roster.fast_quorum)
            if not wanted:
                out.tell(BallotWanted())
            elif reason or self._is_stuck(out.now):
                self._give_up(reason or "a slot is not decided", out)
        elif wanted and self._proposer.phase is Phase.LEADING:
            self._open_if_it_may_pay_off(out)

    def _open_if_it_may_pay_off(self, out: Outbox) -> None:
        proposer, executed = self._proposer, self._decided.executed
        voters = 1 + len(self._answering(out.now) & self._peers.heard.keys())
        if not self._fallback.may_open(voters, self._roster.fast_quorum, out.now):
            return
        if executed < proposer.gate:
            # The first slot of a ballot is decided alone, and in a classic round; if nothing waits, by the time.
            if executed == proposer.gate - 1 and proposer.next_slot == proposer.gate and not proposer.waiting:
                value = proposer.take(out.wall, 0, 0)
                proposer.put(proposer.gate, value)
                self._voter.propose(proposer.ballot, proposer.gate, [value], out)
        elif executed >= proposer.changing_at:
            proposer.open_fast_rounds()
            self._fallback.opened(out.now)
            self._fast.permit(proposer.ballot, proposer.fast_from, out)
            out.report("fast-rounds", replica=self._settings.name, open=True, slot=proposer.fast_from)
            out.tell(FastRoundsOpened())

    def _give_up(self, reason: str, out: Outbox) -> None:
        self.given_up += 1
        self._fallback.closed(out.now)
        out.report("fast-rounds", replica=self._settings.name, open=False, reason=reason)
        out.tell(BallotWanted())

    def _is_stuck(self, now: int) -> bool:
        """Whether a slot has not been decided for long: what must be proposed there may be known to nobody who is left.
        A new ballot asks for promises instead of votes."""
        patience = self._settings.patience
        return any(now - seen > patience and self._is_undecided(slot) for slot, seen in self._seen.items())

    # ------------------------------------------------------------------------------------------------------ proposing
    def propose(self, wall: int, trim_before: int, out: Outbox) -> bool:
        """Puts what waits into slots that nobody is known to use. Whether `trim_before` was among it.

        If nothing waits for long, an entry with nothing but the time: what clients say to every replica has the time of
        the entry before, and would seem to be older and older.
        """
        trimmed = False
        while self._proposer.waiting or trim_before or self._is_time_due(out):
            slot = next((slot for slot in self._fast.free_slots() if not self._votes(slot)), 0)
            if not slot:
                break
            value = self._proposer.take(wall, self._settings.batch_commands, self._settings.batch_bytes, trim_before)
            trimmed, trim_before = trimmed or bool(trim_before), 0
            self._timed_at = out.now
            self._suggest(slot, value, out)
        return trimmed

    def _is_time_due(self, out: Outbox) -> bool:
        every = self._settings.time_every
        return out.wall - self._learner.wall >= every and out.now - self._timed_at >= every

    def _suggest(self, slot: int, value: Value, out: Outbox) -> None:
        ballot = self._proposer.ballot
        # Before our own disk has it: the message claims nothing that could be forgotten.
        self._peers.tell_all(Suggest(ballot, slot, value), out, now=True)
        self._fast.vote(ballot, slot, value, out)

    def resubmit(self, values: list[Value]) -> None:
        """Commands of values that have no slot wait again."""
        for value in values:
            for command in _proposal(value).commands:
                self._proposer.submit(command.copy())

    # ------------------------------------------------------------------------------------------------------- recovery
    def _votes(self, slot: int) -> dict[str, bytes]:
        return self._count.votes(self._proposer.ballot, slot)

    def on_voted(self, peer: str, voted: Voted, out: Outbox) -> None:
        is_open = self._proposer.fast_from and voted.ballot == self._proposer.ballot
        if not self._peers.counts(peer, voted.ballot) or not is_open:
            return
        check_value(voted.value)
        if self._decided.is_near(voted.slot):
            self._place(voted.slot, voted.value)
            self._fast.count(peer, voted.ballot, voted.slot, voted.value, out)
            self._learner.execute(out)

    def on_fast_votes_counted(self, counted: FastVotesCounted, out: Outbox) -> None:
        ballot, slots = counted.ballot, counted.slots
        if not self._proposer.fast_from or ballot != self._proposer.ballot:
            return
        for slot in filter(self._is_undecided, slots):
            self._seen.setdefault(slot, out.now)
            # Where others are so far ahead, it is decided already, and we are told.
            if slot <= self._last_to_act() and (slot in self._asked or self._count.is_split(ballot, slot)):
                self._act(slot, out)
        self._set_timer(out)

    def _is_undecided(self, slot: int) -> bool:
        """Whether nothing is decided in an open fast round, and nothing proposed in the classic one above."""
        is_ours = slot >= self._proposer.fast_from and slot > self._decided.executed
        return is_ours and slot not in self._proposer.undecided and not self._decided.knows(slot)

    def _last_to_act(self) -> int:
        return self._decided.executed + 2 * self._settings.pipeline

    def _set_timer(self, out: Outbox) -> None:
        if not self._timer_set and any(map(self._is_undecided, self._seen)):
            self._timer_set = True
            out.set_timer((self.name, "recover"), self._settings.recover_after)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._timer_set = False
        if not self._proposer.fast_from:
            return
        executed = self._decided.executed
        self._seen = {slot: seen for slot, seen in self._seen.items() if slot > executed}
        # Slots below one that is used, and that nobody uses, have to be filled.
        last = min(max(self._seen, default=0), self._last_to_act())
        for slot in range(max(self._proposer.fast_from, executed + 1), last + 1):
            if self._is_undecided(slot):
                seen = self._seen.setdefault(slot, out.now)
                if out.now >= seen + self._settings.recover_after:
                    self._act(slot, out)
        self._set_timer(out)

    def _act(self, slot: int, out: Outbox) -> None:
        """Proposes in the classic round what may be chosen in the fast one, or makes others say how they voted."""
        value = self._recovered_value(slot)
        if value is not None:
            self._recovering.add(slot)
            self._proposer.put(slot, value)
            self._voter.propose(self._proposer.ballot, slot, [value], out)
        elif slot not in self._asked or out.now >= self._asked[slot] + self._settings.repeat_after:
            # Not with every vote that is told: the answers are votes that are told.
            self._asked[slot] = out.now
            vote = self._acceptor.votes.get(slot)
            own = vote is not None and vote.ballot == self._proposer.ballot
            self._suggest(slot, vote.value if vote is not None and own else NOTHING, out)

    def _recovered_value(self, slot: int) -> Value | None:
        """What to propose, if enough have voted and it is known."""
        votes = self._votes(slot)
        if len(votes) < self._roster.quorum:
            return None
        digest = self._forced(votes)
        return self._preferred(slot, votes) if digest is None else self._fast.value_in(slot, digest)

    def _forced(self, votes: dict[str, bytes]) -> bytes | None:
        """The digest of what may be chosen in the fast round, if something may."""
        return pick_in_round(votes, len(self._roster.voters))

    def _preferred(self, slot: int, votes: dict[str, bytes]) -> Value | None:
        """Any value will do: what most voted for, then what we voted for; but known it must be."""
        own = votes.get(self._settings.name)
        ranks = sorted(Counter(votes.values()).items(), key=lambda item: (-item[1], item[0] != own, item[0]))
        return next((value for digest, _ in ranks if (value := self._fast.value_in(slot, digest)) is not None), None)

    # --------------------------------------------------------------------------------------------- what lost its slot
    def on_fast_vote_cast(self, cast: FastVoteCast, out: Outbox) -> None:
        self._place(cast.slot, cast.value)

    def _place(self, slot: int, value: Value) -> None:
        """Someone has voted for a value in a slot; if the slot is decided otherwise, the value needs another one."""
        if self._proposer.is_leading:
            self._placed.setdefault(slot, {})[digest_of_value(value)] = value.copy()

    def on_fast_slot_executed(self, executed: FastSlotExecuted, out: Outbox) -> None:
        """What was voted for in the slot, and is not what was decided there, waits again."""
        slot, digest = executed.slot, executed.digest
        placed = self._placed.pop(slot, {})
        elsewhere = {other for values in self._placed.values() for other in values}
        for other, value in placed.items():
            if other != digest and other not in elsewhere and not self._count.was_executed(other):
                self.resubmit([value])
        if 0 < self._proposer.fast_from <= slot:
            self.decided_fast += 1
            self.recovered += slot in self._recovering
            self._fallback.decided(slot in self._recovering)
        self._seen.pop(slot, None)
        self._asked.pop(slot, None)
        self._recovering.discard(slot)

    def measure(self) -> dict[str, int]:
        return {
            "replica_fast_slots_total": self.decided_fast,
            "replica_fast_recovered_total": self.recovered,
            "replica_fast_given_up_total": self.given_up,
        }
