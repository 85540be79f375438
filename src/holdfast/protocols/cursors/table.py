"""All cursors of a broker, and the commands that concern them. Part of the core: deterministic, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import FilterError
from holdfast.kernel.node import require
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.cursors import messages
from holdfast.protocols.cursors.cursor import Cursor, CursorState
from holdfast.protocols.cursors.log_state import LogState
from holdfast.protocols.sessions.messages import Refusal
from holdfast.protocols.sessions.outputs import CursorFed, CursorLeft, CursorTaken, Output, Reply

if TYPE_CHECKING:
    from holdfast.model.event import Event, EventBytes
    from holdfast.protocols.sessions import commands

Owner = tuple[str, int, int]


class CursorTable:
    """Cursors by name, and by who has them."""

    def __init__(self, log: LogState, cursors_max: int) -> None:
        self.cursors: dict[str, Cursor] = {}
        self._log = log
        self._cursors_max = cursors_max
        self._owned: dict[Owner, Cursor] = {}
        self._index: FilterIndex[Cursor] = FilterIndex()

    # ----------------------------------------------------------------------------------------------------- commands
    def open(self, command: commands.OpenCursor, outputs: list[Output]) -> None:
        owner = (command.client, command.epoch, command.cursor)

        def refuse(reason: Refusal, problem: str, offset: int = 0, expected: str = "", tail: int = 0) -> None:
            refusal = messages.CursorRefused(command.cursor, reason, problem, offset, expected, tail)
            outputs.append(Reply(command.client, command.epoch, refusal))

        try:
            wanted = Filter(command.filter)
        except FilterError as error:
            refuse(Refusal.FILTER, error.problem, error.offset, error.expected)
            return
        held = self._owned.get(owner)
        if held is not None and held.name != command.name:
            refuse(Refusal.CONFLICT, f"cursor {command.cursor} is open already, under another name")
            return
        cursor = self.cursors.get(command.name)
        if cursor is not None and command.generation and cursor.generation != command.generation:
            refuse(Refusal.SUPERSEDED, f"another client has taken {command.name!r} over")
            return
        log = self._log
        moving = cursor is None or (command.move and not command.generation)
        if moving:
            place = {messages.NEW: log.head, messages.EARLIEST: log.tail - 1}.get(command.start, command.start - 1)
        else:
            place = 0 if cursor is None else cursor.acknowledged
        if place < log.tail - 1:
            problem = f"the log begins at position {log.tail}, behind {place + 1}"
            refuse(Refusal.POSITION_GONE, problem, tail=log.tail)
            return
        if place > log.head:
            problem = f"the log ends at position {log.head}, before {command.start}"
            refuse(Refusal.POSITION_AHEAD, problem)
            return
        if cursor is None:
            if len(self.cursors) >= self._cursors_max:
                refuse(Refusal.LIMIT, f"the broker has {self._cursors_max} named subscriptions, and takes no more")
                return
            cursor = self.cursors[command.name] = Cursor(command.name, wanted, place)
            self._index.add(cursor, wanted)
        elif moving:
            cursor.move(place)
        if str(cursor.filter) != command.filter and not self._change_filter(cursor, wanted):
            refuse(Refusal.LIMIT, "the filter was changed too often since the last acknowledgement")
            return
        self._take(cursor, owner, command, outputs)

    def _change_filter(self, cursor: Cursor, wanted: Filter) -> bool:
        if not cursor.change_filter(wanted, self._log.head):
            return False
        self._index.remove(cursor)
        self._index.add(cursor, wanted)
        return True

    def _take(self, cursor: Cursor, owner: Owner, command: commands.OpenCursor, outputs: list[Output]) -> None:
        """Gives the cursor to a client; who had it before is told, unless it is the same."""
        same_life = bool(command.generation)
        if not same_life and cursor.owner != owner:
            self._release(cursor, outputs, "another client has opened the named subscription")
            # Who had it may have been sent anything that was there; the node says if it knows better.
            sent = command.sent if command.sent >= 0 else self._log.head
            cursor.take_over(owner, sent if cursor.generation else 0)
        elif cursor.owner != owner:
            self._release(cursor, outputs, "the client has opened it again")
            cursor.owner = owner
        self._owned[owner] = cursor
        after = max(cursor.acknowledged, min(command.received, self._log.head)) if same_life else cursor.acknowledged
        answer = messages.CursorOpened(command.cursor, cursor.generation, cursor.acknowledged, after)
        outputs.append(Reply(command.client, command.epoch, answer))
        outputs.append(CursorTaken(cursor, command.window, after))

    def _release(self, cursor: Cursor, outputs: list[Output], problem: str) -> None:
        owner, cursor.owner = cursor.owner, None
        if owner is not None and self._owned.get(owner) is cursor:
            del self._owned[owner]
            ended = messages.CursorEnded(owner[2], Refusal.SUPERSEDED, problem)
            outputs.append(CursorLeft(owner))
            outputs.append(Reply(owner[0], owner[1], ended))

    def close(self, command: commands.CloseCursor, outputs: list[Output]) -> None:
        owner = (command.client, command.epoch, command.cursor)
        cursor = self._owned.pop(owner, None)
        if cursor is not None:
            cursor.owner = None
            outputs.append(CursorLeft(owner))
        outputs.append(Reply(command.client, command.epoch, messages.CursorClosed(command.cursor)))

    def leave(self, client: str, epoch: int, outputs: list[Output]) -> None:
        """The session is over, or its client stayed away for too long: it has no cursors any more."""
        for owner in [owner for owner in self._owned if owner[0] == client and owner[1] == epoch]:
            self._owned.pop(owner).owner = None
            outputs.append(CursorLeft(owner))

    def acknowledge(self, command: commands.AcknowledgeCursor, outputs: list[Output]) -> None:
        cursor = self._owned.get((command.client, command.epoch, command.cursor))
        if cursor is not None:
            cursor.acknowledge(min(command.position, self._log.head))
            answer = messages.Acknowledged(command.cursor, cursor.acknowledged)
            outputs.append(Reply(command.client, command.epoch, answer))

    def forget(self, command: commands.ForgetName, outputs: list[Output]) -> None:
        cursor = self.cursors.pop(command.name, None)
        if cursor is not None:
            self._release(cursor, outputs, "the named subscription was given up")
            self._index.remove(cursor)
        answer = messages.NameForgotten(command.request, cursor is not None)
        outputs.append(Reply(command.client, command.epoch, answer))

    # ------------------------------------------------------------------------------------------------------- events
    def feed(self, first: int, events: list[Event], slices: list[EventBytes], outputs: list[Output]) -> None:
        """Events were accepted, from position `first` on. Only cursors that someone has are told: others will read."""
        if not self._owned:
            return
        fed: dict[Cursor, CursorFed] = {}
        matched = self._index.match_batch([(event.attributes, event.topic) for event in events])
        for place, wanted in enumerate(matched):
            for cursor in wanted:
                if cursor.owner is not None:
                    if cursor not in fed:
                        fed[cursor] = CursorFed(cursor, [], [])
                    fed[cursor].positions.append(first + place)
                    fed[cursor].events.append(slices[place])
        outputs += fed.values()

    def floor(self) -> int:
        """The first position that some cursor still needs; the log's end if none needs any."""
        return min((cursor.acknowledged + 1 for cursor in self.cursors.values()), default=self._log.head + 1)

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> list[CursorState]:
        return [cursor.get_state() for cursor in self.cursors.values()]

    def set_state(self, states: list[CursorState]) -> None:
        for state in states:
            cursor = self.cursors[state.name] = Cursor.from_state(state)
            self._index.add(cursor, cursor.filter)
            if cursor.owner is not None:
                self._owned[cursor.owner] = cursor

    def check_invariants(self) -> None:
        for name, cursor in self.cursors.items():
            require(cursor.name == name, "a cursor is found under its name", name=name)
            cursor.check_invariants(self._log.head)
            held = cursor.owner is not None and self._owned.get(cursor.owner) is cursor
            require(held == (cursor.owner is not None), "who has a cursor is listed", name=name)
        require(len(self._index) == len(self.cursors), "the index holds all cursors")
