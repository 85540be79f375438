"""Brokers that are no neighbours speak to each other: a member dials another one, a spare, or one that was replaced.

A call is a link as a stranger has it, behind an introduction; it ends by itself. What is said in it is said again until
it is answered, so that nobody has to know when it is lost. Who is called is asked now and then whether it is there: a
link may be up to a broker that hangs, and strangers send each other no heartbeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.notices import BrokerIntroduced
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.messages import Here, WhetherHere

BROKERS: Final = frozenset({Role.BROKER})
ANSWERED_WITHIN: Final = 3 * SECOND
ASKED_EVERY: Final = SECOND // 2
THERE_FOR: Final = 2 * SECOND  # who said that it is
HEARD_MAX: Final = 1_000  # brokers of which that is remembered, the last ones
PAUSE: Final = 1 * SECOND  # between two calls of one that does not answer
OLD_AFTER: Final = 2 * (ANSWERED_WITHIN + PAUSE)  # that it did not answer says nothing of now any more


class Calls(Part):
    name: ClassVar[str] = "calls"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {WhetherHere: BROKERS, Here: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (BrokerIntroduced,)
    due = False

    def __init__(self, roster: Roster, links: Links, detector: FailureDetector) -> None:
        self._roster = roster
        self._links = links
        self._detector = detector
        self._called: dict[str, int] = {}  # who has not answered yet → since when
        self._asked: dict[str, int] = {}  # … → when it was asked last
        self._absent: dict[str, int] = {}  # who has not answered in time → when that was found
        self._heard: dict[str, int] = {}  # … or has → when it did last

    def reach(self, peer: str, out: Outbox, address: str = "") -> bool:
        """Whether a broker is there, and can be spoken to; if that is not known, it is called."""
        if self._links.wants(peer):
            self._absent.pop(peer, None)
            if self._detector.trust(peer) is Trust.SUSPECTED:
                self._absent[peer] = out.now
                return False
            return self._links.reaches(peer)
        if self._links.reaches(peer) and out.now - self._heard.get(peer, -THERE_FOR) < THERE_FOR:
            if out.now - self._heard[peer] >= ASKED_EVERY:
                self._ask(peer, out)
            return True
        called = self._called.get(peer)
        if called is not None:
            if out.now - called >= ANSWERED_WITHIN:
                self._give_up(peer, out)
            elif self._links.reaches(peer):
                self._ask(peer, out)
        elif out.now - self._absent.get(peer, -PAUSE) >= PAUSE:
            if out.now - self._absent.get(peer, out.now) >= OLD_AFTER:
                del self._absent[peer]  # nobody has called it since then
            self._called[peer] = out.now
            if self._links.reaches(peer):
                self._ask(peer, out)
            else:
                out.connect(peer, address or self._roster.peer_address(peer))
        return False

    def _ask(self, peer: str, out: Outbox) -> None:
        if out.now - self._asked.get(peer, -ASKED_EVERY) >= ASKED_EVERY:
            self._asked[peer] = out.now
            out.send(peer, WhetherHere(), after=NOW)

    def is_absent(self, peer: str) -> bool:
        """Whether it did not answer when it was last called, and nothing came from it since."""
        return peer in self._absent

    def _give_up(self, peer: str, out: Outbox) -> None:
        self._called.pop(peer, None)
        self._absent[peer] = out.now

    def _is_there(self, peer: str, out: Outbox) -> None:
        self._heard.pop(peer, None)
        self._heard[peer] = out.now
        if len(self._heard) > HEARD_MAX:
            del self._heard[next(iter(self._heard))]
        for waiting in (self._called, self._asked, self._absent):
            waiting.pop(peer, None)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self._called:
            self._give_up(failed.peer, out)

    def on_broker_introduced(self, introduced: BrokerIntroduced, out: Outbox) -> None:
        self._is_there(introduced.peer, out)

    def on_whether_here(self, peer: str, asked: WhetherHere, out: Outbox) -> None:
        out.send(peer, Here(), after=NOW)

    def on_here(self, peer: str, said: Here, out: Outbox) -> None:
        if self._links.reaches(peer):
            self._is_there(peer, out)
