"""What there is to say of a replica to operators: numbers, words, and what is against another one leading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.protocols.paxos.ballots import quorum, tolerated
from holdfast.protocols.paxos.proposer import Phase

if TYPE_CHECKING:
    from holdfast.protocols.paxos.replica import Replica


def measures(replica: Replica) -> dict[str, int]:
    executed, peers = replica.decided.executed, replica.peers
    # A machine that hangs keeps its links: a leader knows better who is there.
    there = min(len(peers.heard), replica.liveness.answering) if replica.is_leading else len(peers.heard)
    more = 1 + there - quorum(len(peers.names))
    return {
        "replica_ballot": replica.acceptor.promised,
        "replica_slots_executed": executed,
        "replica_slots_behind": max(0, *replica.liveness.executed.values(), executed) - executed,
        "replica_slots_undecided": len(replica.proposer.undecided),
        "replica_commands_waiting": replica.proposer.waiting,
        "replica_is_leading": int(replica.is_leading),
        "replica_elections_total": replica.elections,
        "replica_peers": len(peers.heard),
        "replica_survives": max(0, more) if peers.is_formed else 0,
        "replica_tolerates": tolerated(len(peers.names)),
    }


def facts(replica: Replica) -> dict[str, str]:
    phase = Phase.LEADING if replica.is_leading else replica.proposer.phase
    role = phase if replica.peers.is_formed else replica.peers.formation.standing
    told = {"role": role.value, "leader": replica.liveness.leader, "protocol": replica.settings.protocol.value}
    disagreements = replica.peers.formation.disagreements
    differs = [f"{peer} has another site file: {what}" for peer, what in disagreements.items()]
    return {**told, "problem": "; ".join(differs)} if differs else told


def objection(replica: Replica, to: str) -> str:
    """Why the replica can't let `to` lead in its place; empty if it can."""
    name, leader, peers = replica.settings.name, replica.liveness.leader, replica.peers
    behind = replica.decided.executed - replica.liveness.executed.get(to, 0)
    if not replica.is_leading:
        return f"{name} does not lead; " + (f"{leader} does" if leader else "nobody does now")
    if not to:
        return "no other replica can be reached"
    if to == name:
        return f"{to} leads already"
    if to not in peers.names:
        return f"there is no replica {to!r}; there is {', '.join(peers.names)}"
    if to not in peers.heard:
        return f"{to} can't be reached"
    if behind > max(replica.settings.trim_keep, replica.settings.pipeline):
        return f"{to} is {behind} slots behind"
    return ""
