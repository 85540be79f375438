"""Checkers: what a scheme promises, one promise a file, asked of the rows of a run.

`make_checker(name)` makes one, `Watch` feeds several live, `check_trace` feeds them a whole run.
"""

from holdfast.trace.checkers.checker import VIOLATIONS_KEPT, Checker, Violation
from holdfast.trace.checkers.registry import CHECKERS, PROMISED_BY_ALL, make_checker, unchecked
from holdfast.trace.checkers.watch import Watch, check_trace

__all__ = [
    "CHECKERS",
    "PROMISED_BY_ALL",
    "VIOLATIONS_KEPT",
    "Checker",
    "Violation",
    "Watch",
    "check_trace",
    "make_checker",
    "unchecked",
]
