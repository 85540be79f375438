"""What outlives a restart: what this broker has agreed to, and what happened."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.schemes.tree.standin.cycle.messages import (
    HAPPENED_MAX,
    RECORD_FORMAT,
    CycleState,
    Happened,
    Promised,
    short,
)

STREAM: Final = "standin"


class Memory:
    """Of one broker. Its disk has all of it in one record."""

    def __init__(self, name: str, durable: bool, streams: StoredStreams) -> None:
        self._name = name
        self._durable = durable
        self.promised: Promised | None = None
        self.happened: list[Happened] = []
        for record in streams.get(STREAM, ()):
            if not isinstance(record, CycleState):
                broken("what is kept of stand-ins is one record", record=type(record).__name__)
            require(record.format == RECORD_FORMAT, "its format is known", format=record.format)
            self.promised, self.happened = record.promised, record.happened

    def promise(self, promised: Promised | None, out: Outbox) -> None:
        if promised != self.promised:
            self.promised = promised
            self._keep(out)

    def promised_to(self, number: int) -> str:
        """Another broker that may make a map of the one with this number at any time, as was agreed here; empty if
        there is none. Until that one gives it back, nothing else may be made of that map."""
        promised = self.promised
        is_bound = promised is not None and promised.number == number and promised.maker != self._name
        return promised.maker if promised is not None and is_bound else ""

    def tell(self, number: int, text: str, out: Outbox, level: Level = Level.INFO) -> None:
        """Something happened: for the log, and for who asks later."""
        out.report("standin", level, map=number, what=text)
        self.happened = [*self.happened, Happened(out.wall, self._name, number, short(text))][-HAPPENED_MAX:]
        self._keep(out)

    def _keep(self, out: Outbox) -> None:
        if self._durable:
            out.snapshot(STREAM, CycleState(self.promised, self.happened))
