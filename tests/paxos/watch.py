"""What must hold at every moment of a group's life, judged from outside.

The watch sees three things: what becomes safe on each disk, what leaves each machine, and what each application is
given. From the first it works out by itself what is chosen, and from that what every application has to see. It raises
`Violation` in the step in which something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.schemes.paxos.ballots import epoch_of, place_of
from holdfast.schemes.paxos.membership import changed
from holdfast.schemes.paxos.membership import founders as first_members
from holdfast.schemes.paxos.messages import (
    Accept,
    AcceptedVotes,
    AcceptorState,
    Decided,
    FastLearn,
    Formed,
    Greeting,
    Heartbeat,
    HeartbeatSeen,
    Learn,
    Prepare,
    Promise,
    Promised,
    Proposal,
    Refused,
    ReplicaState,
    SnapshotPart,
    Suggest,
    Vote,
    Voted,
    digest_of_value,
)
from holdfast.schemes.paxos.parts import GroupParts
from holdfast.schemes.paxos.settings import Member, Protocol
from holdfast.sim.disk import Disk
from tests.paxos.fast_watch import FastWatch
from tests.paxos.ledger import Command, Ledger, decode, link
from tests.paxos.oracle import may_be_chosen
from tests.paxos.violation import hold

_read_entry = msgspec.msgpack.Decoder(Proposal).decode


Round = tuple[int, int]  # ballot, 0 if it is fast or 1 if it is classic


@dataclass
class OnDisk:
    """What one disk holds for sure."""

    promised: int = 0
    votes: dict[int, tuple[Round, bytes]] = field(default_factory=dict)  # slot → round, value
    voted: set[tuple[int, Round]] = field(default_factory=set)  # also what was trimmed
    state: int = 0  # the slot of the snapshot
    written: dict[str, str] = field(default_factory=dict)  # the disks, before all have confirmed them
    formed: dict[str, str] = field(default_factory=dict)


def _round(vote: Vote) -> Round:
    return vote.ballot, int(not vote.fast)


class WatchedDisk(Disk):
    """Tells of everything that becomes safe."""

    stored: Callable[[Append | Snapshot | Truncate], None]

    def _carry_out(self, operation: Append | Snapshot | Truncate) -> None:
        super()._carry_out(operation)
        self.stored(operation)


class Watch:
    """One run's. `history` is what a single machine would have executed: the chosen values, in the order of slots."""

    def __init__(self, names: Iterable[str], founders: Iterable[str] = ()) -> None:
        self.disks = {name: OnDisk() for name in names}
        members = [Member(name, name, name) for name in founders or self.disks]
        self.membership = first_members(members, {}, Protocol.BATCH)  # by what is chosen, up to `prefix`
        self.voters = {0: self.membership.voters}  # epoch → who votes in it
        self.quorum = len(members) // 2 + 1  # in the first epoch
        self.wiped: set[str] = set()
        self.greetings = 0  # that were sent
        self.asked: set[Command] = set()
        self.chosen: dict[int, tuple[Round, bytes]] = {}  # slot → the first round in which it was chosen, value
        self.fast = FastWatch(lambda ballot: len(self.voters[epoch_of(ballot)]))
        self.prefix = 0  # all slots up to here are chosen
        self.counts = [0]  # slot → how many commands there are up to it
        self.history: list[tuple[int, Command, bool]] = []  # wall, command, whether it was new
        self.chains = [0]
        self._origins: set[int] = set()  # ballots in which what is executed was proposed
        self.skipped = 0  # entries that came behind a later leader's
        self.walls = [0]  # slot → the time of the last entry with one, up to it
        self.last: dict[str, int] = {}
        self._proposed: dict[tuple[int, int], bytes] = {}  # (slot, ballot) → value
        self._voters: dict[tuple[int, int], set[str]] = {}
        # Who, ballot, how far it had executed → votes in all parts of the promise; who is asked again answers again.
        self._told: dict[tuple[str, int, int], dict[int, Round]] = {}
        self._prepared: dict[int, tuple[str, int]] = {}  # ballot → who, in which life
        self._last_ballot: dict[str, int] = {}
        self._lost_promises: dict[str, int] = {}  # of wiped disks: they were on the disk when they were told
        self.elections: dict[
            int, tuple[int, dict[int, set[bytes]]]
        ] = {}  # ballot → first slot, what may be proposed; nothing where that is empty
        self._checks: dict[type[Message], Callable[[str, int, Any], None]] = {
            Prepare: self._on_prepare,
            Promise: self._on_promise,
            Refused: self._on_refused,
            Accept: self._on_accept,
            Learn: self._on_learn,
            Suggest: self._on_suggest,
            Voted: self._on_voted,
            FastLearn: self._on_fast_learn,
            Heartbeat: self._on_heartbeat,
            HeartbeatSeen: self._on_heartbeat,
            Decided: self._on_decided,
            SnapshotPart: self._on_snapshot_part,
        }

    # -------------------------------------------------------------------------------------------------------- disks
    def stored(self, name: str, operation: Append | Snapshot | Truncate) -> None:
        if isinstance(operation, Truncate):
            return
        record: Record = operation.record
        disk = self.disks[name]
        match record:
            case Promised():
                self._promise(disk, name, record.ballot)
            case AcceptedVotes():
                self._promise(disk, name, record.ballot)
                for slot, value in enumerate(record.values, record.first):
                    self._vote(disk, name, slot, (record.ballot, int(not record.fast)), bytes(value))
            case AcceptorState():
                hold(record.promised >= disk.promised, "a promise is forgotten by trimming", name)
                kept = {vote.slot: (_round(vote), bytes(vote.value)) for vote in record.votes}
                for slot, vote in disk.votes.items():
                    hold(slot in kept or slot <= disk.state, "a vote is trimmed that no snapshot covers", name, slot)
                    hold(kept.get(slot, vote) == vote, "a vote is changed by trimming", name, slot)
                disk.promised, disk.votes = record.promised, kept
            case ReplicaState():
                hold(record.slot >= disk.state, "an older snapshot takes a newer one's place", name)
                self._state(name, record.slot, record.commands, record.state)
                hold(record.wall == self.walls[record.slot], "a snapshot has another time", name, record.slot)
                disk.state = record.slot
            case Formed():
                hold(disk.written in ({}, record.disks), "other disks are written down", name)
                disk.written = dict(record.disks)
                if record.confirmed:
                    others = [other.formed for other in self.disks.values() if other.formed]
                    hold(record.disks in others or not others, "a group is formed with other disks", name)
                    disk.formed = dict(record.disks)

    def wipe(self, name: str, remember: bool) -> None:
        self._lost_promises[name] = max(self._lost_promises.get(name, 0), self.disks[name].promised)
        self.disks[name] = OnDisk()
        if remember:
            self.wiped.add(name)

    def _promise(self, disk: OnDisk, name: str, ballot: int) -> None:
        hold(ballot >= disk.promised, "a promise is broken", name, ballot, disk.promised)
        hold(disk.formed, "a promise or a vote comes before the group is formed", name)
        disk.promised = ballot

    def _vote(self, disk: OnDisk, name: str, slot: int, at: Round, value: bytes) -> None:
        hold(name not in self.wiped, "a wiped disk votes", name)
        ballot, is_classic = at
        if slot in disk.votes:
            hold(disk.votes[slot][0] <= at, "a later vote has a lower ballot", name, slot)
        disk.votes[slot] = (at, value)
        disk.voted.add((slot, at))
        if slot in self.chosen:
            first, chosen = self.chosen[slot]
            # In a fast round some may vote for something else than what the others chose there.
            free = at < first or (at == first and not is_classic)
            hold(free or value == chosen, "a vote is against what is chosen", name, slot, at)
        epoch = epoch_of(ballot)
        hold(epoch in self.voters, "a vote is of an epoch that has not begun", name, slot)
        hold(name in self.voters[epoch], "one votes that is no voter", name, slot, epoch)
        if not is_classic:
            if self.fast.vote(name, slot, ballot, value, _read_entry(value)):
                self._choose(slot, at, value)
            return
        known = self._proposed.setdefault((slot, ballot), value)
        hold(known == value, "a ballot has two values in one slot", slot, ballot)
        voters = self._voters.setdefault((slot, ballot), set())
        voters.add(name)
        if 2 * len(voters) > len(self.voters[epoch]):
            self._choose(slot, at, value)

    def _choose(self, slot: int, at: Round, value: bytes) -> None:
        if slot in self.chosen:
            hold(self.chosen[slot][1] == value, "a slot has two values", slot)
            return
        self.chosen[slot] = (at, value)
        while self.prefix + 1 in self.chosen:
            self.prefix += 1
            (ballot, _), value = self.chosen[self.prefix]
            hold(epoch_of(ballot) == self.membership.epoch, "others decide than those who vote there", self.prefix)
            entry = _read_entry(value)
            stale = self._is_stale(entry.origin)
            wall = self.walls[-1] if stale else entry.wall or self.walls[-1]
            self.walls.append(wall)
            self.skipped += stale
            if stale:
                self.counts.append(len(self.history))
                continue
            if entry.change is not None:
                hold(not entry.commands, "a change is not alone in its slot", self.prefix)
                self.membership = changed(self.membership, entry.change)
                self.voters[self.membership.epoch] = self.membership.voters
            for raw in entry.commands:
                command = decode(raw)
                hold(command in self.asked, "something is chosen that nobody asked for", slot, command)
                fresh = command[1] == self.last.get(command[0], 0) + 1
                if fresh:
                    self.last[command[0]] = command[1]
                self.history.append((wall, command, fresh))
                self.chains.append(link(self.chains[-1], wall, command, fresh))
            self.counts.append(len(self.history))

    def _is_stale(self, origin: int) -> bool:
        """An old leader's entry behind a later one's: nobody executes it."""
        if not origin:
            return False
        if any(later > origin and place_of(later) != place_of(origin) for later in self._origins):
            return True
        self._origins.add(origin)
        return False

    def _state(self, name: str, slot: int, commands: int, state: bytes) -> None:
        hold(slot <= self.prefix, "a snapshot has what is not chosen", name, slot)
        number, chain, last, _ = msgspec.msgpack.decode(state)
        hold(commands == number == self.counts[slot], "a snapshot has another number of commands", name, slot)
        hold(chain == self.chains[number], "a snapshot has another history", name, slot)
        known: dict[str, int] = {}
        for _, (who, what), fresh in self.history[:number]:
            if fresh:
                known[who] = what
        hold(dict(last) == known, "a snapshot has another dedupe table", name, slot)

    # -------------------------------------------------------------------------------------------------- applications
    def applied(self, name: str, number: int, wall: int, command: Command, fresh: bool, chain: int) -> None:
        hold(number <= len(self.history), "something is executed that is not chosen", name, number, command)
        hold(self.history[number - 1] == (wall, command, fresh), "not what all execute there", name, number, command)
        hold(chain == self.chains[number], "a replica has another history", name, number)

    def recovered(self, name: str, parts: GroupParts, ledger: Ledger) -> None:
        """A node has read its disk."""
        disk = self.disks[name]
        hold(parts.memory.acceptor.promised >= disk.promised, "a promise is forgotten at a restart", name)
        votes = {slot: (_round(vote), bytes(vote.value)) for slot, vote in parts.memory.acceptor.votes.items()}
        hold(votes == disk.votes, "votes are forgotten at a restart", name)
        hold(parts.memory.decided.executed == disk.state, "a restart does not begin at the snapshot", name)
        hold(ledger.number == self.counts[disk.state], "a restart does not have the snapshot's state", name)

    def answered(self, name: str, command: Command) -> None:
        hold(name not in self.wiped, "a wiped replica answers", name)
        hold(command[1] <= self.last.get(command[0], 0), "an answer is for what is not chosen", name, command)

    # ------------------------------------------------------------------------------------------------------ messages
    def sent(self, name: str, life: int, message: Message) -> None:
        """A message leaves a machine now."""
        kind = type(message)
        self.greetings += kind is Greeting
        if name in self.wiped:
            hold(kind is Greeting, "a wiped replica takes part", name, kind.__name__)
        check = self._checks.get(kind)
        if check is not None:
            check(name, life, message)

    def _on_prepare(self, name: str, life: int, prepare: Prepare) -> None:
        hold(self.disks[name].promised >= prepare.ballot, "a ballot is used that its own disk may forget", name)
        ballot = prepare.ballot
        if ballot not in self._prepared:
            hold(self._last_ballot.get(name, 0) < ballot, "a ballot is lower than one before", name, ballot)
            self._prepared[ballot], self._last_ballot[name] = (name, life), ballot
        hold(self._prepared[ballot] == (name, life), "a ballot is used again after a restart", name, ballot)

    def _on_promise(self, name: str, life: int, promise: Promise) -> None:
        disk = self.disks[name]
        hold(disk.promised >= promise.ballot, "a promise is not on the disk", name, promise.ballot)
        hold(promise.executed <= self.prefix, "a replica says that it executed what is not chosen", name)
        told = self._told.setdefault((name, promise.ballot, promise.executed), {})
        told |= {vote.slot: _round(vote) for vote in promise.votes}
        for vote in promise.votes:
            hold((vote.slot, _round(vote)) in disk.voted, "a vote is told that is not on the disk", name, vote.slot)
        if promise.part < promise.last:
            return
        first = max(promise.first, promise.executed + 1)
        for slot, (at, _) in disk.votes.items():
            if slot >= first and at[0] < promise.ballot:
                hold(told.get(slot, (0, 0)) >= at, "a promise keeps silent about a vote", name, slot, at)

    def _on_refused(self, name: str, life: int, refused: Refused) -> None:
        hold(self.disks[name].promised >= refused.promised, "a refusal's promise is not on the disk", name)

    def _on_accept(self, name: str, life: int, accept: Accept) -> None:
        ballot = accept.ballot
        hold(ballot in self.elections, "a value is proposed without a majority's promises", name, ballot)
        first, allowed = self.elections[ballot]
        for slot, value in enumerate(accept.values, accept.first):
            known = self._proposed.setdefault((slot, ballot), bytes(value))
            hold(known == bytes(value), "a ballot has two values in one slot", slot, ballot)
            hold(slot >= first, "something is proposed in a slot that is decided", name, slot)
            if self.fast.is_open(slot, ballot):
                self.fast.propose(slot, ballot, known)
            elif not allowed.get(slot, {known}):
                entry = _read_entry(value)
                hold(not entry.commands and not entry.trim_before, "a gap is not filled with nothing", name, slot)
            elif slot in allowed:
                hold(known in allowed[slot], "another value is proposed than the rule wants", name, slot)

    def _on_learn(self, name: str, life: int, learn: Learn) -> None:
        voted = self.disks[name].voted
        for slot in learn.slots:
            voted_there = (slot, (learn.ballot, 1)) in voted
            hold(voted_there, "a vote is told that is not on the disk", name, slot, learn.ballot)

    def _on_suggest(self, name: str, life: int, suggest: Suggest) -> None:
        alone = len(self.voters[epoch_of(suggest.ballot)]) == 1  # and tells nobody that it opens fast rounds
        is_open = alone or self.fast.is_open(suggest.slot, suggest.ballot)
        hold(is_open, "something is suggested where nothing is open", name)

    def _on_voted(self, name: str, life: int, voted: Voted) -> None:
        self.fast.told(name, voted.slot, voted.ballot, digest_of_value(voted.value))

    def _on_fast_learn(self, name: str, life: int, learn: FastLearn) -> None:
        for slot, digest in zip(learn.slots, learn.digests, strict=True):
            self.fast.told(name, slot, learn.ballot, digest)

    def _on_heartbeat(self, name: str, life: int, beat: Heartbeat | HeartbeatSeen) -> None:
        if isinstance(beat, Heartbeat) and beat.fast_from:
            hold(beat.ballot in self.elections, "fast rounds are open without a majority's promises", name)
            first, allowed = self.elections[beat.ballot]
            proposed = [slot for slot, ballot in self._proposed if ballot == beat.ballot]
            self.fast.open(beat.ballot, beat.fast_from, proposed, first + len(allowed))
        hold(beat.executed <= self.prefix, "a replica says that it executed what is not chosen", name, beat.executed)

    def _on_decided(self, name: str, life: int, decided: Decided) -> None:
        for slot, value in enumerate(decided.values, decided.first):
            hold(slot in self.chosen, "what is not chosen is told as decided", name, slot)
            hold(self.chosen[slot][1] == bytes(value), "another value is told as decided", name, slot)

    def _on_snapshot_part(self, name: str, life: int, part: SnapshotPart) -> None:
        hold(part.slot <= self.prefix, "a snapshot has what is not chosen", name, part.slot)

    # ----------------------------------------------------------------------------------------------------- elections
    def watch_elections(self, name: str, parts: GroupParts) -> None:
        """Sees the promises that a proposer is given, and what it makes of them."""
        proposer = parts.memory.proposer
        promise, submit = proposer.promise, proposer.submit
        given: dict[int, dict[str, Promise]] = {}

        def watched(peer: str, message: Promise, executed: int) -> bool:
            if message.ballot == proposer.ballot:
                given.setdefault(message.ballot, {})[peer] = message
            leads = promise(peer, message, executed)
            if leads:
                self._elected(name, proposer.ballot, given.get(proposer.ballot, {}))
            return leads

        def submitted(command: msgspec.Raw) -> None:
            self.fast.submitted[bytes(command)] += 1
            submit(command)

        proposer.promise = watched  # type: ignore[method-assign, assignment]
        proposer.submit = submitted  # type: ignore[method-assign]

    def _elected(self, name: str, ballot: int, promises: dict[str, Promise]) -> None:
        hold(epoch_of(ballot) in self.voters, "a leader has voters that no change has made", name, ballot)
        voters = self.voters[epoch_of(ballot)]
        hold(all(peer in voters for peer in promises), "a promise of one that does not vote is counted", name, ballot)
        hold(2 * len(promises) > len(voters), "a leader has no majority of promises", name, ballot)
        for peer, promise in promises.items():
            promised = max(self.disks[peer].promised, self._lost_promises.get(peer, 0))
            hold(promised >= ballot, "a promise is counted that is not on the disk", name, peer)
            told = {vote.slot: _round(vote) for vote in promise.votes}
            whole = peer == name or told == self._told[peer, ballot, promise.executed]
            hold(whole, "a promise is counted in part", name, peer)
        first = 1 + max(promise.executed for promise in promises.values())
        heard = {voters.index(peer): promise.votes for peer, promise in promises.items()}
        last = max((vote.slot for votes in heard.values() for vote in votes), default=0)
        allowed = {slot: self._allowed(heard, slot, len(voters)) for slot in range(first, last + 1)}
        self.elections[ballot] = (first, allowed)

    def _allowed(self, heard: dict[int, list[Vote]], slot: int, voters: int) -> set[bytes]:
        """What the promises leave a leader to propose: what may be chosen; else anything of the highest round."""
        here = [vote for votes in heard.values() for vote in votes if vote.slot == slot]
        if not here:
            return set()
        highest = max(_round(vote) for vote in here)
        some = may_be_chosen(heard, slot, voters)
        return some or {bytes(vote.value) for vote in here if _round(vote) == highest}
