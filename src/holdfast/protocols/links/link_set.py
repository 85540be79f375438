"""Links to peers: who is wanted is dialled until there is a link, and of two links to a peer the newest counts.

Which peers are wanted changes while the node runs. The part that owns a `LinkSet` hands it what happens to links, and
hears what came of it; what is said on a link, and what is told of it to other parts, is the owner's affair.

Links of strangers, peers that are not wanted and dialled us, are kept up to a number that the owner sets, so that it
can hear what they want. Those that the owner dialled by itself, and guests, whom it knows, do not count: there are no
more of them than it knows. A stranger's link becomes a wanted peer's when the peer is wanted, and the other way round.

Every attempt to connect ends in a link or in a failure, also one whose peer is not wanted any more. While one is under
way, the same is not begun again, unless the owner is impatient.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, TimerKey
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.links.pauses import Pauses

DIAL = "dial"  # begins, behind the owner's name, the keys of the timers


class Came(enum.Enum):
    """What a new link is."""

    LINKED = "linked"  # a wanted peer's, which had none
    REPLACED = "replaced"  # a wanted peer's, in place of an older one
    STRANGER = "stranger"  # of a peer that is not wanted; also in place of an older one
    REFUSED = "refused"  # the same, and there are as many strangers as may be: it is not kept


class _Wanted:
    __slots__ = ("address", "failures", "pauses", "peer")

    def __init__(self, peer: str) -> None:
        self.peer = peer  # who was there last, or is to be
        self.address = ""
        self.pauses: Pauses | None = None
        self.failures = 0

    def turn_to(self, address: str, pauses: Pauses | None) -> None:
        self.address, self.pauses = address, pauses

    def succeed(self, peer: str) -> None:
        self.peer, self.failures = peer, 0

    def fail(self) -> int:
        """How often it did before."""
        self.failures += 1
        return self.failures - 1


class LinkSet:
    """Peers are known by their names; with `by_address` by the addresses at which they are wanted, whoever is there.

    `owner` is the name of the part that hands on the timers whose keys are (owner, "dial", peer). An impatient one
    begins a second attempt beside one that may hang for seconds, when it wants the peer anew or a pause ends; if both
    come to a link, the newer counts. `is_guest` says whose links are kept though they are not wanted.
    """

    def __init__(
        self,
        owner: str,
        *,
        by_address: bool = False,
        strangers_max: int = 0,
        impatient: bool = False,
        is_guest: Callable[[str], bool] | None = None,
    ) -> None:
        self._owner = owner
        self._by_address = by_address
        self._strangers_max = strangers_max
        self._impatient = impatient
        self._is_guest = is_guest
        self._wanted: dict[str, _Wanted] = {}
        self._attempts: dict[str, str] = {}  # the last one under way: peer → address, also of those not wanted any more
        self._links: dict[str, LinkUp] = {}  # of wanted peers and strangers
        self._peers: dict[int, str] = {}  # link → peer

    # -------------------------------------------------------------------------------------------------------- asked
    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(self._wanted)

    @property
    def linked(self) -> tuple[str, ...]:
        """Peers with a link, wanted or not, in the order in which they came."""
        return tuple(self._links)

    def wants(self, peer: str) -> bool:
        return peer in self._wanted

    def link_of(self, peer: str) -> int:
        """The link to a peer; 0: there is none."""
        up = self._links.get(peer)
        return 0 if up is None else up.link

    def incarnation_of(self, peer: str) -> int:
        """In which of its lives the peer is that there is a link to; 0: there is none."""
        up = self._links.get(peer)
        return 0 if up is None else up.incarnation

    def last_at(self, peer: str) -> str:
        """The name of who was there last, of a peer that is wanted; empty if it was never reached."""
        return self._wanted[peer].peer

    def is_dialling(self, peer: str) -> bool:
        """Whether an attempt to connect is under way, of which a link or a failure will come."""
        return peer in self._attempts

    # ------------------------------------------------------------------------------------------------------- wanted
    def want(self, peer: str, address: str, pauses: Pauses | None, out: Outbox, *, at_once: bool = True) -> None:
        """From now on there is to be a link to the peer. Unless there is one, it is dialled, at once or after a pause,
        and after pauses again; without `pauses` it is the peer that dials. Of one that is wanted already the new
        address and pauses count, and a pause that has begun ends with an attempt."""
        wanted = self._wanted.setdefault(peer, _Wanted("" if self._by_address else peer))
        wanted.turn_to(address, pauses)
        if pauses is None or peer in self._links:
            return
        if at_once:
            self._dial(peer, wanted, out)
        else:
            self._dial_later(peer, wanted, out)

    def unwant(self, peer: str, out: Outbox) -> None:
        """The peer is not dialled any more. A link that it has becomes a stranger's: `close` ends it."""
        if self._wanted.pop(peer, None) is not None:
            out.cancel_timer((self._owner, DIAL, peer))

    def close(self, peer: str, reason: str, out: Outbox) -> bool:
        """Gives the link to a peer up, with all that waits for it; whether there was one. Its LinkDown is no news then,
        so that a peer that is still wanted is dialled when its owner wants it again."""
        up = self._links.pop(peer, None)
        if up is None:
            return False
        del self._peers[up.link]
        out.disconnect(up.link, reason)
        out.drop_queue(up.peer)
        return True

    # ----------------------------------------------------------------------------------------- handed on by the owner
    def link_up(self, up: LinkUp, out: Outbox) -> Came:
        """There is a link. If it is refused, the owner disconnects it; if an older one is replaced, what waits for the
        peer is the owner's to drop."""
        peer = up.address if self._by_address else up.peer
        self._attempts.pop(peer, None)
        wanted, older = self._wanted.get(peer), self._links.get(peer)
        if wanted is None and self._is_crowded(up, peer):
            return Came.REFUSED
        if older is not None:
            del self._peers[older.link]
        self._links[peer], self._peers[up.link] = up, peer
        if wanted is None:
            return Came.STRANGER
        wanted.succeed(up.peer)
        return Came.LINKED if older is None else Came.REPLACED

    def _is_crowded(self, up: LinkUp, peer: str) -> bool:
        if self._is_welcome(up, peer):
            return False
        others = [other for other in self._links if other not in self._wanted and other != peer]
        strangers = [other for other in others if not self._is_welcome(self._links[other], other)]
        return len(strangers) >= self._strangers_max

    def _is_welcome(self, up: LinkUp, peer: str) -> bool:
        return self._is_guest is not None and (up.initiated or self._is_guest(peer))

    def link_down(self, down: LinkDown, out: Outbox) -> str:
        """Whose link is gone, with all that waited for it; empty: nobody's, since a newer one took its place or it was
        given up before."""
        peer = self._peers.pop(down.link, "")
        if peer:
            del self._links[peer]
            out.drop_queue(down.peer)
            if peer in self._wanted:
                self._dial_later(peer, self._wanted[peer], out)
        return peer

    def connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        peer = failed.address if self._by_address else failed.peer
        if self._attempts.get(peer) == failed.address:
            del self._attempts[peer]
        elif not self._impatient:
            return  # not one of ours
        wanted = self._wanted.get(peer)
        if wanted is not None and wanted.address == failed.address:
            self._dial_later(peer, wanted, out)

    def attempt_ended(self, peer: str) -> None:
        """What came of an attempt is a link that the owner does not want to be kept here."""
        self._attempts.pop(peer, None)

    def timer_fired(self, key: TimerKey, out: Outbox) -> None:
        wanted = self._wanted.get(key[2])
        if wanted is not None and key[2] not in self._links:
            self._dial(key[2], wanted, out)

    def _dial(self, peer: str, wanted: _Wanted, out: Outbox) -> None:
        if wanted.address and (self._impatient or self._attempts.get(peer) != wanted.address):
            self._attempts[peer] = wanted.address
            out.connect("" if self._by_address else peer, wanted.address)

    def _dial_later(self, peer: str, wanted: _Wanted, out: Outbox) -> None:
        if wanted.pauses is not None:
            out.set_timer((self._owner, DIAL, peer), wanted.pauses.after(wanted.fail()))

    def check_invariants(self) -> None:
        require(len(self._peers) == len(self._links), "each link is one peer's", peers=len(self._peers))
        for link, peer in self._peers.items():
            require(self.link_of(peer) == link, "of two links to a peer the newest is kept", peer=peer)
