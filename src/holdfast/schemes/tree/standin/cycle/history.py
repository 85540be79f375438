"""What happened around stand-ins, as operators ask a broker for it: each tells what it saw to by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.operating.messages import HistoryEntry, HistoryTold, TellHistory
from holdfast.schemes.tree.standin.cycle.memory import Memory

OPERATORS: Final = frozenset({Role.OPERATOR})


class History(Part):
    name: ClassVar[str] = "history"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {TellHistory: OPERATORS}
    due = False

    def __init__(self, broker: str, memory: Memory) -> None:
        self._broker = broker
        self._memory = memory

    def on_tell_history(self, peer: str, asked: TellHistory, out: Outbox) -> None:
        entries = [HistoryEntry(one.wall, one.number, one.text) for one in self._memory.happened]
        out.send(peer, HistoryTold(asked.request, self._broker, tuple(entries)), after=NOW)
