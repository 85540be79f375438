"""The group as one replica sees it: its members, the links to them, and who leads."""

from __future__ import annotations

from holdfast.protocols.paxos.formation import Formation
from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.peers import Peers
from holdfast.protocols.paxos.roster import Roster


class GroupView:
    """What does not depend on what the group decides about."""

    def __init__(self, roster: Roster, formation: Formation, liveness: Liveness, peers: Peers) -> None:
        self.roster = roster
        self.formation = formation
        self.liveness = liveness
        self.peers = peers

    def others(self) -> list[str]:
        """The replicas that are heard, the leader first."""
        return sorted(self.peers.heard, key=lambda peer: peer != self.liveness.leader)
