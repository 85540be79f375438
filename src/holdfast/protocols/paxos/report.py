"""What there is to say of a replica to operators: numbers, words, and what is against another one leading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.protocols.paxos.ballots import tolerated
from holdfast.protocols.paxos.formation import Standing
from holdfast.protocols.paxos.proposer import Phase
from holdfast.protocols.paxos.settings import Protocol

if TYPE_CHECKING:
    from holdfast.protocols.paxos.replica import Replica


def measures(replica: Replica) -> dict[str, int]:
    executed, peers = replica.decided.executed, replica.peers
    # A machine that hangs keeps its links: a leader knows better who is there.
    voters = replica.roster.voters
    heard = [peer for peer in peers.heard if peer in voters]
    there = min(len(heard), replica.liveness.answering) if replica.is_leading else len(heard)
    more = replica.roster.is_voter + there - replica.roster.quorum
    return {
        "replica_ballot": replica.acceptor.promised,
        "replica_slots_executed": executed,
        "replica_slots_behind": max(0, *replica.liveness.executed.values(), executed) - executed,
        "replica_slots_undecided": len(replica.proposer.undecided),
        "replica_commands_waiting": replica.proposer.waiting,
        "replica_is_leading": int(replica.is_leading),
        "replica_elections_total": replica.elections_won,
        "replica_peers": len(peers.heard),
        "replica_survives": max(0, more) if peers.is_formed else 0,
        "replica_tolerates": tolerated(len(voters)),
        "replica_fast_is_open": int(replica.takes_direct),
        "replica_fast_slots_total": replica.coordinator.decided_fast,
        "replica_fast_recovered_total": replica.coordinator.recovered,
        "replica_fast_given_up_total": replica.coordinator.given_up,
    }


def facts(replica: Replica) -> dict[str, str]:
    membership = replica.roster.membership
    told = {
        "role": _role(replica),
        "leader": replica.liveness.leader,
        "protocol": membership.protocol.value,
        "leader_address": replica.roster.client_address(replica.liveness.leader),
    }
    told["members"] = ", ".join(member.name + ("" if member.votes else " (learner)") for member in membership.members)
    told["change"] = replica.changing.under_way
    told["change_problem"] = replica.changing.problem
    told = {name: text for name, text in told.items() if text or name == "leader"}
    if membership.protocol is Protocol.FAST:
        told["rounds"] = "fast" if replica.takes_direct else "classic"
    disagreements = replica.peers.formation.disagreements
    differs = [f"{peer} has another site file: {what}" for peer, what in disagreements.items()]
    if replica.peers.is_formed and replica.roster.difference:
        differs.append(replica.roster.difference)
    return {**told, "problem": "; ".join(differs)} if differs else told


def _role(replica: Replica) -> str:
    standing = replica.peers.formation.standing
    if standing is Standing.FORMED:
        phase = Phase.LEADING if replica.is_leading else replica.proposer.phase
        return phase.value if replica.roster.is_voter else "learning"
    is_founder = any(member.name == replica.settings.name for member in replica.settings.members)
    return "spare" if standing is Standing.UNKNOWN and not is_founder else standing.value


def not_leading(replica: Replica) -> str:
    """That it does not lead, and who does; empty if it leads."""
    leader = replica.liveness.leader
    if replica.is_leading:
        return ""
    return f"{replica.settings.name} does not lead; " + (f"{leader} does" if leader else "nobody does now")


def objection(replica: Replica, to: str) -> str:
    """Why the replica can't let `to` lead in its place; empty if it can."""
    name, peers = replica.settings.name, replica.peers
    behind = replica.decided.executed - replica.liveness.executed.get(to, 0)
    if problem := not_leading(replica):
        return problem
    if not to:
        return "no other replica can be reached"
    if to == name:
        return f"{to} leads already"
    if to not in replica.roster.voters:
        return f"there is no replica {to[:64]!r} that votes; there is {', '.join(replica.roster.voters)}"
    if to not in peers.heard:
        return f"{to} can't be reached"
    if behind > max(replica.settings.trim_keep, replica.settings.pipeline):
        return f"{to} is {behind} slots behind"
    return ""
