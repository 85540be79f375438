"""What really happened to a broker's log and to its named subscriptions, as its core decided it, command by command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec.msgpack

from holdfast.model.event import Event, EventBytes
from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.judgement import Known
from holdfast.protocols.core.outputs import CursorTaken, Logged, Output

Owner = tuple[str, int, int]


def decode_event(data: EventBytes) -> Event:
    return msgspec.msgpack.decode(data, type=Event)


@dataclass(frozen=True)
class Take:
    """A client got a cursor: from where on, and by which filters."""

    name: str
    acknowledged: int
    filters: tuple[tuple[int, str], ...]
    placed: bool  # made or moved, and not where someone had acknowledged


class Truth:
    """What the broker's core decided, by the number of the command; which filters counted is worked out again here."""

    def __init__(self) -> None:
        self._by_number: dict[int, tuple[list[Logged], list[tuple[commands.OpenCursor, int, bool]]]] = {}

    def see(self, number: int, command: Command, outputs: list[Output], known: bool) -> None:
        for later in [n for n in self._by_number if n >= number]:
            del self._by_number[later]  # a power cut took it back, or it is read from the journal
        self._note(number, command, outputs, known)

    def _note(self, number: int, command: Command, outputs: list[Output], known: bool) -> None:
        logged = [output for output in outputs if isinstance(output, Logged)]
        taken = []
        for output in outputs:
            if isinstance(output, CursorTaken) and isinstance(command, commands.OpenCursor):
                taken.append((command, output.cursor.acknowledged, not known or command.move))
        if logged or taken:
            self._by_number[number] = (logged, taken)

    def events(self) -> dict[int, dict[str, Any]]:
        """Position → attributes."""
        found = {}
        for number in sorted(self._by_number):
            for logged in self._by_number[number][0]:
                for place, event in enumerate(logged.batch.events, logged.first):
                    found[place] = dict(event.attributes)
        return found

    def takes(self) -> dict[Owner, Take]:
        """The last time that each owner got its cursor anew: what it asks again while it has it changes nothing."""
        found: dict[Owner, Take] = {}
        filters: dict[str, list[tuple[int, str]]] = {}
        has: dict[str, Owner] = {}
        head = 0
        for number in sorted(self._by_number):
            logged, taken = self._by_number[number]
            head += sum(len(output.batch) for output in logged)
            for command, acknowledged, placed in taken:
                owner = (command.client, command.epoch, command.cursor)
                if command.generation or has.get(command.name) == owner:
                    continue
                has[command.name] = owner
                if placed:
                    filters[command.name] = [(acknowledged, command.filter)]
                elif filters[command.name][-1][1] != command.filter:
                    filters[command.name].append((head, command.filter))
                found[owner] = Take(command.name, acknowledged, tuple(filters[command.name]), placed)
        return found


def traced(core: type[BrokerCore], truth: Truth) -> type[BrokerCore]:
    """A core that tells what it decides."""

    class Traced(core):  # type: ignore[valid-type,misc]
        def apply(self, number: int, wall: int, command: Command, known: Known | None = None) -> list[Output]:
            was_there = isinstance(command, commands.OpenCursor) and command.name in self.cursors.cursors
            outputs: list[Output] = super().apply(number, wall, command, known)
            truth.see(number, command, outputs, was_there)
            return outputs

    return Traced
