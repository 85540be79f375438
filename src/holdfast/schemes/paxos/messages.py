"""What replicas of a group say to each other, and what they keep (D4-A3).

PREPARE, PROMISE, ACCEPT and LEARN are those of the papers. The rest is what a group that lives for long needs: who is
there and with which disk, heartbeats, catching up; and what is said in fast rounds.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.errors import ProtocolError
from holdfast.kernel.messages import NOMINAL_WEIGHT, Message, Record
from holdfast.schemes.paxos.ballots import Round, round_of
from holdfast.schemes.paxos.membership import Change, Membership

Value = msgspec.Raw  # an encoded Proposal: what is proposed, accepted and decided
# Beyond these is no slot and no ballot that a group could reach; sums with them still are numbers that can be written.
Slot = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Ballot = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Proposal(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is proposed for a slot, and may be decided there: commands in the application's own encoding, and the time
    that the leader gave them.

    `wall` 0: the time of the proposal before; so several replicas make the same bytes of what a client said to all of
    them, and no client's clock counts. `trim_before`: replicas may forget slots before this one, and take a snapshot
    first. `change`: of the membership. `origin`: the ballot in which a leader first proposed it; 0 if no leader did. A
    proposal may be decided in a later ballot, behind what a later leader has decided: it is not executed then.
    """

    wall: int
    commands: list[msgspec.Raw]
    trim_before: int = 0
    change: Change | None = None
    origin: int = 0


_proposal = msgspec.msgpack.Decoder(Proposal).decode
Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


def digest_of_value(value: Value) -> bytes:
    """Stands for a value where votes are told: who counts them has got the value from elsewhere."""
    return hashlib.blake2b(value, digest_size=16).digest()


def check_value(value: Value) -> Proposal:
    """What is voted for may be decided, and what is decided must be readable, or it would stop every replica. Gives
    what it says."""
    try:
        return _proposal(value)
    except UNREADABLE as error:
        raise ProtocolError("a value is no entry of the log") from error


class Vote(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an acceptor accepted last in a slot; `fast`: in the fast round of the ballot."""

    slot: Slot
    ballot: Ballot
    value: Value
    fast: bool = False

    @property
    def round(self) -> Round:
        return round_of(self.ballot, self.fast)


# ------------------------------------------------------------------------------------------------------ who is there
class Greeting(Message, frozen=True):
    """The first message on a link, said again until both sides listen. `disk` names the sender's disk; `formed` are the
    disks, by replica, that the sender has written down; `hears`: it listens to us; `confirmed`: all have written down
    the same. `terms` is what the site files of all replicas must have alike, by name. `membership` is the group as the
    sender knows it, once it is formed."""

    disk: str
    formed: dict[str, str] = {}  # noqa: RUF012 - a field's default, which is copied
    hears: bool = False
    confirmed: bool = False
    terms: dict[str, str] = {}  # noqa: RUF012 - likewise
    membership: Membership | None = None


class Canvass(Message, frozen=True):
    """Would you follow me? Asked before a ballot is prepared: who can't hear a leader that others hear does not harm
    it by wanting to lead itself. `executed`: who is so far behind that it would need a snapshot is not to lead."""

    ballot: Ballot
    executed: Slot = 0


class CanvassAnswer(Message, frozen=True):
    """The answer: whether the sender would follow. `promised`: what it promised, so that who was too low asks again
    with more."""

    ballot: Ballot
    yes: bool
    promised: Ballot = 0


# ------------------------------------------------------------------------------------------------------------ Paxos
class Prepare(Message, frozen=True):
    """Phase 1, once for all slots from `first` on."""

    ballot: Ballot
    first: Slot


class Promise(Message, frozen=True):
    """Nothing below the ballot is accepted any more. `executed` is the last slot that the sender has executed, and can
    help others to: up to there everything is decided. `votes` are all that it accepted behind that, and from the asked
    slot on; in parts 0 to `last`, since they may be many."""

    ballot: Ballot
    first: Slot
    votes: list[Vote]
    executed: Slot
    part: Annotated[int, msgspec.Meta(ge=0)] = 0
    last: Annotated[int, msgspec.Meta(ge=0)] = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(len(vote.value) for vote in self.votes)


class Refused(Message, frozen=True):
    """A higher ballot was promised."""

    promised: Ballot


class Accept(Message, frozen=True):
    """Phase 2: the leader's values for slots from `first` on."""

    ballot: Ballot
    first: Slot
    values: list[Value]

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(map(len, self.values))


class Learn(Message, frozen=True):
    """The sender has accepted the ballot's values for these slots. To all replicas (D4-B1)."""

    ballot: Ballot
    slots: list[Slot]


# ------------------------------------------------------------------------------------------------------- fast rounds
class Suggest(Message, frozen=True):
    """The leader of an open fast round puts a value forward in one slot. Who has not voted there votes for it; who has
    voted for something else says so in full."""

    ballot: Ballot
    slot: Slot
    value: Value

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.value)


