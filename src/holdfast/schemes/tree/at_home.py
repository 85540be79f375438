"""Promises that hold at each home of a subscriber by itself: `at-most-once-at-home`, `publisher-order-at-home`.

A subscriber with several brokers begins anew at the next one: what it got at the first and is still on its way to the
second comes to it again there (docs/levels.md). At each of them it gets an event once, and each publisher's in order.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Delivered, Row

ONCE_AT_HOME: Final = "at-most-once-at-home"
ORDER_AT_HOME: Final = "publisher-order-at-home"


class AtHome(Checker):
    """Shows a checker what was delivered by different brokers as if it were for different subscriptions."""

    def __init__(self, checker: Checker) -> None:
        super().__init__(checker.name, {**checker.handlers, Delivered: self._on_delivered})
        self._checker = checker
        self.violations = checker.violations

    def _on_delivered(self, row: Row) -> None:
        if isinstance(row, Delivered):
            self._checker.see(replace(row, subscription=f"{row.subscription} at {row.via}"))
