"""The members of the group as one replica knows them now; everything that counts votes looks here."""

from __future__ import annotations

from holdfast.schemes.paxos.ballots import fast_quorum, quorum
from holdfast.schemes.paxos.membership import GroupMember, Membership, founders
from holdfast.schemes.paxos.settings import PaxosSettings, Protocol


class Roster:
    """The membership that counts now, taken apart; `name` is our own. Addresses in the site file, where it has them,
    are newer than those that the group wrote down."""

    def __init__(self, settings: PaxosSettings) -> None:
        self.name = settings.name
        self._founders = tuple(member.name for member in settings.members)
        self._site = {member.name: member for member in (*settings.members, *settings.spares)}
        self.set(founders(settings.members, {}, settings.protocol))

    def set(self, membership: Membership) -> None:
        self.membership = membership
        self.epoch = membership.epoch
        self.voters = membership.voters
        self.names = membership.names
        self.places = {member.name: member.place for member in membership.members}  # whose ballots are whose
        self.is_changing = any(member.leaving or not member.votes for member in membership.members)
        self.quorum = quorum(len(self.voters))
        self.fast_quorum = fast_quorum(len(self.voters))
        self.is_fast = membership.protocol is Protocol.FAST
        self.is_voter = self.name in self.voters

    def find(self, name: str) -> GroupMember | None:
        return self.membership.find(name)

    def disk_of(self, name: str) -> str:
        member = self.find(name)
        return "" if member is None else member.disk

    def peer_address(self, name: str) -> str:
        member = self._site.get(name) or self.find(name)
        return "" if member is None else member.peer_address

    def client_address(self, name: str) -> str:
        member = self._site.get(name) or self.find(name)
        return "" if member is None else member.client_address

    @property
    def difference(self) -> str:
        """How the site file differs from the group as it is; empty if it does not."""
        listed = [name for name in self._founders if name not in self.names]
        unlisted = [name for name in self.names if name not in self._site]
        said = [f"the site file lists {', '.join(listed)}, no member of the group"] if listed else []
        return "; ".join(said + ([f"it does not list {', '.join(unlisted)}, a member"] if unlisted else []))
