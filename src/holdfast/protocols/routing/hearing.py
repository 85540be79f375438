"""The port to what neighbours have heard of the tables, for whoever sends events behind that."""

from __future__ import annotations

from typing import Protocol


class Hearing(Protocol):
    lacking: dict[str, None]  # neighbours that may not have heard what goes before events over their links

    def owes_answers(self, peer: str) -> bool:
        """Whether it has not said what it wants of all that is kept for it."""
        ...
