"""What operators are told of named subscriptions, and giving one up for them: a part of a broker's node.

A name that nobody reads any more keeps everything that was accepted since. Removing one is a command like any other: in
a group all replicas carry it out at the same place of the log.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from holdfast.kernel.inputs import LinkDown
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.core.outputs import NameRemoval
from holdfast.protocols.desks.log_desk import NO_LOG, NO_NAME, is_name
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.operating.desk import OPERATORS
from holdfast.protocols.operating.messages import ListNames, NameRemoved, NameReport, NamesListed, RemoveName

NAMES_LISTED_MAX: Final = 500  # names in one answer; whoever wants more asks again
NAMES_SHOWN_MAX: Final = 100  # names that come with what else a broker says of itself
NAMES_MEASURED_MAX: Final = 100  # names that have measures of their own; the others are summed
FILTER_MAX: Final = 100  # characters of a filter that operators are told
OTHERS: Final = ""  # the label of what is summed: no name is empty
_CLIENT: Final = f"{Role.CLIENT.value}:"


class NamesDesk(Part):
    """It answers operators: what came of a removal, when it was carried out."""

    name: ClassVar[str] = "names"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys((ListNames, RemoveName), OPERATORS)
    notices: ClassVar[tuple[type[Notice], ...]] = (CommandsApplied,)

    def __init__(self, broker: str, core: BrokerCore, sequencer: Sequencer, sessions: SessionDesk) -> None:
        self._broker = broker
        self._core = core
        self._sequencer = sequencer
        self._sessions = sessions
        self._asked: set[tuple[str, int]] = set()  # removals that are not carried out yet: operator, request
        self._answers: list[tuple[str, NameRemoved]] = []

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        self._asked = {asked for asked in self._asked if asked[0] != down.peer}
        self._answers = [(operator, answer) for operator, answer in self._answers if operator != down.peer]

    # ------------------------------------------------------------------------------------------------------ looking
    def on_list_names(self, peer: str, message: ListNames, out: Outbox) -> None:
        log, cursors = self._core.log, self._core.cursors.cursors
        if log is None:
            answer = NamesListed(message.request, self._broker, (), 0, False, NO_LOG)
        else:
            count = max(1, min(message.count, NAMES_LISTED_MAX))
            names = heapq.nsmallest(count + 1, (name for name in cursors if name > message.after))
            reports = self._reports(log, (cursors[name] for name in names[:count]), out.wall)
            answer = NamesListed(message.request, self._broker, reports, len(cursors), len(names) > count)
        out.send(peer, answer, after=NOW)

    def furthest_behind(self, count: int, out: Outbox) -> tuple[NameReport, ...]:
        """So many names, those first that hold the oldest events."""
        log = self._core.log
        if log is None or not count:
            return ()
        return self._reports(log, self._slowest(min(count, NAMES_SHOWN_MAX)), out.wall)

    def _slowest(self, count: int) -> list[Cursor]:
        cursors = self._core.cursors.cursors.values()
        return heapq.nsmallest(count, cursors, key=lambda cursor: (cursor.acknowledged, cursor.name))

    def _reports(self, log: LogState, cursors: Iterable[Cursor], wall: int) -> tuple[NameReport, ...]:
        return tuple(
            NameReport(
                cursor.name,
                "" if cursor.owner is None else cursor.owner[0].removeprefix(_CLIENT),
                cursor.owner is not None and self._sessions.session(cursor.owner[0]) is not None,
                cursor.acknowledged,
                log.head - cursor.acknowledged,
                log.bytes_behind(cursor.acknowledged),
                max(0, log.tail - 1 - cursor.acknowledged),
                max(0, wall - cursor.made_at) if cursor.made_at else -1,
                max(0, wall - cursor.used_at) if cursor.used_at else -1,
                str(cursor.filter)[:FILTER_MAX],
            )
            for cursor in cursors
        )

    def facts(self) -> dict[str, str]:
        """Which name holds the oldest events, if any are held."""
        log, holder = self._core.log, self._core.cursors.holder()
        return {} if log is None or holder is None or holder.acknowledged >= log.head else {"log_held_by": holder.name}

    def measure(self) -> dict[str, int]:
        if self._core.log is None:
            return {}
        return {"named_others": max(0, len(self._core.cursors.cursors) - NAMES_MEASURED_MAX)}

    def measure_each(self) -> dict[str, dict[str, int]]:
        """By name, for as many as have measures of their own: those that are furthest behind."""
        log, cursors = self._core.log, self._core.cursors.cursors
        if log is None:
            return {}
        shown = self._slowest(NAMES_MEASURED_MAX)
        events = {cursor.name: log.head - cursor.acknowledged for cursor in shown}
        if len(cursors) > len(shown):
            total = log.head * len(cursors) - sum(cursor.acknowledged for cursor in cursors.values())
            events[OTHERS] = total - sum(events.values())
        # Bytes are not summed: two names that are as far behind hold the same ones.
        return {
            "named_behind_events": events,
            "named_behind_bytes": {cursor.name: log.bytes_behind(cursor.acknowledged) for cursor in shown},
        }

    # ----------------------------------------------------------------------------------------------------- removing
    def on_remove_name(self, peer: str, message: RemoveName, out: Outbox) -> None:
        if self._core.log is None:
            problem = NO_LOG
        elif not is_name(message.name):
            problem = NO_NAME
        elif not self._sequencer.is_serving:
            problem = "this replica does not lead its group: the one that does forgets names for all"
        else:
            self._asked.add((peer, message.request))
            command = commands.RemoveName("", peer, message.request, message.name, message.force)
            self._sequencer.submit(command, out)
            return
        self._answers.append((peer, NameRemoved(message.request, False, problem=problem)))
        self.due = True

    def on_commands_applied(self, applied: CommandsApplied, out: Outbox) -> None:
        for output in applied.outputs if self._asked else ():
            if isinstance(output, NameRemoval):
                self._answer(output)

    def _answer(self, removal: NameRemoval) -> None:
        """It was carried out, here as at all replicas; the one that was asked answers."""
        asked = (removal.operator, removal.request)
        if asked in self._asked:
            self._asked.discard(asked)
            owner = removal.owner.removeprefix(_CLIENT)
            answer = NameRemoved(removal.request, removal.removed, owner, removal.behind)
            self._answers.append((removal.operator, answer))
            self.due = True

    def finish(self, out: Outbox) -> None:
        """Behind the journal, which has the removal when this is said."""
        self.due = False
        answers, self._answers = self._answers, []
        for operator, answer in answers:
            out.send(operator, answer)
