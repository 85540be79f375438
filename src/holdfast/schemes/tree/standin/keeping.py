"""Where a stand-in may come, and nothing is stored: what is for a neighbour that seems to have failed is kept.

Its link may stay for a while, and what was sent over it would be lost with it (D0-C22). What is kept counts as what
waits, so that publishers wait when it is much.
"""

from __future__ import annotations

from typing import ClassVar

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.failure.notices import NeighbourTrusted
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.ways import NoDetours


class TrustedLinks(NoDetours):
    """Links, as far as their other ends seem to be there."""

    def __init__(self, detector: FailureDetector) -> None:
        self._detector = detector

    def sends(self, neighbour: str) -> bool:
        return self._detector.trust(neighbour) is not Trust.SUSPECTED


class Keeping(Part):
    """Before `Forwarding`: what was kept goes on when the neighbour is there after all."""

    name: ClassVar[str] = "keeping"
    notices: ClassVar[tuple[type[Notice], ...]] = (NeighbourTrusted,)
    due = False

    def __init__(self, forwarding: Forwarding) -> None:
        self._forwarding = forwarding

    def on_neighbour_trusted(self, trusted: NeighbourTrusted, out: Outbox) -> None:
        self._forwarding.look()
