"""`exactly-once`: `at-most-once` and `no-loss` together, as one promise."""

from __future__ import annotations

from holdfast.trace.checkers.at_most_once import AtMostOnce
from holdfast.trace.checkers.checker import Checker
from holdfast.trace.checkers.no_loss import NoLoss
from holdfast.trace.schema import Row


class ExactlyOnce(Checker):
    """Two checkers that write into one list, under one name."""

    def __init__(self, name: str = "exactly-once") -> None:
        self._parts: tuple[Checker, ...] = (AtMostOnce(name), NoLoss(name))
        read = {row_type: self._on_row for part in self._parts for row_type in part.handlers}
        super().__init__(name, read)
        for part in self._parts:
            part.violations = self.violations

    def _on_row(self, row: Row) -> None:
        for part in self._parts:
            part.see(row)

    def finish(self) -> None:
        for part in self._parts:
            part.finish()
