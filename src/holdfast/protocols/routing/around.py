"""Events of one turn for neighbours whose links can't be used: at its end they go around, if there is a way."""

from __future__ import annotations

from holdfast.model.batch import EventBatch


class Around:
    """In the order in which they came."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, EventBatch]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, peer: str, events: EventBatch) -> None:
        self._waiting.append((peer, events))

    def take(self, peer: str) -> list[EventBatch]:
        """What is for one neighbour, which is gone from here."""
        waiting = self._waiting
        self._waiting = [each for each in waiting if each[0] != peer]
        return [events for other, events in waiting if other == peer]

    def take_all(self) -> list[tuple[str, EventBatch]]:
        taken, self._waiting = self._waiting, []
        return taken

    def redirect(self, old: str, new: str) -> None:
        """What is for one neighbour is for another."""
        self._waiting = [(new if peer == old else peer, events) for peer, events in self._waiting]
