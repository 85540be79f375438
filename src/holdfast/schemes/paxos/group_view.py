"""The group as one replica sees it: its members, the links to them, and who leads."""

from __future__ import annotations

import msgspec

from holdfast.schemes.paxos.formation import Formation
from holdfast.schemes.paxos.liveness import Liveness
from holdfast.schemes.paxos.peers import Peers
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings


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
