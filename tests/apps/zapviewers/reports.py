"""Short ways to write lines, for the tests."""

from __future__ import annotations


def zap(box: int, to: str, came_from: str, second: int = 0) -> str:
    return f"2026-11-15,20:15:{second:02},10.0.0.{box},{to},{came_from}"


def report(box: int, status: str, second: int = 0) -> str:
    return f"2026-11-15,20:15:{second:02},10.0.0.{box},{status}"


def payload(*lines: str) -> bytes:
    return "\n".join(lines).encode()
