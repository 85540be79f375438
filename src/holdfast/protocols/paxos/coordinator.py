"""The leader's side of fast rounds: opens them, looks into slots that are not decided, and closes them (D4-B4).

What is opened is never closed within a ballot: to go back to classic rounds the leader takes a new ballot. In an open
one its own proposals are for one slot each, so that no command of its own is voted for in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar
from typing import Protocol as Interface

import msgspec

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.paxos.fallback import Fallback
from holdfast.protocols.paxos.fast import FastRounds
from holdfast.protocols.paxos.fast import Host as FastHost
from holdfast.protocols.paxos.messages import Entry, Suggest, Value, Voted, check_value, digest_of_value
from holdfast.protocols.paxos.notices import FastVoteCast, FastVotesCounted
from holdfast.protocols.paxos.peers import REPLICAS
from holdfast.protocols.paxos.picking import pick_in_round
from holdfast.protocols.paxos.proposer import NOTHING, Phase, Proposer
from holdfast.protocols.paxos.settings import Protocol

_entry = msgspec.msgpack.Decoder(Entry).decode


class Host(FastHost, Interface):
    """The replica, as far as it matters here."""

    proposer: Proposer
    wall: int  # the time that the last command had

    def accept(self, first: int, values: list[Value], out: Outbox) -> None:
        """Phase 2 of classic rounds."""
        ...

    def beat(self, out: Outbox) -> None:
        """Says that it leads, and from where on fast rounds are open."""
        ...

    def renew(self, out: Outbox) -> None:
        """Takes a higher ballot without leaving."""
        ...


class Coordinator(Part):
    """`fast_from`: the first slot with an open fast round, if this replica leads; or 0."""

    name: ClassVar[str] = "coordinator"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Voted: REPLICAS}
    notices: ClassVar[tuple[type[Notice], ...]] = (FastVoteCast, FastVotesCounted)

    def __init__(self, host: Host, fast: FastRounds) -> None:
        self.fast_from = 0
        self.is_held = False  # a change of the group is due: not in open fast rounds
        self.decided_fast = 0  # slots that were decided in open fast rounds …
        self.recovered = 0  # … and of which so many needed a classic one
        self.given_up = 0  # times that fast rounds were
        self.fallback = Fallback(host.settings)
        self._host = host
        self._fast = fast
        self._seen: dict[int, int] = {}  # slot that is not decided → when we first saw it used
        self._asked: dict[int, int] = {}  # slot → when we last suggested something because it was not decided
        self._recovering: set[int] = set()  # slots that went on to a classic round
        self._placed: dict[int, dict[bytes, Value]] = {}  # slot → what is known to have been voted for there
        self._timed_at = 0  # when we last proposed something of our own, which has a time
        self._timer_set = False

    # --------------------------------------------------------------------------------------------- opening and closing
    @property
    def is_open(self) -> bool:
        return self.fast_from > 0

    def begin(self) -> None:
        """This replica leads."""
        self.fallback.begin()

    def close(self) -> None:
        """The ballot is no longer ours, or not the latest. What was voted for may lose its slot still."""
        self.fast_from = 0
        self._seen, self._asked, self._recovering = {}, {}, set()

    def stop(self) -> None:
        """This replica does not lead any more: others care for what was proposed."""
        self.close()
        self._placed = {}

    def _answering(self, now: int) -> set[str]:
        """The others that could vote."""
        host = self._host
        return host.liveness.present(now) & set(host.roster.voters) - {host.settings.name}

    def _open_or_close(self, out: Outbox) -> None:
        host, proposer = self._host, self._host.proposer
        wanted = host.roster.membership.protocol is Protocol.FAST and not self.is_held
        if self.is_open:
            # A link that is away for a moment is no reason.
            voters = 1 + len(self._answering(out.now))
            reason = self.fallback.reason_to_close(voters, host.roster.fast_quorum)
            if not wanted:
                host.renew(out)
            elif reason or self._is_stuck(out.now):
                self._give_up(reason or "a slot is not decided", out)
        elif wanted and proposer.phase is Phase.LEADING:
            self._open_if_it_may_pay_off(out)

    def _open_if_it_may_pay_off(self, out: Outbox) -> None:
        host, proposer, executed = self._host, self._host.proposer, self._host.decided.executed
        voters = 1 + len(self._answering(out.now) & host.peers.heard.keys())
        if not self.fallback.may_open(voters, host.roster.fast_quorum, out.now):
            return
        if executed < proposer.gate:
            # The first slot of a ballot is decided alone, and in a classic round; if nothing waits, by the time.
            if executed == proposer.gate - 1 and proposer.next_slot == proposer.gate and not proposer.waiting:
                value = proposer.take(out.wall, 0, 0)
                proposer.put(proposer.gate, value)
                host.accept(proposer.gate, [value], out)
        elif executed >= proposer.changing_at:
            self.fast_from = proposer.next_slot
            self.fallback.opened(out.now)
            self._fast.permit(proposer.ballot, self.fast_from, out)
            out.report("fast-rounds", replica=host.settings.name, open=True, slot=self.fast_from)
            host.beat(out)

    def _give_up(self, reason: str, out: Outbox) -> None:
        self.given_up += 1
        self.fallback.closed(out.now)
        out.report("fast-rounds", replica=self._host.settings.name, open=False, reason=reason)
        self._host.renew(out)

    def _is_stuck(self, now: int) -> bool:
        """Whether a slot has not been decided for long: what must be proposed there may be known to nobody who is left.
        A new ballot asks for promises instead of votes."""
        patience = self._host.settings.patience
        return any(now - seen > patience and self._is_undecided(slot) for slot, seen in self._seen.items())

    # ------------------------------------------------------------------------------------------------------ proposing
    def finish(self, out: Outbox) -> None:
        """What a turn leads to."""
        if self._host.is_leading:
            self._open_or_close(out)
            if not self.is_open:
                self._resubmit(self._fast.take_waiting())

    def propose(self, wall: int, trim_before: int, out: Outbox) -> bool:
        """Puts what waits into slots that nobody is known to use. Whether `trim_before` was among it.

        If nothing waits for long, an entry with nothing but the time: what clients say to every replica has the time of
        the entry before, and would seem to be older and older.
        """
        host = self._host
        trimmed = False
        while host.proposer.waiting or trim_before or self._is_time_due(out):
            slot = next((slot for slot in self._fast.free_slots() if not self._votes(slot)), 0)
            if not slot:
                break
            value = host.proposer.take(wall, host.settings.batch_commands, host.settings.batch_bytes, trim_before)
            trimmed, trim_before = trimmed or bool(trim_before), 0
            self._timed_at = out.now
            self._suggest(slot, value, out)
        return trimmed

    def _is_time_due(self, out: Outbox) -> bool:
        every = self._host.settings.time_every
        return out.wall - self._host.wall >= every and out.now - self._timed_at >= every

    def _suggest(self, slot: int, value: Value, out: Outbox) -> None:
        ballot = self._host.proposer.ballot
        # Before our own disk has it: the message claims nothing that could be forgotten.
        self._host.peers.tell_all(Suggest(ballot, slot, value), out, now=True)
        self._fast.vote(ballot, slot, value, out)

    def _resubmit(self, values: list[Value]) -> None:
        for value in values:
            for command in _entry(value).commands:
                self._host.proposer.submit(command.copy())

    # ------------------------------------------------------------------------------------------------------- recovery
    def _votes(self, slot: int) -> dict[str, bytes]:
        return self._fast.tally.votes(self._host.proposer.ballot, slot)

    def on_voted(self, peer: str, voted: Voted, out: Outbox) -> None:
        host = self._host
        if not host.counts(peer, voted.ballot) or not self.is_open or voted.ballot != host.proposer.ballot:
            return
        check_value(voted.value)
        if host.decided.is_near(voted.slot):
            self._place(voted.slot, voted.value)
            self._fast.count(peer, voted.ballot, voted.slot, voted.value, out)
            host.execute(out)

    def on_fast_votes_counted(self, counted: FastVotesCounted, out: Outbox) -> None:
        ballot, slots = counted.ballot, counted.slots
        if not self.is_open or ballot != self._host.proposer.ballot:
            return
        for slot in filter(self._is_undecided, slots):
            self._seen.setdefault(slot, out.now)
            # Where others are so far ahead, it is decided already, and we are told.
            if slot <= self._last_to_act() and (slot in self._asked or self._fast.tally.is_split(ballot, slot)):
                self._act(slot, out)
        self._set_timer(out)

    def _is_undecided(self, slot: int) -> bool:
        """Whether nothing is decided in an open fast round, and nothing proposed in the classic one above."""
        host = self._host
        is_ours = slot >= self.fast_from and slot > host.decided.executed
        return is_ours and slot not in host.proposer.undecided and not host.decided.knows(slot)

    def _last_to_act(self) -> int:
        return self._host.decided.executed + 2 * self._host.settings.pipeline

    def _set_timer(self, out: Outbox) -> None:
        if not self._timer_set and any(map(self._is_undecided, self._seen)):
            self._timer_set = True
            out.set_timer((self.name, "recover"), self._host.settings.recover_after)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._timer_set = False
        if not self.is_open:
            return
        settings, executed = self._host.settings, self._host.decided.executed
        self._seen = {slot: seen for slot, seen in self._seen.items() if slot > executed}
        # Slots below one that is used, and that nobody uses, have to be filled.
        last = min(max(self._seen, default=0), self._last_to_act())
        for slot in range(max(self.fast_from, executed + 1), last + 1):
            if self._is_undecided(slot):
                seen = self._seen.setdefault(slot, out.now)
                if out.now >= seen + settings.recover_after:
                    self._act(slot, out)
        self._set_timer(out)

    def _act(self, slot: int, out: Outbox) -> None:
        """Proposes in the classic round what may be chosen in the fast one, or makes others say how they voted."""
        value = self._recovered_value(slot)
        if value is not None:
            self._recovering.add(slot)
            self._host.proposer.put(slot, value)
            self._host.accept(slot, [value], out)
        elif slot not in self._asked or out.now >= self._asked[slot] + self._host.settings.repeat_after:
            # Not with every vote that is told: the answers are votes that are told.
            self._asked[slot] = out.now
            vote = self._host.acceptor.votes.get(slot)
            own = vote is not None and vote.ballot == self._host.proposer.ballot
            self._suggest(slot, vote.value if vote is not None and own else NOTHING, out)

    def _recovered_value(self, slot: int) -> Value | None:
        """What to propose, if enough have voted and it is known."""
        votes = self._votes(slot)
        if len(votes) < self._host.roster.quorum:
            return None
        digest = pick_in_round(votes, len(self._host.roster.voters))
        return self._preferred(slot, votes) if digest is None else self._fast.value_in(slot, digest)

    def _preferred(self, slot: int, votes: dict[str, bytes]) -> Value | None:
        """Any value will do: what most voted for, then what we voted for; but known it must be."""
        own = votes.get(self._host.settings.name)
        ranks = sorted(Counter(votes.values()).items(), key=lambda item: (-item[1], item[0] != own, item[0]))
        return next((value for digest, _ in ranks if (value := self._fast.value_in(slot, digest)) is not None), None)

    # --------------------------------------------------------------------------------------------- what lost its slot
    def on_fast_vote_cast(self, cast: FastVoteCast, out: Outbox) -> None:
        self._place(cast.slot, cast.value)

    def _place(self, slot: int, value: Value) -> None:
        """Someone has voted for a value in a slot; if the slot is decided otherwise, the value needs another one."""
        if self._host.is_leading:
            self._placed.setdefault(slot, {})[digest_of_value(value)] = value.copy()

    def executed(self, slot: int, digest: bytes) -> None:
        """What was voted for in the slot, and is not what was decided there, waits again."""
        placed = self._placed.pop(slot, {})
        elsewhere = {other for values in self._placed.values() for other in values}
        for other, value in placed.items():
            if other != digest and other not in elsewhere and not self._fast.tally.was_executed(other):
                self._resubmit([value])
        if self.is_open and slot >= self.fast_from:
            self.decided_fast += 1
            self.recovered += slot in self._recovering
            self.fallback.decided(slot in self._recovering)
        self._seen.pop(slot, None)
        self._asked.pop(slot, None)
        self._recovering.discard(slot)
