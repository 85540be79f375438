"""A client's links to the other replicas of its broker's group: publications go there too, to save a step (D4-A6, B4).

The session lives at the leader, which answers as always. While at least one direct link is open, what is published for
the first time is said on all of them as well, one message at a time. Nothing is ever answered on a direct link, and
whatever goes wrong on it, the session's own link is enough: what is not answered there is said there again.

Between two nodes there is one link. So an address is not dialled while the session is there, one that leads to the
session's own broker is not dialled again, and all direct links go before the session moves elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.protocols.sessions.conversation import Conversation
from holdfast.protocols.sessions.messages import DirectChanged, OpenDirect, Publish

if TYPE_CHECKING:
    from random import Random

ADDRESSES_MAX = 16  # that a broker may name; no group is so large


class _Place:
    """An address that the client wants a direct link to."""

    __slots__ = ("failures", "link", "peer")

    def __init__(self) -> None:
        self.failures = 0
        self.link = 0  # 0: none
        self.peer = ""  # who was there last

    def open(self, link: int, peer: str) -> None:
        self.link, self.peer, self.failures = link, peer, 0

    def close(self) -> None:
        self.link = 0

    def fail(self) -> int:
        """How often it did before."""
        self.failures += 1
        return self.failures - 1


class DirectLinks(Part):
    """A part of a client's node, and its `OtherLinks`. Comes behind the client's session, which wants links first."""

    name: ClassVar[str] = "direct"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {DirectChanged: frozenset({Role.BROKER})}

    def __init__(self, conversation: Conversation, rng: Random) -> None:
        self._conversation = conversation
        self._settings = conversation.settings
        self._rng = rng
        self._opening: OpenDirect | None = None  # None: there is no session
        self._session_address = ""
        self._places: dict[str, _Place] = {}  # address → what is there
        self._by_link: dict[int, str] = {}  # those that are open → address
        self._dialling: set[str] = set()  # addresses, also those that are not wanted any more
        self._saying = False  # the timer is set
        self._useless: set[str] = set()  # addresses that lead to a broker that the client has a link to

    @property
    def is_open(self) -> bool:
        return bool(self._by_link)

    def is_dialling(self, address: str) -> bool:
        """Whether an attempt to connect is under way, of which a link or a failure will come."""
        return address in self._dialling

    # ---------------------------------------------------------------------------------- called by the client's session
    @staticmethod
    def check(addresses: tuple[str, ...]) -> None:
        if len(addresses) > ADDRESSES_MAX:
            raise ProtocolError(f"a broker names {len(addresses)} addresses to publish to, beyond {ADDRESSES_MAX}")

    def opened(self, opening: OpenDirect, address: str, addresses: tuple[str, ...], out: Outbox) -> None:
        """The session is open, at that address."""
        self._opening, self._session_address = opening, address
        self._want(addresses, out)

    def close(self, reason: str, out: Outbox) -> None:
        """There is no session any more, or not here."""
        if self._opening is not None:
            self._opening = None
            self._want((), out, reason)

    def takes(self, up: LinkUp, out: Outbox) -> bool:
        """Whether a link that the session does not want is one of these."""
        place = self._places.get(up.address)
        others = [other.peer for address, other in self._places.items() if address != up.address]
        if up.address in self._dialling and (up.peer == self._conversation.broker or up.peer in others):
            # Another link to the same node has gone for it. That one comes back, and this address is not tried again.
            self._count_out(up.address, out)
            return False
        if place is None or place.link or self._opening is None:
            return False
        place.open(up.link, up.peer)
        self._by_link[up.link] = up.address
        out.send(up.peer, self._opening)
        self._keep_saying(out)
        return True

    def _count_out(self, address: str, out: Outbox) -> None:
        if len(self._useless) >= ADDRESSES_MAX:
            self._useless.clear()
        self._useless.add(address)
        if address in self._places:
            self._forget(address, out)

    def send(self, message: Publish, out: Outbox) -> None:
        """Says on every link what the session's broker is told."""
        for link, address in self._by_link.items():
            peer = self._places[address].peer
            if peer in out.queues and out.queues[peer].bytes > self._settings.direct_bytes_max:
                out.disconnect(link, "what is published is not read")
            else:
                out.send(peer, message, Lane.USER)

    # -------------------------------------------------------------------------------------------------------- links
    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        self._dialling.discard(up.address)  # `takes` was asked before

    def on_direct_changed(self, peer: str, changed: DirectChanged, out: Outbox) -> None:
        if self._conversation.is_open_with(peer):
            self.check(changed.addresses)
            self._want(changed.addresses, out)

    def _want(self, addresses: tuple[str, ...], out: Outbox, reason: str = "not to be published to any more") -> None:
        allowed = self._settings.allow_direct
        wanted = [a for a in addresses if allowed and a != self._session_address and a not in self._useless]
        for address in [address for address in self._places if address not in wanted]:
            place = self._places[address]
            if place.link:
                out.disconnect(place.link, reason)
            self._forget(address, out)
        for address in wanted:
            if address not in self._places:
                self._places[address] = _Place()
                self._dial(address, out)

    def _forget(self, address: str, out: Outbox) -> None:
        place = self._places.pop(address)
        if place.link:
            del self._by_link[place.link]
            out.drop_queue(place.peer)
        out.cancel_timer((self.name, "dial", address))

    def _dial(self, address: str, out: Outbox) -> None:
        if address not in self._dialling:
            self._dialling.add(address)
            out.connect("", address)

    def _dial_later(self, address: str, out: Outbox) -> None:
        failures = self._places[address].fail()
        pause = min(self._settings.pause_max, self._settings.pause_min << min(failures, 30))
        out.set_timer((self.name, "dial", address), self._rng.randint(pause // 2, pause))

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.address in self._dialling:
            self._dialling.discard(failed.address)
            if failed.address in self._places:
                self._dial_later(failed.address, out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        address = self._by_link.pop(down.link, None)
        if address is not None:
            place = self._places[address]
            out.drop_queue(place.peer)
            place.close()
            self._dial_later(address, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "dial":
                if key[2] in self._places and not self._places[key[2]].link:
                    self._dial(key[2], out)
            case "say":
                self._saying = False
                for address in self._by_link.values():
                    if self._opening is not None:
                        out.send(self._places[address].peer, self._opening)
                self._keep_saying(out)
            case _:
                broken("a timer of the direct links has a known name", key=key)

    def _keep_saying(self, out: Outbox) -> None:
        if self._by_link and not self._saying:
            self._saying = True
            out.set_timer((self.name, "say"), self._settings.ping_every)

    def check_invariants(self) -> None:
        for link, address in self._by_link.items():
            require(self._places[address].link == link, "a direct link is at its place", address=address)
        require(self._opening is not None or not self._places, "direct links belong to a session")
