"""The other replicas of the group: who is wanted, what they are greeted with, and whose word counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.links.link_set import Came, LinkSet
from holdfast.protocols.links.pauses import Pauses, SteadyPauses
from holdfast.schemes.paxos.ballots import EPOCH
from holdfast.schemes.paxos.formation import Formation, Standing
from holdfast.schemes.paxos.membership import flaw
from holdfast.schemes.paxos.messages import Greeting
from holdfast.schemes.paxos.notices import MembershipChanged, PeerLost, RemovedFromGroup
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings

REPLICAS: Final = frozenset({Role.BROKER})
STRANGERS_MAX: Final = 16  # links to replicas that are no members, or not yet
REASON_CHARACTERS_MAX: Final = 200  # of what the other side says, for operators
PATIENT: Final = 5  # times as long a replica waits that is to be dialled by the other, in a group that has changed


class Peers(Part):
    """Links and greetings. Of two replicas the one with the lower place dials the other."""

    name: ClassVar[str] = "peers"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Greeting: REPLICAS}
    notices: ClassVar[tuple[type[Notice], ...]] = (MembershipChanged,)

    def __init__(self, settings: PaxosSettings, roster: Roster, formation: Formation) -> None:
        self.roster = roster
        self.formation = formation
        self.heard: dict[str, None] = {}  # those that we listen to
        self._settings = settings
        self._connected: dict[str, bool] = {}  # peers with a link → whether they listen to us
        self._links = LinkSet(self.name, strangers_max=STRANGERS_MAX, impatient=True)
        self._pauses = SteadyPauses(settings.dial_every)
        self._patient = SteadyPauses(PATIENT * settings.dial_every)
        self._invited = ""  # who is dialled though it is no member yet
        self.not_reached = ""  # why the last attempt to dial that one came to nothing
        self._told_differs: dict[str, str] = {}  # what was noted of peers with another site file
        self._greet_due = False  # the timer is set

    @property
    def is_formed(self) -> bool:
        return self.formation.standing is Standing.FORMED

    def hears(self, peer: str) -> bool:
        """Whether a peer's word counts: it has the disk that it was formed with, and so have we."""
        return peer in self.heard

    def counts(self, peer: str, ballot: int) -> bool:
        """Whether a peer's vote in a ballot counts: those of another epoch are counted by other rules."""
        return self.hears(peer) and ballot // EPOCH == self.roster.epoch and peer in self.roster.voters

    def tell_all(self, message: Message, out: Outbox, now: bool = False) -> None:
        for peer in self.heard:
            if peer in out.queues and out.queues[peer].bytes > self._settings.unread_bytes_max:
                continue  # it reads nothing; it will catch up when it does
            if now:
                out.send(peer, message, after=NOW)
            else:
                out.send(peer, message)

    def break_links(self, reason: str, out: Outbox) -> None:
        for peer in self._links.linked:
            out.disconnect(self._links.link_of(peer), reason)

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        # A disk of which something was given up may lack votes: it is another one than the group was formed with.
        repaired = f"/{started.repairs}" if started.repairs else ""
        self.formation.start(started.log_id + repaired)
        self.formation.form_alone(out)
        self._want_members(out)

    def _dials(self, peer: str) -> bool:
        places = self.roster.places
        return self.roster.name in places and places[self.roster.name] < places.get(peer, -1)

    def _pauses_for(self, peer: str) -> Pauses | None:
        if self.formation.standing is Standing.REMOVED:
            return None
        if self._dials(peer):
            return self._pauses
        # In a group that has changed, it may not know yet that we are a member, or under which address.
        return self._patient if self.roster.membership.number else None

    def _want_members(self, out: Outbox) -> None:
        members = [peer for peer in self.roster.names if peer != self.roster.name]
        for peer in self._links.wanted:
            if peer not in members and peer != self._invited:
                self._links.unwant(peer, out)
        for peer in members:
            address, pauses = self.roster.peer_address(peer), self._pauses_for(peer)
            self._links.want(peer, address, pauses, out, at_once=self._dials(peer))

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        if up.peer == self.roster.name:
            # One with our own name would count as ourselves: its votes as ours, its disk as our disk.
            out.disconnect(up.link, f"{up.peer} is the one that was dialled")
            return
        if self._links.link_up(up, out) is Came.REFUSED:
            out.disconnect(up.link, f"{up.peer} is no member of this group, and others wait to be one")
            return
        self._connected[up.peer] = False
        if up.peer == self._invited:
            self.not_reached = ""
        self.heard.pop(up.peer, None)
        self._greet(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if not self._links.link_down(down, out):
            return
        del self._connected[down.peer]
        self.heard.pop(down.peer, None)
        self.formation.forget(down.peer)
        out.tell(PeerLost(down.peer))

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer == self._invited:
            self.not_reached = failed.reason[:REASON_CHARACTERS_MAX]
        self._links.connect_failed(failed, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "greet":
                self._greet(out)
            case "dial":
                self._links.timer_fired(key, out)
            case _:
                broken("a timer of the peers has a known name", key=key)

    # ------------------------------------------------------------------------------------------------------ changes
    def invite(self, peer: str, address: str, out: Outbox) -> None:
        """Dials a replica that is to be added."""
        self.uninvite(out)
        self._invited, self.not_reached = peer, ""
        self.formation.forgive(peer)
        self._links.want(peer, address, self._pauses, out)

    def uninvite(self, out: Outbox) -> None:
        if self._invited and self._invited not in self.roster.names:
            self._links.unwant(self._invited, out)
        self._invited = ""

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        for peer in list(self._connected):
            if self.formation.accepts(peer) != (peer in self.heard):
                if peer in self.heard:
                    del self.heard[peer]
                else:
                    self.heard[peer] = None
                out.send(peer, self.formation.greeting(peer in self.heard))
        self._want_members(out)

    # --------------------------------------------------------------------------------------------------- greetings
    def on_greeting(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        if peer not in self._connected:
            return
        if greeting.membership is not None and (problem := flaw(greeting.membership)):
            raise ProtocolError(f"in Greeting, {problem}")
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
            out.report("other-site-file", Level.WARNING, peer=peer, problem=differs)
        self._told_differs = dict(self.formation.disagreements)
        self._note_standing(before[0], out)
        theirs = greeting.membership
        if theirs is not None and peer not in self.roster.names and not self.formation.accepts(peer):
            # It was a member: by our first greeting it knows that it is none any more.
            out.disconnect(self._links.link_of(peer), f"{peer} is no member of this group any more")

    def _note_standing(self, before: Standing, out: Outbox) -> None:
        standing = self.formation.standing
        if standing is before:
            return
        match standing:
            case Standing.WIPED:
                out.report("wiped-disk", Level.WARNING, replica=self.roster.name)
            case Standing.REMOVED:
                self.heard.clear()
                self._want_members(out)
                out.tell(RemovedFromGroup())
            case Standing.FORMED if self.formation.is_joining:
                out.report("added", Level.INFO, replica=self.roster.name)
                self._want_members(out)
            case _:
                pass

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

    def check_invariants(self) -> None:
        self._links.check_invariants()
        require(set(self._connected) == set(self._links.linked), "who is greeted has a link", peers=self._connected)
