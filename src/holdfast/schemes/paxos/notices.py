"""What the parts of a replica tell each other."""

from __future__ import annotations

from holdfast.kernel.notices import Notice
from holdfast.schemes.paxos.membership import Membership
from holdfast.schemes.paxos.messages import Promise, Value


# ----------------------------------------------------------------------------------------------------------- the links
class PeerLost(Notice, frozen=True):
    """The link to a peer is gone."""

    peer: str


class RemovedFromGroup(Notice, frozen=True):
    """The others say that they went on without us."""


# --------------------------------------------------------------------------------------------------------- the learner
class SlotsExecuted(Notice, frozen=True):
    """Slots were executed, from `first` on."""

    first: int


class FastSlotExecuted(Notice, frozen=True):
    """A slot was executed in a group that uses fast rounds: the digest of its value."""

    slot: int
    digest: bytes


class MembershipChanged(Notice, frozen=True):
    """The membership is another one, and a snapshot that says so is on its way to the disk."""

    before: Membership


class StateGivenUp(Notice, frozen=True):
    """Our state is about to make way for another replica's."""


# ----------------------------------------------------------------------------------------------------------- the voter
class BallotOvertaken(Notice, frozen=True):
    """Someone uses a ballot above the one that we lead by, or prepare."""


class OwnPromiseSafe(Notice, frozen=True):
    """Our promise to ourselves is on the disk."""

    promise: Promise


class FastVoteCast(Notice, frozen=True):
    """We voted for a value in a fast round."""

    slot: int
    value: Value


class FastVotesCounted(Notice, frozen=True):
    """Votes were counted in fast rounds of a ballot."""

    ballot: int
    slots: list[int]


# ---------------------------------------------------------------------------------------------------------- who leads
class LeadershipOffered(Notice, frozen=True):
    """Enough replicas would follow us, or the leader asks us to take its place."""


class LeaderDeserted(Notice, frozen=True):
    """Too few answer us, who lead."""


class FastRoundsOpened(Notice, frozen=True):
    """Fast rounds of our ballot are open: the others are to hear of it."""


class BallotWanted(Notice, frozen=True):
    """The leader needs a higher ballot of its own: what is opened is never closed within one."""
