"""The other replicas of the group: links to them, greetings, and whose word counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.paxos.formation import Formation, Standing
from holdfast.protocols.paxos.messages import Greeting
from holdfast.protocols.paxos.settings import PaxosSettings

REPLICAS: Final = frozenset({Role.BROKER})


class Peers:
    """A part of a replica's node. Of two replicas the one that comes first in the settings dials the other.

    `lost` is called when a link to a peer is gone.
    """

    name: ClassVar[str] = "peers"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Greeting: REPLICAS}

    def __init__(self, settings: PaxosSettings) -> None:
        self.lost: Callable[[str, Outbox], None] = lambda peer, out: None
        self.names = tuple(member.name for member in settings.members)
        self.formation = Formation(settings.name, self.names, settings.terms())
        self.heard: dict[str, None] = {}  # those that we listen to
        self._settings = settings
        self._place = self.names.index(settings.name)
        self._connected: dict[str, bool] = {}  # peers with a link → whether they listen to us
        self._links: dict[str, int] = {}
        self._told_differs: dict[str, str] = {}  # what was noted of peers with another site file
        self._greet_due = False  # the timer is set

    @property
    def is_formed(self) -> bool:
        return self.formation.standing is Standing.FORMED

    def hears(self, peer: str) -> bool:
        """Whether a peer's word counts: it has the disk that it was formed with, and so have we."""
        return peer in self.heard

    def tell_all(self, message: Message, out: Outbox, now: bool = False) -> None:
        for peer in self.heard:
            if peer in out.queues and out.queues[peer].bytes > self._settings.unread_bytes_max:
                continue  # it reads nothing; it will catch up when it does
            if now:
                out.send(peer, message, after=NOW)
            else:
                out.send(peer, message)

    def break_links(self, reason: str, out: Outbox) -> None:
        for link in self._links.values():
            out.disconnect(link, reason)

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        # A disk of which something was given up may lack votes: it is another one than the group was formed with.
        repaired = f"/{started.repairs}" if started.repairs else ""
        self.formation.start(started.log_id + repaired)
        self.formation.form_alone(out)
        for member in self._settings.members[self._place + 1 :]:
            out.connect(member.name, member.peer_address)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        if up.peer not in self.names or up.peer == self._settings.name:
            # One with our own name would count as ourselves: its votes as ours, its disk as our disk.
            known = "is the one that was dialled" if up.peer in self.names else "is no member of this group"
            out.disconnect(up.link, f"{up.peer} {known}")
            return
        self._connected[up.peer], self._links[up.peer] = False, up.link
        self.heard.pop(up.peer, None)
        self._greet(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if down.peer not in self._connected:
            return
        del self._connected[down.peer], self._links[down.peer]
        self.heard.pop(down.peer, None)
        out.drop_queue(down.peer)
        self.lost(down.peer, out)
        if self.names.index(down.peer) > self._place:
            out.set_timer((self.name, "dial", down.peer), self._settings.dial_every)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self.names:
            out.set_timer((self.name, "dial", failed.peer), self._settings.dial_every)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "greet":
                self._greet(out)
            case "dial":
                if key[2] not in self._connected:
                    out.connect(key[2], self._settings.members[self.names.index(key[2])].peer_address)
            case _:
                broken("a timer of the peers has a known name", key=key)

    # --------------------------------------------------------------------------------------------------- greetings
    def on_greeting(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        if peer not in self._connected:
            return
        self._connected[peer] = greeting.hears
        before = (self.formation.standing, bool(self.formation.disks))
        told = [peer] if self.formation.greet(peer, greeting, out) and peer not in self.heard else []
        if before != (self.formation.standing, bool(self.formation.disks)):
            told = list(self._connected)  # whoever greeted before may be listened to now
        for other in told:
            if self.formation.accepts(other):
                self.heard[other] = None
            out.send(other, self.formation.greeting(other in self.heard))
        if not greeting.hears:
            # Not at once: two that do not listen to each other would answer each other without end.
            self._greet_later(out)
        if (differs := self.formation.disagreements.get(peer)) is not None and self._told_differs.get(peer) != differs:
            out.report("other-site-file", peer=peer, problem=differs)
        self._told_differs = dict(self.formation.disagreements)
        if before[0] is not self.formation.standing and self.formation.standing is Standing.WIPED:
            out.report("wiped-disk", replica=self._settings.name)

    def _greet(self, out: Outbox) -> None:
        """Greets whoever does not listen to us, or has not been greeted by; links may lose greetings."""
        self._greet_due = False
        deaf = [peer for peer, hears in self._connected.items() if not hears or peer not in self.heard]
        for peer in deaf:
            out.send(peer, self.formation.greeting(peer in self.heard))
        if deaf:
            self._greet_later(out)

    def _greet_later(self, out: Outbox) -> None:
        if not self._greet_due:
            self._greet_due = True
            out.set_timer((self.name, "greet"), self._settings.repeat_after)
