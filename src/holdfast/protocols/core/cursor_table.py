"""All cursors of a broker, and the commands that concern them. Part of the core: deterministic, without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import FilterError
from holdfast.kernel.node import require
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.core.cursor import Cursor, CursorState
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.core.outputs import CursorFed, CursorLeft, CursorTaken, NameRemoval, Output, Reply
from holdfast.protocols.cursors import messages
from holdfast.protocols.sessions.messages import Refusal

if TYPE_CHECKING:
    from holdfast.model.batch import EventBatch
    from holdfast.protocols.core import commands
    from holdfast.protocols.core.backlog import Run
    from holdfast.protocols.core.interests import Interests

Owner = tuple[str, int, int]
ENDED_MAX = 1_000  # cursors of one session that others took, and of which its client has not said that it knows


class CursorTable:
    """Cursors by name, and by who has them."""

    def __init__(self, log: LogState, cursors_max: int, interests: Interests) -> None:
        """`interests`: other brokers of a network have to know of names."""
        self.cursors: dict[str, Cursor] = {}
        self._log = log
        self._cursors_max = cursors_max
        self.owned: dict[Owner, Cursor] = {}  # those that someone has, who hears of events as they are accepted
        self.generations = 0  # how often any cursor was taken
        # Who lost a cursor and has not said that it knows: (client, epoch) → the client's number for it → why.
        self.ended: dict[tuple[str, int], dict[int, str]] = {}
        self._index: FilterIndex[Cursor] = FilterIndex()
        self._interests = interests

    # ----------------------------------------------------------------------------------------------------- commands
    def open(self, command: commands.OpenCursor, wall: int, outputs: list[Output]) -> None:
        owner = (command.client, command.epoch, command.cursor)

        def refuse(reason: Refusal, problem: str, offset: int = 0, expected: str = "", tail: int = 0) -> None:
            refusal = messages.CursorRefused(command.cursor, reason, problem, offset, expected, tail)
            outputs.append(Reply(command.client, command.epoch, refusal))

        ended = self.ended.get(owner[:2], {})
        if command.cursor in ended:
            self._say_ended(owner, outputs)
            return
        if len(ended) >= ENDED_MAX:
            refuse(Refusal.LIMIT, f"the client has not said of {ENDED_MAX} named subscriptions that it lost them")
            return
        try:
            wanted = Filter(command.filter)
        except FilterError as error:
            refuse(Refusal.FILTER, error.problem, error.offset, error.expected)
            return
        held = self.owned.get(owner)
        if held is not None and held.name != command.name:
            refuse(Refusal.CONFLICT, f"cursor {command.cursor} is open already, under another name")
            return
        cursor = self.cursors.get(command.name)
        if cursor is not None and command.generation and cursor.generation != command.generation:
            refuse(Refusal.SUPERSEDED, f"another client has taken {command.name!r} over")
            return
        if cursor is None and command.generation:
            # Made anew it would begin somewhere else, and what lies between be missed in silence.
            refuse(Refusal.SUPERSEDED, f"the named subscription {command.name!r} was given up")
            return
        log = self._log
        # Who asks again, since no answer came yet, has it where it is.
        moving = cursor is None or (command.move and not command.generation and held is None)
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
            cursor = self.cursors[command.name] = Cursor(command.name, wanted, place, wall)
            self._index.add(cursor, wanted)
            self._tell(cursor)
        elif moving:
            self._index.remove(cursor)
            self._index.add(cursor, wanted)
            cursor.move(place, wanted)
            self._tell(cursor)
        if str(cursor.filter) != command.filter and not self._change_filter(cursor, wanted):
            refuse(Refusal.LIMIT, "the filter was changed too often since the last acknowledgement")
            return
        self._take(cursor, owner, command, wall, outputs)

    def _change_filter(self, cursor: Cursor, wanted: Filter) -> bool:
        if not cursor.change_filter(wanted, self._log.head):
            return False
        self._index.remove(cursor)
        self._index.add(cursor, wanted)
        self._tell(cursor)
        return True

    def _tell(self, cursor: Cursor) -> None:
        self._interests.named(cursor.name, cursor.filter)

    def _take(
        self, cursor: Cursor, owner: Owner, command: commands.OpenCursor, wall: int, outputs: list[Output]
    ) -> None:
        """Gives the cursor to a client; who had it before is told, unless it is the same."""
        same_life = bool(command.generation)
        if not same_life and cursor.owner != owner:
            self._release(cursor, outputs, "another client has opened the named subscription")
            # Who had it may have been sent anything that was there; the node says if it knows better.
            sent = command.sent if command.sent >= 0 else self._log.head
            self.generations += 1
            cursor.take_over(owner, self.generations, sent)
        elif cursor.owner != owner:
            self._release(cursor, outputs, "the client has opened it again")
            cursor.give(owner)
        self.owned[owner] = cursor
        cursor.use(wall)
        after = max(cursor.acknowledged, min(command.received, self._log.head)) if same_life else cursor.acknowledged
        answer = messages.CursorOpened(command.cursor, cursor.generation, cursor.acknowledged, after)
        outputs.append(Reply(command.client, command.epoch, answer))
        unconsumed = command.unconsumed if same_life else 0
        outputs.append(CursorTaken(cursor, command.window, after, max(0, min(unconsumed, command.window))))

    def _release(self, cursor: Cursor, outputs: list[Output], problem: str) -> None:
        owner = cursor.leave()
        if owner is not None and self.owned.get(owner) is cursor:
            del self.owned[owner]
            outputs.append(CursorLeft(owner))
            self.ended.setdefault(owner[:2], {})[owner[2]] = problem
            self._say_ended(owner, outputs)

    def _say_ended(self, owner: Owner, outputs: list[Output]) -> None:
        problem = self.ended[owner[:2]][owner[2]]
        outputs.append(Reply(owner[0], owner[1], messages.CursorEnded(owner[2], Refusal.SUPERSEDED, problem)))

    def close(self, command: commands.CloseCursor, wall: int, outputs: list[Output]) -> None:
        owner = (command.client, command.epoch, command.cursor)
        cursor = self.owned.pop(owner, None)
        if cursor is not None:
            cursor.leave()
            cursor.use(wall)
            outputs.append(CursorLeft(owner))
        ended = self.ended.get(owner[:2], {})
        if ended.pop(command.cursor, None) is not None and not ended:
            del self.ended[owner[:2]]
        outputs.append(Reply(command.client, command.epoch, messages.CursorClosed(command.cursor)))

    def leave(self, client: str, epoch: int, wall: int, outputs: list[Output]) -> None:
        """The session is over, or its client stayed away for too long: it has no cursors any more."""
        for owner in [owner for owner in self.owned if owner[0] == client and owner[1] == epoch]:
            cursor = self.owned.pop(owner)
            cursor.leave()
            cursor.use(wall)
            outputs.append(CursorLeft(owner))
        self.ended.pop((client, epoch), None)

    def acknowledge(self, command: commands.AcknowledgeCursor, wall: int, outputs: list[Output]) -> None:
        owner = (command.client, command.epoch, command.cursor)
        cursor = self.owned.get(owner)
        if command.cursor in self.ended.get(owner[:2], {}):
            self._say_ended(owner, outputs)
        elif cursor is not None:
            cursor.acknowledge(min(command.position, self._log.head))
            cursor.use(wall)
            answer = messages.Acknowledged(command.cursor, cursor.acknowledged)
            outputs.append(Reply(command.client, command.epoch, answer))

    def forget(self, command: commands.ForgetName, outputs: list[Output]) -> None:
        cursor = self.cursors.get(command.name)
        if cursor is not None:
            self._give_up(cursor, outputs, "the named subscription was given up")
        answer = messages.NameForgotten(command.request, cursor is not None)
        outputs.append(Reply(command.client, command.epoch, answer))

    def remove(self, command: commands.RemoveName, outputs: list[Output]) -> None:
        """An operator gives a name up; one that someone has only by force."""
        cursor = self.cursors.get(command.name)
        if cursor is None:
            removal = NameRemoval(command.operator, command.request, command.name, False)
        else:
            owner = "" if cursor.owner is None else cursor.owner[0]
            removed, behind = command.force or not owner, self._log.head - cursor.acknowledged
            removal = NameRemoval(command.operator, command.request, command.name, removed, owner, behind)
            if removed:
                self._give_up(cursor, outputs, "an operator has forgotten the named subscription")
        outputs.append(removal)

    def _give_up(self, cursor: Cursor, outputs: list[Output], problem: str) -> None:
        del self.cursors[cursor.name]
        self._release(cursor, outputs, problem)
        self._index.remove(cursor)
        self._interests.unnamed(cursor.name)

    # ------------------------------------------------------------------------------------------------------- events
    def match(self, batch: EventBatch) -> dict[Cursor, Sequence[int]]:
        """Which cursors want which of some sound events, by row, whether someone has them or not."""
        return self._index.match_encoded(batch)

    def feed(self, run: Run, matched: Mapping[Cursor, Sequence[int]], outputs: list[Output]) -> None:
        """Events were accepted. Only cursors that someone has are told: others will read."""
        for cursor, rows in matched.items():
            if cursor.owner is not None:
                outputs.append(CursorFed(cursor, run.take(rows)))

    def floor(self) -> int:
        """The first position that some cursor still needs; the log's end if none needs any."""
        holder = self.holder()
        return self._log.head + 1 if holder is None else max(holder.acknowledged + 1, self._log.tail)

    def holder(self) -> Cursor | None:
        """The cursor that needs the oldest event; of several, the first by name.

        One that has lost something needs nothing any more: whoever opens it is refused. Who has it reads on.
        """
        tail = self._log.tail
        needy = (c for c in self.cursors.values() if c.acknowledged + 1 >= tail or c.owner is not None)
        return min(needy, key=lambda cursor: (cursor.acknowledged, cursor.name), default=None)

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> list[CursorState]:
        return [cursor.get_state() for cursor in self.cursors.values()]

    def ended_state(self) -> dict[str, list[tuple[int, int, str]]]:
        state: dict[str, list[tuple[int, int, str]]] = {}
        for (client, epoch), numbers in self.ended.items():
            state.setdefault(client, []).extend((epoch, number, problem) for number, problem in numbers.items())
        return state

    def set_state(
        self,
        log: LogState,
        states: list[CursorState],
        generations: int,
        ended: dict[str, list[tuple[int, int, str]]],
    ) -> None:
        self._log, self.generations = log, generations
        self.cursors, self.owned, self.ended, self._index = {}, {}, {}, FilterIndex()
        for client, numbers in ended.items():
            for epoch, number, problem in numbers:
                self.ended.setdefault((client, epoch), {})[number] = problem
        for state in states:
            cursor = self.cursors[state.name] = Cursor.from_state(state)
            self._index.add(cursor, cursor.filter)
            self._tell(cursor)
            if cursor.owner is not None:
                self.owned[cursor.owner] = cursor

    def check_invariants(self) -> None:
        for name, cursor in self.cursors.items():
            require(cursor.name == name, "a cursor is found under its name", name=name)
            cursor.check_invariants(self._log.head)
            require(cursor.generation <= self.generations, "generations are counted", name=name)
            held = cursor.owner is not None and self.owned.get(cursor.owner) is cursor
            require(held == (cursor.owner is not None), "who has a cursor is listed", name=name)
        listed = {(*session, number) for session, numbers in self.ended.items() for number in numbers}
        require(not listed & self.owned.keys(), "who lost a cursor does not have it")
        require(all(self.ended.values()), "no losses are none")
        require(len(self._index) == len(self.cursors), "the index holds all cursors")
