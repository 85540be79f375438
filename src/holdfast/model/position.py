"""Positions: where an event stands in a log."""

from __future__ import annotations

import msgspec


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """The number of an event in one log, from 1. A log that was lost and begun again has another id."""

    log: str
    number: int

    def __str__(self) -> str:
        return f"{self.number}@{self.log[:8]}"
