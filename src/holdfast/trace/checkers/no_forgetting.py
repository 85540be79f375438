"""`no-forgetting`: no subscription is forgotten by its broker.

A scheme that keeps its state on disks or at replicas promises that a crash costs no subscription; a broker without a
disk does not. Told-of drops (a `missed` with a count) are not forgetting.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Missed


class NoForgetting(Checker):
    """Reports every `missed` that says nothing is known."""

    def __init__(self, name: str = "no-forgetting") -> None:
        super().__init__(name, {Missed: self._on_missed})

    def _on_missed(self, row: Missed) -> None:
        if row.count is None:
            message = f"{row.subscription} of {row.subscriber} was forgotten: {row.reason}"
            self.violate(row.t, message, subscriptions=(row.subscription,))
