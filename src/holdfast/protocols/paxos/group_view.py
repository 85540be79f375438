"""The group as one replica sees it: its members, the links to them, and who leads."""

from __future__ import annotations

import msgspec

from holdfast.protocols.paxos.formation import Formation
from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.peers import Peers
from holdfast.protocols.paxos.roster import Roster
from holdfast.protocols.paxos.settings import PaxosSettings


class GroupView(msgspec.Struct, frozen=True):
    """What is known of the others, whatever the group decides about."""

    settings: PaxosSettings
    roster: Roster
    formation: Formation
    liveness: Liveness
    peers: Peers

    def others(self) -> list[str]:
        """The replicas that are heard, the leader first."""
        return sorted(self.peers.heard, key=lambda peer: peer != self.liveness.leader)
