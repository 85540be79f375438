"""Promises about the events that kept clear of one broker: `weak-complete` (D0-C3) and `weak-ordered` (D0-C4).

They are `complete` and `publisher-order`, asked of a run from which the events that traverse the broker are left out.
An event traverses it if a message with the event was put on a link to or from it, arrived or not: what was lost on the
way into a failing broker is what the weak properties leave out. That is known only at the end, so rows are kept until
then.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Delivered, Hop, Published, Row


class Restricted(Checker):
    """Feeds a checker, at the end, the rows of the events that did not traverse a broker."""

    def __init__(self, checker: Checker, broker: str) -> None:
        super().__init__(checker.name, {**dict.fromkeys(checker.handlers, self._on_row), Hop: self._on_hop})
        self._checker = checker
        self._broker = broker
        self._rows: list[Row] = []
        self._traversed: set[str] = set()
        checker.violations = self.violations

    def _on_row(self, row: Row) -> None:
        self._rows.append(row)

    def _on_hop(self, row: Hop) -> None:
        if self._broker in (row.source, row.target):
            self._traversed.update(row.events)

    def finish(self) -> None:
        for row in self._rows:
            if not (isinstance(row, Published | Delivered) and row.event in self._traversed):
                self._checker.see(row)
        self._checker.finish()