class Voted(Message, frozen=True):
    """The sender has voted for this in the slot's fast round. To its leader, who suggested something else."""

    ballot: Ballot
    slot: Slot
    value: Value

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.value)


class FastLearn(Message, frozen=True):
    """The sender has voted for the values with these digests in the fast rounds of these slots. To all replicas."""

    ballot: Ballot
    slots: list[Slot]
    digests: list[Digest]


# --------------------------------------------------------------------------------------------------------- liveness
class TakeOver(Message, frozen=True):
    """From the leader of a ballot, whom an operator asked: lead in my place."""

    ballot: Ballot


class Heartbeat(Message, frozen=True):
    """The leader is there, and has executed so far. `fast_from`: the fast rounds of its ballot are open from this slot
    on, for ever; 0: they are not."""

    ballot: Ballot
    executed: Slot
    number: int
    fast_from: Slot = 0


class HeartbeatSeen(Message, frozen=True):
    """The answer; so a leader knows how far everyone is, and that it is not alone. `held`: up to which slot the sender
    holds all that came of it, also what is no part of a snapshot."""

    ballot: Ballot
    executed: Slot
    number: int
    held: Slot = 0


# -------------------------------------------------------------------------------------------------------- catching up
class AskDecided(Message, frozen=True):
    """What is decided from this slot on?"""

    first: Slot


class Decided(Message, frozen=True):
    """Decided values from slot `first` on, of `executed` that there are. 0: it is not said how many."""

    first: Slot
    values: list[Value]
    executed: Slot = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(map(len, self.values))


class AskSnapshot(Message, frozen=True):
    """A part of the snapshot, from `offset` on; slot 0: of whichever there is."""

    slot: Slot
    offset: Slot


class SnapshotPart(Message, frozen=True):
    """A part of the state after `slot`, of `size` bytes in all, whose SHA-256 is `digest`."""

    slot: Slot
    size: Slot
    digest: bytes
    offset: Slot
    data: bytes

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.data)


# ---------------------------------------------------------------------------------------------------------- records
class Formed(Record, frozen=True):
    """The group has these disks. Written when they are all known, and again, `confirmed`, before the first vote.
    `members` are its replicas in the order of their places, which ballots are made of; `terms` is all that they have
    agreed to have alike. `membership` is where the writer begins: for one that was added later, the group that it was
    added to, and it has to take a snapshot first."""

    disks: dict[str, str]
    confirmed: bool = False
    members: tuple[str, ...] = ()
    terms: dict[str, str] = {}  # noqa: RUF012 - a field's default, which is copied
    membership: Membership | None = None


class Promised(Record, frozen=True):
    ballot: int


class AcceptedVotes(Record, frozen=True):
    """The values that were accepted in one go, all in classic or all in fast rounds; they promise the ballot too."""

    ballot: int
    first: int
    values: list[Value]
    fast: bool = False


class AcceptorState(Record, frozen=True):
    """All that an acceptor knows: takes the place of the records before it. `trimmed`: votes in slots up to here may be
    forgotten; -1 if it is not known."""

    promised: int
    votes: list[Vote]
    trimmed: int = -1


class ReplicaState(Record, frozen=True):
    """The application's state after a slot; how many commands it had executed; who belonged to the group; the time that
    the last command had; the highest ballot of each place in which something executed was proposed; and up to which
    slot the group has decided to forget its votes."""

    slot: int
    commands: int
    state: bytes
    digest: bytes
    membership: Membership | None = None
    wall: int = 0
    origins: list[tuple[int, int]] = []  # noqa: RUF012 - a field's default, which is copied
    trimmed: int = 0


PAXOS_MESSAGES: dict[int, type[Message]] = {
    80: Greeting,
    81: Prepare,
    82: Promise,
    83: Refused,
    84: Accept,
    85: Learn,
    86: Heartbeat,
    87: HeartbeatSeen,
    88: AskDecided,
    89: Decided,
    90: AskSnapshot,
    91: SnapshotPart,
    92: Canvass,
    93: CanvassAnswer,
    94: TakeOver,
    95: Suggest,
    96: Voted,
    97: FastLearn,
}
LARGE_PAXOS_MESSAGES: Final = (Promise, Accept, Decided, SnapshotPart, Learn, Suggest, Voted, FastLearn)
PAXOS_RECORDS: dict[int, type[Record]] = {
    16: Formed,
    17: Promised,
    18: AcceptedVotes,
    19: AcceptorState,
    20: ReplicaState,
}
