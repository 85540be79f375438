"""Which disks make up the group: how a replica whose disk was wiped is told from one that is new.

A group is formed once, in two steps. When all replicas have greeted each other, each writes down the ids of all disks;
when all have said that they wrote down the same, the group is formed, and each votes from then on. One step would not
do: a replica that was wiped in between would be new to those who had not written anything yet, and known to the others.
A replica that comes with another disk than the one it was formed with has forgotten what it promised and voted for; it
must not vote, and nobody listens to it. A disk that is wiped before the group is formed leaves it unformed for good:
nothing is lost with it, and the others' disks have to be wiped too.

A replica that was started with another list of members, or with other rules of the application, is not listened to
either: its ballots, its majorities or what it makes of commands would be others.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from holdfast.errors import LimitsChanged, MembersChanged
from holdfast.kernel.messages import Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.paxos.messages import Formed, Greeting

STREAM = "group"


class Standing(enum.Enum):
    UNKNOWN = "unknown"  # not everyone has greeted us, or written down what we have
    FORMED = "formed"
    WIPED = "wiped"  # the others know us with another disk


# From where to where. What is not here is a mistake of ours.
TRANSITIONS: dict[Standing, frozenset[Standing]] = {
    Standing.UNKNOWN: frozenset({Standing.FORMED, Standing.WIPED}),
    Standing.FORMED: frozenset(),
    Standing.WIPED: frozenset(),
}


class Formation:
    """`disks` is empty until they are written down."""

    def __init__(self, name: str, members: tuple[str, ...], terms: Mapping[str, str] | None = None) -> None:
        self.standing = Standing.UNKNOWN
        self.disks: dict[str, str] = {}
        self.disagreements: dict[str, str] = {}  # members that come with other terms: what is different
        self._name = name
        self._members = members
        self._terms = dict(terms or {})
        self._greeted: dict[str, str] = {}
        self._agreed: set[str] = set()  # who has written down the same disks
        self._confirmed = False

    def recover(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, Formed):
                self.disks, self._confirmed = dict(record.disks), record.confirmed
                written = record.members or tuple(sorted(record.disks))
                if written != (self._members if record.members else tuple(sorted(self._members))):
                    raise MembersChanged(written, self._members)
                if record.terms and record.terms != self._terms:
                    # What is executed again since the last snapshot must come out as it did the first time.
                    raise LimitsChanged(_difference(self._terms, record.terms))

    def start(self, disk: str) -> None:
        """Our own disk is known."""
        self._greeted[self._name] = disk
        self._agreed = {self._name}
        if self.disks and self.disks.get(self._name) != disk:
            self._enter(Standing.WIPED)
        elif self._confirmed:
            self._enter(Standing.FORMED)

    def _enter(self, standing: Standing) -> None:
        known = standing in TRANSITIONS[self.standing]
        require(known, "a replica's standing changes by the table", at=self.standing, to=standing)
        self.standing = standing

    def greeting(self, hears: bool) -> Greeting:
        return Greeting(self._greeted.get(self._name, ""), self.disks, hears, self._confirmed, self._terms)

    def form_alone(self, out: Outbox) -> None:
        """A group of one needs no one's word."""
        if self.standing is Standing.UNKNOWN and len(self._members) == 1:
            self._write_down(dict(self._greeted), out)
            self._count(False, out)

    def greet(self, peer: str, greeting: Greeting, out: Outbox) -> bool:
        """Whether the peer is to be listened to, now that it has said which disk it has, and by what it goes."""
        if greeting.terms != self._terms:
            self._greeted.pop(peer, None)
            self.disagreements[peer] = _difference(self._terms, greeting.terms)
            return False
        self.disagreements.pop(peer, None)
        self._greeted[peer] = greeting.disk
        if self.standing is Standing.UNKNOWN and greeting.formed:
            self._hear(peer, greeting, out)
        if self.standing is Standing.UNKNOWN and not self.disks and len(self._greeted) == len(self._members):
            self._write_down(dict(self._greeted), out)
        return self.accepts(peer)

    def _hear(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        """The peer has written something down."""
        if greeting.formed.get(self._name) != self._greeted.get(self._name):
            self._enter(Standing.WIPED)
        elif not self.disks and greeting.confirmed:
            self._enter(Standing.WIPED)  # we had written it down too, and it is gone
        else:
            if not self.disks:
                self._write_down(dict(greeting.formed), out)
            if greeting.formed == self.disks:
                self._agreed.add(peer)
                self._count(greeting.confirmed, out)

    def _write_down(self, disks: dict[str, str], out: Outbox) -> None:
        self.disks = disks
        out.append(STREAM, Formed(disks, False, self._members, self._terms))

    def _count(self, confirmed: bool, out: Outbox) -> None:
        if confirmed or len(self._agreed) == len(self._members):
            self._enter(Standing.FORMED)
            self._confirmed = True
            out.append(STREAM, Formed(self.disks, True, self._members, self._terms))

    def accepts(self, peer: str) -> bool:
        """Whether the peer has the disk that it was formed with."""
        if self.standing is not Standing.FORMED:
            return False
        known = self._greeted.get(peer)
        return known is not None and known == self.disks.get(peer)


def _difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """The first thing that is not alike; the members come first."""
    name = next(name for name in [*ours, *theirs] if ours.get(name) != theirs.get(name))
    return f"{name} is {theirs.get(name, 'not said')}, here {ours.get(name, 'not said')}"
