"""What the judges of a run raise."""

from __future__ import annotations


class Violation(AssertionError):  # noqa: N818 - not an error of the caller
    """Something that must never happen did."""


def hold(holds: object, problem: str, *details: object) -> None:
    if not holds:
        raise Violation(f"{problem} {details}" if details else problem)
