"""Which disks make up the group: how a replica whose disk was wiped is told from one that is new.

A group is formed once, in two steps. When all replicas have greeted each other, each writes down the ids of all disks;
when all have said that they wrote down the same, the group is formed, and each votes from then on. One step would not
do: a replica that was wiped in between would be new to those who had not written anything yet, and known to the others.
A replica that comes with another disk than the one it was formed with has forgotten what it promised and voted for; it
must not vote, and nobody listens to it. A disk that is wiped before the group is formed leaves it unformed for good:
nothing is lost with it, and the others' disks have to be wiped too.

While it is formed, replicas with other lists of members do not listen to each other, nor ever those with other rules of
the application: their ballots, their majorities or what they make of commands would be others. Later the group's log
says who is a member, and the site file does not count any more. A replica with an empty disk that a group has added is
told so by the group, and begins with a snapshot.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

from holdfast.errors import LimitsChanged, NotAMember
from holdfast.kernel.messages import Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.membership import Membership
from holdfast.schemes.paxos.messages import Formed, Greeting
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings

STREAM = "group"
PINNED = ("members", "protocol")  # terms that the log may change later: what was written down stands


class Standing(enum.Enum):
    UNKNOWN = "unknown"  # not everyone has greeted us, or written down what we have; or nobody has added us
    FORMED = "formed"
    WIPED = "wiped"  # the others know us with another disk
    REMOVED = "removed"  # the others went on without us


# From where to where. What is not here is a mistake of ours.
TRANSITIONS: dict[Standing, frozenset[Standing]] = {
    Standing.UNKNOWN: frozenset({Standing.FORMED, Standing.WIPED, Standing.REMOVED}),
    Standing.FORMED: frozenset({Standing.REMOVED}),
    Standing.WIPED: frozenset(),
    Standing.REMOVED: frozenset(),
}


class Formation:
    """How far the group is formed. `disks` are those of the founders; empty until they are written down."""

    def __init__(self, settings: PaxosSettings, roster: Roster) -> None:
        self.standing = Standing.UNKNOWN
        self.disks: dict[str, str] = {}
        self.disagreements: dict[str, str] = {}  # members that come with other terms: what is different
        self.candidates: dict[str, str] = {}  # strangers with an empty disk: which
        self.occupied: dict[str, None] = {}  # strangers whose disk has the data of a group
        self.is_joining = False  # was added, and has no snapshot yet
        self._name = roster.name
        self._roster = roster
        self._members = tuple(member.name for member in settings.members)
        self._terms = settings.terms()
        self._greeted: dict[str, str] = {}
        self._ahead: dict[str, Membership] = {}  # of those who say that we are a member, and know a later membership
        self._agreed: set[str] = set()  # who has written down the same disks
        self._confirmed = False
        self._gone_to: tuple[str, ...] = ()  # who went on without us, if we were told so

    # ---------------------------------------------------------------------------------------------------------- disk
    def recover(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, Formed):
                self.disks, self._confirmed = dict(record.disks), record.confirmed
                if record.terms:
                    self._pin(record.terms)
                membership = record.membership
                if membership is None:  # written before groups could change
                    first = self._roster.membership.members
                    membership = Membership(
                        tuple(msgspec.structs.replace(each, disk=record.disks.get(each.name, "")) for each in first)
                    )
                self._roster.set(membership)
                own = membership.find(self._name)
                self.is_joining = own is not None and not own.votes
                self._gone_to = membership.names if own is None else ()

    def _pin(self, terms: Mapping[str, str]) -> None:
        """The log says who is a member, and by which protocol; what comes of commands must stay as it was."""
        ours = {name: terms.get(name, value) if name in PINNED else value for name, value in self._terms.items()}
        if ours != terms:
            raise LimitsChanged(_difference(ours, terms))
        self._terms = dict(terms)

    def check(self) -> None:
        """Everything is read: whether we are a member of what we are about to be a member of."""
        if self._gone_to or (self._confirmed and self._roster.find(self._name) is None):
            raise NotAMember(self._name, self._gone_to or self._roster.names)

    def start(self, disk: str) -> None:
        """Our own disk is known."""
        self._greeted[self._name] = disk
        self._agreed = {self._name}
        if self.disks and self._roster.disk_of(self._name) != disk:
            self._enter(Standing.WIPED)
        elif self._confirmed:
            self._enter(Standing.FORMED)

    def _enter(self, standing: Standing) -> None:
        known = standing in TRANSITIONS[self.standing]
        require(known, "a replica's standing changes by the table", at=self.standing, to=standing)
        self.standing = standing

    # ----------------------------------------------------------------------------------------------------- greetings
    def greeting(self, hears: bool) -> Greeting:
        # Without the names of former members: they only become more, and who joins has them in its snapshot.
        membership = msgspec.structs.replace(self._roster.membership, former=()) if self._confirmed else None
        disk = self._greeted.get(self._name, "")
        return Greeting(disk, self.disks, hears, self._confirmed, self._terms, membership)

    def form_alone(self, out: Outbox) -> None:
        """A group of one needs no one's word."""
        if self.standing is Standing.UNKNOWN and self._members == (self._name,):
            self._write_down(dict(self._greeted), out)
            self._count(False, out)

    def greet(self, peer: str, greeting: Greeting, out: Outbox) -> bool:
        """Whether the peer is to be listened to, now that it has said which disk it has, and by what it goes."""
        if greeting.formed and peer not in self._roster.names:
            self.occupied[peer] = None
        if not self._agrees(peer, greeting):
            self._greeted.pop(peer, None)
            self._ahead.pop(peer, None)
            return False
        self.disagreements.pop(peer, None)
        self._greeted[peer] = greeting.disk
        if greeting.membership is not None:
            self._hear_of_group(peer, greeting, greeting.membership, out)
        elif peer not in self._roster.names:
            if greeting.disk and not greeting.formed:
                self.candidates[peer] = greeting.disk
        elif self.standing is Standing.UNKNOWN and greeting.formed:
            self._hear(peer, greeting, out)
        founding = self.standing is Standing.UNKNOWN and not self.disks and self._name in self._members
        if founding and all(name in self._greeted for name in self._members):
            self._write_down({name: self._greeted[name] for name in self._members}, out)
        return self.accepts(peer)

    def _agrees(self, peer: str, greeting: Greeting) -> bool:
        ours, theirs = self._terms, greeting.terms
        if self._is_newcomer(peer, greeting):
            # The group may have changed since it was formed; what comes of commands has not.
            ours, theirs = _rules(ours), _rules(theirs)
        if ours != theirs:
            self.disagreements[peer] = _difference(ours, theirs)
            return False
        if self.disks and greeting.membership is not None and greeting.formed != self.disks:
            # What its log says of our name is not about us, however much later it is.
            self.disagreements[peer] = "it belongs to another group, formed with other disks"
            return False
        return True

    def _is_newcomer(self, peer: str, greeting: Greeting) -> bool:
        """Whether the peer is new to our group, or we are to its."""
        if greeting.membership is None:
            return peer not in self._roster.voters
        own = greeting.membership.find(self._name)
        return peer not in self._roster.names or (not self.disks and (own is None or not own.votes))

    def _hear_of_group(self, peer: str, greeting: Greeting, theirs: Membership, out: Outbox) -> None:
        """The peer's group is formed. It may have changed since we were last there."""
        own = theirs.find(self._name)
        new, disk = not self.disks, self._greeted.get(self._name)
        if self.standing is Standing.FORMED:
            if theirs.number > self._roster.membership.number:
                if own is None:
                    self._be_gone(theirs, out)
                elif own.disk == disk and (them := theirs.find(peer)) is not None and them.disk == greeting.disk:
                    self._ahead[peer] = theirs
        elif self.standing is Standing.UNKNOWN:
            if own is None:
                if not new:
                    self._be_gone(theirs, out)
            elif own.disk != disk or (new and own.votes):
                self._enter(Standing.WIPED)  # or we had written it down too, and it is gone
            elif new:
                self._join(greeting, theirs, out)
            else:
                self._hear(peer, greeting, out)

    def _be_gone(self, theirs: Membership, out: Outbox) -> None:
        """The others know that we are no member: nobody needs our vote any more, and it is not to be given again."""
        self._enter(Standing.REMOVED)
        out.append(STREAM, Formed(self.disks, True, self._members, self._terms, theirs))

    def _join(self, greeting: Greeting, theirs: Membership, out: Outbox) -> None:
        """The group has added us."""
        self.disks, self._terms, self._confirmed = dict(greeting.formed), dict(greeting.terms), True
        self.is_joining = True
        self._roster.set(theirs)
        self._enter(Standing.FORMED)
        out.append(STREAM, Formed(self.disks, True, tuple(self.disks), self._terms, theirs))

    def _hear(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        """The peer has written something down."""
        if greeting.formed.get(self._name) != self._greeted.get(self._name):
            self._enter(Standing.WIPED)
        else:
            if not self.disks:
                self._write_down(dict(greeting.formed), out)
            if greeting.formed == self.disks:
                self._agreed.add(peer)
                self._count(greeting.confirmed, out)

    def _write_down(self, disks: dict[str, str], out: Outbox) -> None:
        self.disks = disks
        founders = self._roster.membership
        members = tuple(msgspec.structs.replace(each, disk=disks[each.name]) for each in founders.members)
        self._roster.set(msgspec.structs.replace(founders, members=members))
        out.append(STREAM, Formed(disks, False, self._members, self._terms, self._roster.membership))

    def _count(self, confirmed: bool, out: Outbox) -> None:
        if confirmed or len(self._agreed) == len(self._members):
            self._enter(Standing.FORMED)
            self._confirmed = True
            out.append(STREAM, Formed(self.disks, True, self._members, self._terms, self._roster.membership))

    def accepts(self, peer: str) -> bool:
        """Whether the peer has the disk that it is a member with."""
        if self.standing is not Standing.FORMED:
            return False
        known, ahead = self._greeted.get(peer), self._ahead.get(peer)
        if ahead is not None and ahead.number > self._roster.membership.number:
            return True
        return bool(known) and known == self._roster.disk_of(peer)

    def joined(self) -> None:
        """We have a snapshot."""
        self.is_joining = False

    def forgive(self, peer: str) -> None:
        """A stranger that is to be added may have been started with another site file since."""
        self.disagreements.pop(peer, None)

    def forget(self, peer: str) -> None:
        """The link to a peer is gone."""
        self.candidates.pop(peer, None)
        self.occupied.pop(peer, None)
        self._ahead.pop(peer, None)
        if self.standing is Standing.FORMED:
            self._greeted.pop(peer, None)  # it may come back with another disk
        if peer not in self._roster.names:
            self._greeted.pop(peer, None)  # there may be any number of strangers
            self.disagreements.pop(peer, None)


def _rules(terms: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in terms.items() if name not in PINNED}


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first thing that is not alike; the members come first."""
    name = next(name for name in [*ours, *theirs] if ours.get(name) != theirs.get(name))
    return f"{name} is {theirs.get(name, 'not said')}, here {ours.get(name, 'not said')}"
