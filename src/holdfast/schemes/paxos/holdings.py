"""What comes of commands and is no part of the application's state: a replica asks how much of it is here."""

from __future__ import annotations

from typing import Protocol

from holdfast.kernel.outbox import Outbox


class Holdings(Protocol):
    def settle(self, out: Outbox) -> None:
        """Writes what is held back: the snapshot that follows speaks of it."""
        ...

    def is_whole(self) -> bool:
        """Whether nothing is lacking; a replica that lacks something does not lead."""
        ...

    def fetch_first(self, state: bytes, out: Outbox) -> bool:
        """Whether what another's state speaks of is fetched before it is taken over; `HoldingsFetched` is told then."""
        ...

    def extent(self) -> tuple[int, int]:
        """How much there is, and how much of it is on the disk."""
        ...


class NoHoldings:
    """The holdings of an application whose state is all that there is."""

    def settle(self, out: Outbox) -> None:
        pass

    def is_whole(self) -> bool:
        return True

    def fetch_first(self, state: bytes, out: Outbox) -> bool:
        return False

    def extent(self) -> tuple[int, int]:
        return (0, 0)
