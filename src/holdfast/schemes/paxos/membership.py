"""Who belongs to a group: a value that all replicas have alike at the same slot, and that only the log changes (D4-F4).

Voters make up quorums. A replica that is new is a learner first: it is told everything and counts for nothing, until it
has what the others have. One change at a time: a group that takes in a replica, or lets one go, does nothing else of
that kind until it is done. Each change of the voters begins an epoch. Names are never used again: whoever comes back
without its disk has forgotten what it promised, and must not be taken for its earlier self.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, assert_never

import msgspec

from holdfast.schemes.paxos.ballots import EPOCHS, PLACES
from holdfast.schemes.paxos.settings import Member, Protocol

VOTERS_MAX: Final = 9
NAME_BYTES_MAX: Final = 64
ADDRESS_BYTES_MAX: Final = 256


class GroupMember(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One replica. `replaces` names the one that goes when this one votes; `leaving`: it is to go."""

    name: str
    place: int
    peer_address: str
    client_address: str
    disk: str = ""
    votes: bool = True
    replaces: str = ""
    leaving: bool = False


class Membership(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The members. `number` counts all changes, `epoch` those of the voters; `former` are names that were used."""

    members: tuple[GroupMember, ...]
    epoch: int = 0
    number: int = 0
    former: tuple[str, ...] = ()
    protocol: Protocol = Protocol.BATCH

    @property
    def voters(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members if member.votes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def find(self, name: str) -> GroupMember | None:
        return next((member for member in self.members if member.name == name), None)

    @property
    def under_way(self) -> str:
        """What has begun and is not done yet; empty if nothing has."""
        for member in self.members:
            if not member.votes:
                return f"{member.name} is being taken in" + (f" for {member.replaces}" if member.replaces else "")
        return next((f"{member.name} is on its way out" for member in self.members if member.leaving), "")


class AddLearner(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A replica with an empty disk is told everything from now on."""

    name: str
    peer_address: str
    client_address: str
    disk: str
    replaces: str = ""


class Promote(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A learner votes."""

    name: str


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A voter is to go. It is removed by a leader that is another one."""

    name: str


class Remove(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A replica is no member any more."""

    name: str


class Cancel(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """What has begun and is not done is given up: a learner goes, and who was to leave stays."""


class ChangeProtocol(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    protocol: Protocol


Change: TypeAlias = AddLearner | Promote | Leave | Remove | Cancel | ChangeProtocol


def founders(members: Iterable[Member], disks: dict[str, str], protocol: Protocol) -> Membership:
    """How a group begins: by its site file."""
    first = [
        GroupMember(member.name, place, member.peer_address, member.client_address, disks.get(member.name, ""))
        for place, member in enumerate(members)
    ]
    return Membership(tuple(first), protocol=protocol)


def flaw(membership: Membership) -> str:
    """What can't be of a group, whoever says it; empty if nothing is."""
    names = {member.name for member in membership.members}
    places = {member.place for member in membership.members}
    if not len(names) == len(places) == len(membership.members):
        return "a name or a place is there twice"
    if not membership.voters or not places <= set(range(PLACES)):
        return "nobody votes, or a place is none"
    if not 0 <= membership.epoch < EPOCHS or membership.number < membership.epoch:
        return "so many changes were never made"
    return ""


def objection(membership: Membership, change: Change) -> str:
    """What is against a change; empty if nothing is. The same at all replicas, since it looks at nothing else."""
    match change:
        case AddLearner():
            return membership.under_way or _against_newcomer(membership, change)
        case Promote():
            member = membership.find(change.name)
            return "" if member is not None and not member.votes else f"{change.name} is no learner"
        case Leave():
            if change.name not in membership.voters:
                return _unknown(membership, change.name)
            if len(membership.voters) == 1:
                return f"{change.name} is the last one that votes"
            return membership.under_way
        case Remove():
            member = membership.find(change.name)
            if member is None:
                return _unknown(membership, change.name)
            return "" if member.leaving or not member.votes else f"{change.name} votes, and is not on its way out"
        case Cancel():
            return "" if membership.under_way else "no change is under way"
        case ChangeProtocol():
            same = change.protocol is membership.protocol
            return f"the protocol is {change.protocol.value} already" if same else ""
        case _:
            assert_never(change)


def _against_newcomer(membership: Membership, new: AddLearner) -> str:
    addresses = [address for member in membership.members for address in (member.peer_address, member.client_address)]
    if membership.find(new.name) is not None:
        return f"{new.name} is a member already"
    if new.name in membership.former:
        return f"{new.name} was a member before, and its votes may be forgotten: give it a new id"
    if not 0 < len(new.name.encode()) <= NAME_BYTES_MAX or not new.name.isprintable() or not new.disk:
        return f"{_short(new.name)} is no name of a replica with a disk"
    if not _is_address(new.peer_address) or not (_is_address(new.client_address) or not new.client_address):
        return f"{new.name} has no address that others could dial"
    if new.peer_address in addresses or new.client_address in addresses:
        return f"{new.name} has an address that another member has"
    if new.replaces and new.replaces not in membership.voters:
        return _unknown(membership, new.replaces)
    if not new.replaces and len(membership.voters) >= VOTERS_MAX:
        return f"a group has at most {VOTERS_MAX} voters"
    return ""


def _is_address(address: str) -> bool:
    return 0 < len(address.encode()) <= ADDRESS_BYTES_MAX and address.isprintable()


def _unknown(membership: Membership, name: str) -> str:
    return f"there is no replica {_short(name)} that votes; there is {', '.join(membership.voters)}"


def _short(name: str) -> str:
    """A name in an answer: whatever was asked, the answer fits into a message."""
    return repr(name if len(name) <= NAME_BYTES_MAX else name[:NAME_BYTES_MAX] + "…")


def changed(membership: Membership, change: Change) -> Membership:
    """What comes of a change; the same as before if something is against it."""
    if objection(membership, change):
        return membership
    members, epoch, former = list(membership.members), membership.epoch, membership.former
    protocol = membership.protocol
    match change:
        case AddLearner():
            taken = {member.place for member in members}
            place = next(place for place in range(PLACES) if place not in taken)
            new = GroupMember(
                change.name, place, change.peer_address, change.client_address, change.disk, False, change.replaces
            )
            members.append(new)
        case Promote():
            epoch += 1
            [promoted] = [member for member in members if member.name == change.name]
            members = [_promoted(member, promoted) for member in members]
        case Leave():
            members = [_with(member, leaving=True) if member.name == change.name else member for member in members]
        case Remove():
            [removed] = [member for member in members if member.name == change.name]
            epoch += removed.votes
            former = (*former, removed.name)
            members = [member for member in members if member is not removed]
        case Cancel():
            former = (*former, *(member.name for member in members if not member.votes))
            members = [_with(member, leaving=False) for member in members if member.votes]
        case ChangeProtocol():
            protocol = change.protocol
        case _:
            assert_never(change)
    return Membership(tuple(members), epoch, membership.number + 1, former, protocol)


def _promoted(member: GroupMember, promoted: GroupMember) -> GroupMember:
    if member is promoted:
        return _with(member, votes=True, replaces="")
    return _with(member, leaving=True) if member.name == promoted.replaces else member


def _with(member: GroupMember, **fields: bool | str) -> GroupMember:
    return msgspec.structs.replace(member, **fields)
