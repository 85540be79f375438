"""What a replica remembers: of its own votes, of its proposals, and of what is decided. Its parts share it."""

from __future__ import annotations

import msgspec

from holdfast.schemes.paxos.acceptor import Acceptor
from holdfast.schemes.paxos.decided import DecidedLog
from holdfast.schemes.paxos.proposer import Proposer
from holdfast.schemes.paxos.snapshots import Snapshots
from holdfast.schemes.paxos.vote_count import VoteCount


class Memory(msgspec.Struct, frozen=True):
    """State without links and timers; who changes it says so in its own methods."""

    acceptor: Acceptor
    proposer: Proposer
    decided: DecidedLog
    count: VoteCount
    snapshots: Snapshots
