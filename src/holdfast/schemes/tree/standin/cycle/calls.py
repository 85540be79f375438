"""Brokers that are no neighbours speak to each other: a member dials another one, a spare, or one that was replaced.

A call is a link as a stranger has it, behind an introduction; it ends by itself. What is said in it is said again until
it is answered, so that nobody has to know when it is lost.
"""

from __future__ import annotations

from typing import ClassVar, Final

from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.notices import BrokerIntroduced
from holdfast.protocols.routing.roster import Roster

ANSWERED_WITHIN: Final = 3 * SECOND
PAUSE: Final = 1 * SECOND  # between two calls of one that does not answer


class Calls(Part):
    name: ClassVar[str] = "calls"
    notices: ClassVar[tuple[type[Notice], ...]] = (BrokerIntroduced,)
    due = False

    def __init__(self, roster: Roster, links: Links, detector: FailureDetector) -> None:
        self._roster = roster
        self._links = links
        self._detector = detector
        self._called: dict[str, int] = {}  # who has not answered yet → when it was called
        self._absent: dict[str, int] = {}  # who has not answered in time → when that was found

    def reach(self, peer: str, out: Outbox, address: str = "") -> bool:
        """Whether a broker can be spoken to; if not, it is called."""
        if self._links.reaches(peer):
            return True
        if self._links.wants(peer):
            if self._detector.trust(peer) is Trust.SUSPECTED:
                self._absent.setdefault(peer, out.now)
            return False
        called = self._called.get(peer)
        if called is not None:
            if out.now - called >= ANSWERED_WITHIN:
                self._give_up(peer, out)
        elif out.now - self._absent.get(peer, -PAUSE) >= PAUSE:
            self._called[peer] = out.now
            out.connect(peer, address or self._roster.peer_address(peer))
        return False

    def is_absent(self, peer: str) -> bool:
        """Whether it did not answer when it was last called, and nothing came from it since."""
        return peer in self._absent and not self._links.reaches(peer)

    def _give_up(self, peer: str, out: Outbox) -> None:
        self._called.pop(peer, None)
        self._absent[peer] = out.now

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self._called:
            self._give_up(failed.peer, out)

    def on_broker_introduced(self, introduced: BrokerIntroduced, out: Outbox) -> None:
        self._called.pop(introduced.peer, None)
        self._absent.pop(introduced.peer, None)
