"""What goes wrong with traces.

TraceError              lines that are no trace, or a question that it can't answer  (a ValueError)
├── SampledTrace        a trace that leaves rows out, given to a checker
├── CutOffTrace         a trace that ends in the middle of a line
├── UnknownEvent        an event that the trace does not tell of
└── UnknownChecker      a name that no checker has
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import Fields, HoldfastError


class TraceError(Fields, HoldfastError, ValueError):
    """A trace that can't be read or used. `line` is the number of the line at fault, from 1, where there is one."""

    problem: str
    line: int | None = None

    def __str__(self) -> str:
        return self.problem if self.line is None else f"line {self.line}: {self.problem}"


class SampledTrace(TraceError):
    """The trace leaves rows out, so that a checker would take what was left out for what did not happen."""


class CutOffTrace(TraceError):
    """The trace ends in the middle of a line: whoever wrote it was stopped, or is still writing."""


class UnknownEvent(TraceError):
    """The trace does not tell of this event. `close` are ids in it that look alike."""

    def __init__(self, event: str, close: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        super().__init__(f"the trace has no event {event!r}{hint}")
        self.event, self.close = self.args = (event, tuple(close))


class UnknownChecker(TraceError):
    """No checker has this name, or it was named without the argument that it needs, or with one that it does not."""

    def __init__(self, checker: str, problem: str) -> None:
        super().__init__(problem)
        self.checker, _ = self.args = (checker, problem)
