"""Mistakes in changing a group: what the change swarm has to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.paxos import membership as membership_module
from holdfast.protocols.paxos import replica as replica_module
from holdfast.protocols.paxos.changing import Changing
from holdfast.protocols.paxos.membership import Change, Membership
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.roster import Roster
from holdfast.protocols.paxos.transfer import make_state
from tests.paxos.change_swarm import problem


@dataclass(frozen=True)
class ChangeMutant:
    mistake: str
    patch: Callable[[pytest.MonkeyPatch], None]
    swarm: ClassVar[str] = "changing groups"

    def seen(self, seed: int) -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.patch(monkeypatch)
            return problem(seed)

    def sound(self, seed: int) -> str:
        return problem(seed)


def _same_ballot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader goes on with its ballot when the voters are others."""

    def follow(self: Replica, before: Membership, out: Outbox) -> None:
        self.peers.membership_changed(out)
        self.decided.forget_votes()

    monkeypatch.setattr(Replica, "_follow_change", follow)


def _no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wakes up has promised a ballot of an epoch that it does not know."""

    def change(self: Replica, change: Change, out: Outbox) -> None:
        before = self.roster.membership
        self.roster.set(membership_module.changed(before, change))
        if self.roster.membership is not before:
            self._follow_change(before, out)

    monkeypatch.setattr(Replica, "_change", change)


def _votes_while_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all = Roster.set

    def set_eager(self: Roster, membership: Membership) -> None:
        set_all(self, membership)
        self.is_voter = self.name in self.names

    monkeypatch.setattr(Roster, "set", set_eager)


def _old_majority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes are counted by the number of voters that the group began with."""
    set_all = Roster.set

    def set_but_quorum(self: Roster, membership: Membership) -> None:
        known = getattr(self, "quorum", 0)
        set_all(self, membership)
        self.quorum = known or self.quorum

    monkeypatch.setattr(Roster, "set", set_but_quorum)


def _counts_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that do not vote are voters to whoever counts."""
    monkeypatch.setattr(
        Membership, "voters", property(lambda self: tuple(member.name for member in self.members)), raising=False
    )


def _not_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner comes to vote before it has anything, and its first word is that it was wiped."""
    monkeypatch.setattr(Changing, "_is_caught_up", lambda self, name, executed, now: True)


def _any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promises and votes are given to leaders of all times."""

    def is_of_our_time(self: Replica, peer: str, ballot: int, out: Outbox) -> bool:
        return self.peers.hears(peer)

    monkeypatch.setattr(Replica, "is_of_our_time", is_of_our_time)


def _two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member is removed in the same step in which the other one comes to vote."""
    changed = membership_module.changed

    def hasty(membership: Membership, change: Change) -> Membership:
        now = changed(membership, change)
        for member in now.members:
            if member.leaving and isinstance(change, membership_module.Promote):
                return changed(now, membership_module.Remove(member.name))
        return now

    monkeypatch.setattr(replica_module, "changed", hasty)


def _membership_stays_out_of_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(slot: int, commands: int, state: bytes, membership: Membership, *rest: Any) -> Any:
        return make_state(slot, commands, state, None, *rest)

    monkeypatch.setattr(replica_module, "make_state", make)


MUTANTS = [
    ChangeMutant("a ballot outlives its voters", _same_ballot),
    ChangeMutant("a change is not on the disk before votes of its epoch", _no_snapshot),
    ChangeMutant("a learner votes", _votes_while_learning),
    ChangeMutant("the majority of the beginning counts", _old_majority),
    ChangeMutant("learners are counted", _counts_everyone),
    ChangeMutant("a learner votes before it has anything", _not_caught_up),
    ChangeMutant("leaders of all epochs are followed", _any_epoch),
    ChangeMutant("two changes at a time", _two_at_a_time),
    ChangeMutant("a snapshot does not say who is a member", _membership_stays_out_of_snapshots),
]
