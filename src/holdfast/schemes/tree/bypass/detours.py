"""The way of a message to a neighbour in the tree, also when the neighbour or the link to it failed (D1-B5).

Routing stays on the tree: a message is always *for* a neighbour there. Where it can't be given to it, it goes around:
to the neighbour itself by other links, or, if that failed, to those behind it. Who gets it takes it as if its own
neighbour in the tree had given it, the one in the direction of the sender; so nothing but the way is different.

Nothing is acknowledged or kept here. A detour that finds no way is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.codec import Registry
from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import LATEST, NOW, After, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.notices import Detoured
from holdfast.schemes.tree.bypass.database import SHOWN, Database
from holdfast.schemes.tree.bypass.link_state import Detector
from holdfast.schemes.tree.bypass.messages import Detour
from holdfast.schemes.tree.bypass.view import View

BROKERS: Final = frozenset({Role.BROKER})
PASSED_BYTES_MAX: Final = 64 * 1024 * 1024  # that wait for one neighbour; then what is passed on to it is dropped


class Detours(Part):
    """The ways of a level that detours. Tells what came by a detour, as from a neighbour in the tree. `carried` are the
    types of messages that may travel so; `after` is what they wait for where they set out.
    """

    name: ClassVar[str] = "detours"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Detour: BROKERS}

    def __init__(
        self,
        database: Database,
        view: View,
        carried: Registry[Message],
        detector: Detector,
        acquaintances: Acquaintances,
        after: After = LATEST,
        passed_bytes_max: int = PASSED_BYTES_MAX,
    ) -> None:
        self.view = view
        self._database = database
        self._carried = carried
        self._detector = detector
        self._acquaintances = acquaintances
        self._after = after
        self._passed_bytes_max = passed_bytes_max
        self._sent = self._passed = self._arrived = self._dropped = 0

    @property
    def _hops_max(self) -> int:
        """Links of the longest way that meets nobody twice."""
        return max(1, len(self._database.graph.brokers) - 1)

    # ----------------------------------------------------------------------------------------------------- sending
    def is_good(self, neighbour: str) -> bool:
        """Both ends have to say so: one may still hear the other, and not be heard."""
        known = neighbour in self._acquaintances and self._detector.trusts(neighbour)
        return known and self.view.is_usable(self.view.own, neighbour)

    def carries_events(self, neighbour: str) -> bool:
        return self.is_good(neighbour) and self._database.is_ready(neighbour)

    def sends(self, neighbour: str) -> bool:
        return True

    def around(self, neighbour: str) -> tuple[str, ...]:
        return self.view.targets(neighbour, unready=True)

    def tell_around(self, neighbour: str, message: Message, out: Outbox) -> None:
        self.send(neighbour, message, Lane.CONTROL, out, unready=True)

    def send_around(self, neighbour: str, message: Message, out: Outbox) -> bool:
        return bool(self.send(neighbour, message, Lane.USER, out))

    def send(self, neighbour: str, message: Message, lane: Lane, out: Outbox, unready: bool = False) -> tuple[str, ...]:
        """Sends a message for a neighbour in the tree; gives those that it is on its way to now, which may be nobody.

        `unready`: it is one that makes brokers ready, and may go to those that are not.
        """
        if self.carries_events(neighbour) or (unready and self.is_good(neighbour)):
            out.send(neighbour, message, lane, self._after)
            return (neighbour,)
        targets = self.view.targets(neighbour, unready)
        if targets:
            kind, body = self._carried.encode(message)
            for target in targets:
                hop = self.view.next_hop(target)
                if hop is None:
                    broken("a target of a detour can be reached", target=target)
                detour = Detour(target, self.view.own, self._hops_max, kind, body, lane is Lane.USER)
                out.send(hop, detour, lane, self._after)
            self._sent += len(targets)
        return targets

    # --------------------------------------------------------------------------------------------------- receiving
    def on_detour(self, peer: str, detour: Detour, out: Outbox) -> None:
        if not self._acquaintances.hears(peer, "a detour comes behind an introduction"):
            self._dropped += 1
            return
        message = self._checked(detour)
        brokers = self._database.graph.brokers
        if detour.sender not in brokers or detour.target not in brokers:
            self._dropped += 1  # by a map that this broker does not have yet, or not any more
        elif detour.target == self.view.own:
            self._arrived += 1
            out.tell(Detoured(self.view.tree.next_hop(self.view.own, detour.sender), detour.sender, message))
        else:
            self._pass_on(detour, out)

    def _pass_on(self, detour: Detour, out: Outbox) -> None:
        """By our own view, which may be newer or older than the sender's: `hops` ends what goes round in a circle."""
        hop = self.view.next_hop(detour.target)
        if hop is None or detour.hops == 1 or self._is_full(hop, detour.is_user, out):
            self._dropped += 1
            return
        passed = Detour(detour.target, detour.sender, detour.hops - 1, detour.kind, detour.body, detour.is_user)
        out.send(hop, passed, Lane.USER if detour.is_user else Lane.CONTROL, NOW)
        self._passed += 1

    def _is_full(self, hop: str, is_user: bool, out: Outbox) -> bool:
        """Control has room where users' messages have none; but whoever says what it is may lie."""
        bytes_max = self._passed_bytes_max if is_user else 2 * self._passed_bytes_max
        return hop in out.queues and out.queues[hop].bytes > bytes_max

    def _checked(self, detour: Detour) -> Message:
        """What is carried. It is read by everyone who passes it on, so that the link that ends for it is the one that
        it came into the network by."""
        if detour.target == detour.sender:
            raise ProtocolError(f"Detour from {detour.sender[:SHOWN]!r} to itself")
        if detour.hops > 2 * self._hops_max:
            raise ProtocolError(f"Detour over {detour.hops} links; no way here has nearly as many")
        return self._carried.decode(detour.kind, detour.body)

    # ---------------------------------------------------------------------------------------------------- operators
    def measure(self) -> dict[str, int]:
        return {
            "detours_sent_total": self._sent,
            "detours_passed_total": self._passed,
            "detours_arrived_total": self._arrived,
            "detours_dropped_total": self._dropped,
            "brokers_unreachable": self.view.unreachable,
            "brokers_unready": self.view.unready,
        }
