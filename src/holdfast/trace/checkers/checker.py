"""What a checker is, and what it says when a promise was broken.

A checker is fed the rows of one run in their order, live by the simulator or later from a file, and told when the run
has ended: after healing, when what has not happened by then never will. It never stops a run and never raises for what
the system did wrong; it writes violations down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from holdfast.trace.schema import Header, Row

# A broken run may break a promise at every row; nobody reads more than the first few.
VIOLATIONS_KEPT = 1000

Handler: TypeAlias = Callable[[Any], None]
Handlers: TypeAlias = Mapping[type[Row], Handler]


class Violation(msgspec.Struct, frozen=True, gc=False):
    """One broken promise: which, when, what happened, and whom it concerns."""

    checker: str
    t: int
    message: str
    events: tuple[str, ...] = ()
    subscriptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.checker}, at {self.t / 1e6:.3f} ms: {self.message}"


class Checker:
    """What all checkers share: a name, a handler for each type of row that it reads, and the violations found.

    At most VIOLATIONS_KEPT violations are kept.
    """

    def __init__(self, name: str, handlers: Handlers) -> None:
        self.name = name
        self.handlers = handlers
        self.violations: list[Violation] = []

    def begin(self, header: Header) -> None:
        """A run begins; its header says what was promised."""

    def see(self, row: Row) -> None:
        """Takes the next row of the run."""
        handler = self.handlers.get(row.__class__)
        if handler is not None:
            handler(row)

    def finish(self) -> None:
        """The run has ended: finds what should have happened and did not. Called once."""

    def violate(self, t: int, message: str, events: tuple[str, ...] = (), subscriptions: tuple[str, ...] = ()) -> None:
        """Writes a violation down."""
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(Violation(self.name, t, message, events, subscriptions))
