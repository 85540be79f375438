"""What the parts of the cycle tell each other."""

from __future__ import annotations

from holdfast.kernel.notices import Notice
from holdfast.schemes.tree.standin.cycle.errands import Outcome


class Looked(Notice, frozen=True):
    """The monitor has looked at the neighbours: it is time to see what there is to do."""


class ErrandEnded(Notice, frozen=True):
    """The program beside the broker has done what it was given, or could not."""

    number: int
    outcome: Outcome
