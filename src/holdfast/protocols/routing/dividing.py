"""The ports for several ways to one side of a broker: which event goes by which, and in which order they are taken in
that came by several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from holdfast.model.batch import EventBatch

Rows: TypeAlias = dict[str, Sequence[int]]  # link → rows of a batch


class Divides(Protocol):
    def divide(self, batch: EventBatch, rows: Rows) -> Mapping[str, Sequence[int]]:
        """Which events go by which links, that would go by these."""
        ...


class Orders(Protocol):
    def came(self, peer: str, batch: EventBatch) -> list[tuple[str, EventBatch]] | None:
        """What is to be taken in now that a neighbour has sent this, and from whose side; None: just that."""
        ...


class OneWay(Divides, Orders):
    """To each side."""

    def divide(self, batch: EventBatch, rows: Rows) -> Mapping[str, Sequence[int]]:
        return rows

    def came(self, peer: str, batch: EventBatch) -> list[tuple[str, EventBatch]] | None:
        return None
