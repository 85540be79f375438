"""What operators are told of a replica: numbers, words, and what is against another one leading."""

from __future__ import annotations

from typing import ClassVar, Protocol

from holdfast.kernel.parts import Part
from holdfast.schemes.paxos.ballots import tolerated
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.formation import Standing
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.proposer import Phase
from holdfast.schemes.paxos.settings import Protocol as Rounds


class FastRounds(Protocol):
    @property
    def is_open(self) -> bool: ...


class Report(Part):
    """Looks at all, and changes nothing."""

    name: ClassVar[str] = "replica"

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        changing: Changing,
        fast: FastRounds,
    ) -> None:
        self._settings, self._roster, self._peers = view.settings, view.roster, view.peers
        self._formation, self._liveness = view.formation, view.liveness
        self._acceptor, self._proposer, self._decided = memory.acceptor, memory.proposer, memory.decided
        self._changing, self._fast = changing, fast

    def measure(self) -> dict[str, int]:
        executed, peers = self._decided.executed, self._peers
        # A machine that hangs keeps its links: a leader knows better who is there.
        voters = self._roster.voters
        heard = [peer for peer in peers.heard if peer in voters]
        there = min(len(heard), self._liveness.answering) if self._proposer.is_leading else len(heard)
        more = self._roster.is_voter + there - self._roster.quorum
        return {
            "replica_ballot": self._acceptor.promised,
            "replica_slots_executed": executed,
            "replica_slots_behind": max(0, *self._liveness.executed.values(), executed) - executed,
            "replica_slots_undecided": len(self._proposer.undecided),
            "replica_commands_waiting": len(self._proposer.waiting),
            "replica_is_leading": int(self._proposer.is_leading),
            "replica_elections_total": self._proposer.elections_won,
            "replica_peers": len(peers.heard),
            "replica_survives": max(0, more) if peers.is_formed else 0,
            "replica_tolerates": tolerated(len(voters)),
            "replica_fast_is_open": int(self._fast.is_open),
        }

    def facts(self) -> dict[str, str]:
        membership = self._roster.membership
        told = {
            "role": self._role(),
            "leader": self._liveness.leader,
            "protocol": membership.protocol.value,
            "leader_address": self._roster.client_address(self._liveness.leader),
        }
        members = [member.name + ("" if member.votes else " (learner)") for member in membership.members]
        told["members"] = ", ".join(members)
        told["change"] = self._changing.under_way
        told["change_problem"] = self._changing.problem
        told = {name: text for name, text in told.items() if text or name == "leader"}
        if membership.protocol is Rounds.FAST:
            told["rounds"] = "fast" if self._fast.is_open else "classic"
        disagreements = self._formation.disagreements
        differs = [f"{peer} has another site file: {what}" for peer, what in disagreements.items()]
        if self._peers.is_formed and self._roster.difference:
            differs.append(self._roster.difference)
        return {**told, "problem": "; ".join(differs)} if differs else told

    def _role(self) -> str:
        standing = self._formation.standing
        if standing is Standing.FORMED:
            phase = Phase.LEADING if self._proposer.is_leading else self._proposer.phase
            return phase.value if self._roster.is_voter else "learning"
        is_founder = any(member.name == self._settings.name for member in self._settings.members)
        return "spare" if standing is Standing.UNKNOWN and not is_founder else standing.value

    def not_leading(self) -> str:
        """That it does not lead, and who does; empty if it leads."""
        leader = self._liveness.leader
        if self._proposer.is_leading:
            return ""
        return f"{self._settings.name} does not lead; " + (f"{leader} does" if leader else "nobody does now")

    def objection(self, to: str) -> str:
        """Why the replica can't let `to` lead in its place; empty if it can."""
        name = self._settings.name
        behind = self._decided.executed - self._liveness.executed.get(to, 0)
        if problem := self.not_leading():
            return problem
        if not to:
            return "no other replica can be reached"
        if to == name:
            return f"{to} leads already"
        if to not in self._roster.voters:
            return f"there is no replica {to[:64]!r} that votes; there is {', '.join(self._roster.voters)}"
        if to not in self._peers.heard:
            return f"{to} can't be reached"
        if behind > max(self._settings.trim_keep, self._settings.pipeline):
            return f"{to} is {behind} slots behind"
        return ""
