"""Which disks make up the group: how a replica whose disk was wiped is told from one that is new.

A group is formed once, when all its replicas have greeted each other: each then writes down the ids of all disks, and
votes from then on. A replica that comes with another disk than the one it was formed with has forgotten what it
promised and voted for; it must not vote, and nobody listens to it. Without `Formed` on its disk a
replica can't know whether it is new: it waits until all others say that they are new too, or that they know its disk.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from holdfast.kernel.messages import Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.paxos.messages import Formed, Greeting

STREAM = "group"


class Standing(enum.Enum):
    UNKNOWN = "unknown"  # not everyone has greeted us
    FORMED = "formed"
    WIPED = "wiped"  # the others know us with another disk


# From where to where. What is not here is a mistake of ours.
TRANSITIONS: dict[Standing, frozenset[Standing]] = {
    Standing.UNKNOWN: frozenset({Standing.FORMED, Standing.WIPED}),
    Standing.FORMED: frozenset(),
    Standing.WIPED: frozenset(),
}


class Formation:
    """`disks` is empty until the group is formed."""

    def __init__(self, name: str, members: tuple[str, ...]) -> None:
        self.standing = Standing.UNKNOWN
        self.disks: dict[str, str] = {}
        self.strangers: dict[str, str] = {}  # members that come with another disk than they were formed with
        self._name = name
        self._members = members
        self._greeted: dict[str, str] = {}

    def recover(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, Formed):
                self.disks = dict(record.disks)

    def start(self, disk: str) -> None:
        """Our own disk is known."""
        self._greeted[self._name] = disk
        if self.disks:
            self._enter(Standing.FORMED if self.disks.get(self._name) == disk else Standing.WIPED)

    def _enter(self, standing: Standing) -> None:
        known = standing in TRANSITIONS[self.standing]
        require(known, "a replica's standing changes by the table", at=self.standing, to=standing)
        self.standing = standing

    def greeting(self, hears: bool) -> Greeting:
        return Greeting(self._greeted.get(self._name, ""), self.disks, hears)

    def form_alone(self, out: Outbox) -> None:
        """A group of one needs no one's word."""
        if self.standing is Standing.UNKNOWN and len(self._members) == 1:
            self._form(dict(self._greeted), out)

    def greet(self, peer: str, greeting: Greeting, out: Outbox) -> bool:
        """Whether the peer is to be listened to, now that it has said which disk it has."""
        self._greeted[peer] = greeting.disk
        if self.standing is Standing.UNKNOWN and greeting.formed:
            if greeting.formed.get(self._name) == self._greeted.get(self._name):
                self._form(dict(greeting.formed), out)
            else:
                self._enter(Standing.WIPED)
        if self.standing is Standing.UNKNOWN and len(self._greeted) == len(self._members):
            self._form(dict(self._greeted), out)
        return self.accepts(peer)

    def _form(self, disks: dict[str, str], out: Outbox) -> None:
        self.disks = disks
        self._enter(Standing.FORMED)
        out.append(STREAM, Formed(disks))

    def accepts(self, peer: str) -> bool:
        """Whether the peer has the disk that it was formed with."""
        if self.standing is not Standing.FORMED:
            return False
        known = self._greeted.get(peer)
        if known is not None and known != self.disks.get(peer):
            self.strangers[peer] = known
            return False
        self.strangers.pop(peer, None)
        return known is not None
