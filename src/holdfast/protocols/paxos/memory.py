"""What a replica remembers: of its own votes, of its proposals, and of what is decided. Its parts share it."""

from __future__ import annotations

import msgspec

from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.proposer import Proposer
from holdfast.protocols.paxos.snapshots import Snapshots
from holdfast.protocols.paxos.vote_count import VoteCount


class Memory(msgspec.Struct, frozen=True):
    """State without links and timers; who changes it says so in its own methods."""

    acceptor: Acceptor
    proposer: Proposer
    decided: DecidedLog
    count: VoteCount
    snapshots: Snapshots
