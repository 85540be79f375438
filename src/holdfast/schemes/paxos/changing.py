"""Changing the group while it serves: what a leader does next about the membership (D4-F4).

What has begun is in the membership itself, so that any leader goes on with it: a learner is made a voter when it has
what the others have, and one that is to go is removed. Nothing is done that would leave too few who answer.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.ballots import quorum
from holdfast.schemes.paxos.formation import Formation
from holdfast.schemes.paxos.liveness import Liveness
from holdfast.schemes.paxos.membership import (
    AddLearner,
    Cancel,
    Change,
    ChangeProtocol,
    Leave,
    Promote,
    Remove,
    changed,
    objection,
)
from holdfast.schemes.paxos.peers import Peers
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings

NEVER: Final = -(1 << 62)


class Changing:
    """The change that an operator asked for, and those that follow from the membership. `problem`: why the last one
    that was asked for was given up; empty while it goes well."""

    def __init__(
        self, settings: PaxosSettings, roster: Roster, liveness: Liveness, peers: Peers, formation: Formation
    ) -> None:
        self.problem = ""
        self.is_asked = False  # an operator wants something that is not proposed yet
        self._formation = formation
        self._settings = settings
        self._roster = roster
        self._liveness = liveness
        self._peers = peers
        self._wanted: Change | None = None  # asked for, and not proposed yet
        self._wanted_until = 0
        self._looked = self._earlier = 0  # how much was executed when we last looked, and the time before …
        self._looked_at = NEVER  # … and when that was

    def ask(self, change: Change, out: Outbox) -> str:
        """What is against a change that an operator wants; empty: nothing, and it is under way. The disk of a replica
        that is to be added is not known yet: the replica is dialled, and says which it has."""
        if isinstance(change, Cancel) and self._wanted is not None:
            self.give_up("given up by an operator", out)
            return ""
        if self._wanted is not None:
            return f"another change is under way: {self._describe(self._wanted)}"
        told = msgspec.structs.replace(change, disk="?") if isinstance(change, AddLearner) else change
        problem = objection(self._roster.membership, told)
        if problem:
            return problem
        self.problem, self._wanted, self.is_asked = "", change, True
        self._wanted_until = out.now + self._settings.invited_within
        if isinstance(change, AddLearner):
            self._peers.invite(change.name, change.peer_address, out)
        return ""

    def due(self, executed: int, out: Outbox) -> Change | None:
        """What is to be proposed now, as soon as everything before it is decided."""
        if self._wanted is not None:
            return self._asked_for(self._wanted, out)
        for member in self._roster.membership.members:
            if not member.votes and self._is_caught_up(member.name, executed, out.now):
                return self._if_enough(Promote(member.name), executed, out)
            if member.leaving and member.name != self._roster.name:
                return self._if_enough(Remove(member.name), executed, out)
        return None

    def _asked_for(self, change: Change, out: Outbox) -> Change | None:
        """What an operator asked for, once it can be proposed."""
        problem = ""
        if isinstance(change, AddLearner):
            disk = self._formation.candidates.get(change.name, "")
            change = msgspec.structs.replace(change, disk=disk)
            if change.name in self._formation.occupied:
                problem = f"{change.name} has the data of a group already: start it with an empty folder"
            elif (why := self._formation.disagreements.get(change.name)) is not None:
                problem = f"{change.name} has another site file: {why}"
            elif not disk:
                if out.now < self._wanted_until:
                    return None
                problem = f"{change.name} did not answer"
                problem += f": {self._peers.not_reached}" if self._peers.not_reached else ""
        problem = problem or objection(self._roster.membership, change)
        if problem:
            self.give_up(problem, out)
            return None
        return change

    def _is_caught_up(self, name: str, executed: int, now: int) -> bool:
        """Whether a replica holds all but the last few slots; or, where many are decided between two heartbeats, all
        that was executed a moment ago."""
        held = self._liveness.held.get(name, 0)
        if now - self._looked_at >= 2 * self._settings.patience:  # nobody was waited for
            self._earlier = self._looked = executed
            self._looked_at = now
        elif now - self._looked_at >= self._settings.patience:
            self._earlier, self._looked, self._looked_at = self._looked, executed, now
        return held > 0 and held >= min(executed - self._settings.caught_up_slots, self._earlier)

    def _if_enough(self, change: Change, executed: int, out: Outbox) -> Change | None:
        """Not when too few of those who would vote then answer: the group would stand still. Nor when too few of them
        hold what came of commands: it is no part of a snapshot, and those who go may be the last that have it."""
        voters = changed(self._roster.membership, change).voters
        there = [name for name in self._liveness.answers_lately(out.now) if self._peers.hears(name)]
        whole = {self._roster.name, *(name for name in there if self._is_caught_up(name, executed, out.now))}
        return change if sum(voter in whole for voter in voters) >= quorum(len(voters)) else None

    @property
    def must_hand_over(self) -> bool:
        """Whether this leader is to go: another one has to lead first."""
        own = self._roster.find(self._roster.name)
        return self._wanted is None and own is not None and own.leaving

    def proposed(self, out: Outbox) -> None:
        """What was due is on its way."""
        self._wanted, self.is_asked = None, False
        self._peers.uninvite(out)

    def give_up(self, problem: str, out: Outbox) -> None:
        """This replica leads no more, or something is against it."""
        if self._wanted is not None:
            self.problem = f"{self._describe(self._wanted)}: {problem}"
        self._wanted, self.is_asked = None, False
        self._peers.uninvite(out)

    @property
    def under_way(self) -> str:
        """What is being done, in words."""
        if self._wanted is not None:
            unanswered = isinstance(self._wanted, AddLearner) and self._peers.not_reached
            so_far = f", and does not answer so far: {unanswered}" if unanswered else ""
            return self._describe(self._wanted) + so_far
        return self._roster.membership.under_way

    def _describe(self, change: Change) -> str:
        if isinstance(change, AddLearner):
            instead = f" for {change.replaces}" if change.replaces else ""
            return f"{change.name} at {change.peer_address} is to be added{instead}"
        if isinstance(change, Leave):
            return f"{change.name} is to leave"
        if isinstance(change, ChangeProtocol):
            return f"the protocol is to be {change.protocol.value}"
        return f"{type(change).__name__.lower()} {getattr(change, 'name', '')}".strip()
