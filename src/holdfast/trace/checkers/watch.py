"""Feeds the rows of one run to several checkers, live or from a file.

Each checker gets only the rows of the types that it reads, by one look-up for all of them. A sampled trace is refused,
and so is one of brokers alone for checkers that ask about clients: what is left out would be taken for what did not
happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.trace.checkers.checker import Checker, Handler, Violation
from holdfast.trace.checkers.registry import unchecked
from holdfast.trace.errors import SampledTrace
from holdfast.trace.schema import Header, Row


class Watch:
    """Checkers that watch one run."""

    def __init__(self, header: Header, checkers: Sequence[Checker]) -> None:
        if header.sampled:
            raise SampledTrace(
                f"the trace of {header.run} leaves rows out (it is sampled): nothing can be checked on it"
            )
        for checker in checkers:
            if why := unchecked(header, checker.name):
                raise SampledTrace(f"{checker.name} can't be checked on the trace of {header.run}: {why}")
        self.checkers = tuple(checkers)
        self._violations = [checker.violations for checker in self.checkers]
        self._handlers: dict[type[Row], tuple[Handler, ...]] = {}
        for checker in self.checkers:
            checker.begin(header)
            for row_type, handler in checker.handlers.items():
                self._handlers[row_type] = (*self._handlers.get(row_type, ()), handler)

    def see(self, row: Row) -> None:
        """Takes the next row of the run."""
        for handler in self._handlers.get(row.__class__, ()):
            handler(row)

    def finish(self) -> None:
        """The run has ended, after healing and the deadline for liveness."""
        for checker in self.checkers:
            checker.finish()

    @property
    def found(self) -> bool:
        """Whether any checker found anything so far."""
        return any(self._violations)

    @property
    def violations(self) -> list[Violation]:
        """What all checkers found so far, checker by checker."""
        return [violation for checker in self.checkers for violation in checker.violations]


def check_trace(header: Header, rows: Iterable[Row], checkers: Sequence[Checker]) -> list[Violation]:
    """Feeds a whole run to new checkers, and gives what they found."""
    watch = Watch(header, checkers)
    for row in rows:
        watch.see(row)
    watch.finish()
    return watch.violations
