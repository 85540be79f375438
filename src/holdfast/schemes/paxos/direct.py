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
from holdfast.protocols.links.link_set import LinkSet
from holdfast.protocols.links.pauses import GrowingPauses
from holdfast.protocols.sessions.conversation import Conversation
from holdfast.protocols.sessions.messages import DirectChanged, OpenDirect, Publish

if TYPE_CHECKING:
    from random import Random

ADDRESSES_MAX = 16  # that a broker may name; no group is so large


class DirectLinks(Part):
    """A part of a client's node, and its `OtherLinks`. Comes behind the client's session, which wants links first."""

    name: ClassVar[str] = "direct"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {DirectChanged: frozenset({Role.BROKER})}

    def __init__(self, conversation: Conversation, rng: Random) -> None:
        self._conversation = conversation
        self._settings = conversation.settings
        self._opening: OpenDirect | None = None  # None: there is no session
        self._session_address = ""
        self._links = LinkSet(self.name, by_address=True)
        self._pauses = GrowingPauses(self._settings.pause_min, self._settings.pause_max, rng)
        self._saying = False  # the timer is set
        self._useless: set[str] = set()  # addresses that lead to a broker that the client has a link to

    @property
    def is_open(self) -> bool:
        return bool(self._links.linked)

    def is_dialling(self, address: str) -> bool:
        """Whether an attempt to connect is under way, of which a link or a failure will come."""
        return self._links.is_dialling(address)

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
        links, address = self._links, up.address
        others = [links.last_at(other) for other in links.wanted if other != address]
        if links.is_dialling(address) and (up.peer == self._conversation.broker or up.peer in others):
            # Another link to the same node has gone for it. That one comes back, and this address is not tried again.
            self._count_out(address, out)
            return False
        if not links.wants(address) or links.link_of(address) or self._opening is None:
            return False
        links.link_up(up, out)
        out.send(up.peer, self._opening)
        self._keep_saying(out)
        return True

    def _count_out(self, address: str, out: Outbox) -> None:
        if len(self._useless) >= ADDRESSES_MAX:
            self._useless.clear()
        self._useless.add(address)
        self._links.unwant(address, out)

    def send(self, message: Publish, out: Outbox) -> None:
        """Says on every link what the session's broker is told."""
        for address in self._links.linked:
            peer = self._links.last_at(address)
            if peer in out.queues and out.queues[peer].bytes > self._settings.direct_bytes_max:
                out.disconnect(self._links.link_of(address), "what is published is not read")
            else:
                out.send(peer, message, Lane.USER)

    # -------------------------------------------------------------------------------------------------------- links
    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        self._links.attempt_ended(up.address)  # `takes` was asked before

    def on_direct_changed(self, peer: str, changed: DirectChanged, out: Outbox) -> None:
        if self._conversation.is_open_with(peer):
            self.check(changed.addresses)
            self._want(changed.addresses, out)

    def _want(self, addresses: tuple[str, ...], out: Outbox, reason: str = "not to be published to any more") -> None:
        allowed = self._settings.allow_direct
        wanted = [a for a in addresses if allowed and a != self._session_address and a not in self._useless]
        for address in self._links.wanted:
            if address not in wanted:
                self._links.close(address, reason, out)
                self._links.unwant(address, out)
        for address in wanted:
            if not self._links.wants(address):
                self._links.want(address, address, self._pauses, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._links.connect_failed(failed, out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        self._links.link_down(down, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "dial":
                self._links.timer_fired(key, out)
            case "say":
                self._saying = False
                for address in self._links.linked:
                    if self._opening is not None:
                        out.send(self._links.last_at(address), self._opening)
                self._keep_saying(out)
            case _:
                broken("a timer of the direct links has a known name", key=key)

    def _keep_saying(self, out: Outbox) -> None:
        if self.is_open and not self._saying:
            self._saying = True
            out.set_timer((self.name, "say"), self._settings.ping_every)

    def check_invariants(self) -> None:
        self._links.check_invariants()
        require(self._opening is not None or not self._links.wanted, "direct links belong to a session")
