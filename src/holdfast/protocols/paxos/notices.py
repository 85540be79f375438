"""What the parts of a replica tell each other."""

from __future__ import annotations

from holdfast.kernel.notices import Notice
from holdfast.protocols.paxos.messages import Value


class PeerLost(Notice, frozen=True):
    """The link to a peer is gone."""

    peer: str


class RemovedFromGroup(Notice, frozen=True):
    """The others say that they went on without us."""


class FastVoteCast(Notice, frozen=True):
    """We voted for a value in a fast round."""

    slot: int
    value: Value


class FastVotesCounted(Notice, frozen=True):
    """Votes were counted in fast rounds of a ballot."""

    ballot: int
    slots: list[int]
