"""The group as one replica sees it: its members, the links to them, and who leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.peers import Peers
from holdfast.protocols.paxos.roster import Roster
from holdfast.protocols.paxos.settings import PaxosSettings

if TYPE_CHECKING:
    from random import Random


class GroupView:
    def __init__(self, settings: PaxosSettings, rng: Random, peers_type: type[Peers] = Peers) -> None:
        self.roster = Roster(settings)
        self.liveness = Liveness(settings, self.roster, rng)
        self.peers = peers_type(settings, self.roster)

    def others(self) -> list[str]:
        """The replicas that are heard, the leader first."""
        return sorted(self.peers.heard, key=lambda peer: peer != self.liveness.leader)
