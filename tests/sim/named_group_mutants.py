"""Mistakes with named subscriptions, positions and stages that only a group can make, one each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.kernel.outbox import Outbox
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.kernel.storage import EVENTS
from holdfast.model.batch import EventBatch
from holdfast.model.event import NO_EVENTS
from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.outputs import CursorTaken, Output
from holdfast.protocols.core.staging import Staging
from holdfast.protocols.cursors.messages import Acknowledge, Acknowledged, AskLog, OpenCursor
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.log_desk import LogDesk
from holdfast.protocols.desks.refill import Refill
from holdfast.protocols.desks.sequencer import Sequencer
from tests.sim.group_mutants import Snapshots
from tests.sim.named_group_world import GroupParts, problem

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class NamedGroupMutant:
    mistake: str
    patch: Patch = lambda monkeypatch: None
    parts: GroupParts = field(default_factory=GroupParts)
    swarm: ClassVar[str] = "names in groups"

    def seen(self, seed: int) -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.patch(monkeypatch)
            return problem(seed, self.parts)

    def sound(self, seed: int) -> str:
        return problem(seed)


# -------------------------------------------------------------------------------------------------------------- cores
class ForgetsCursors(Snapshots):
    def lose(self, state: Any) -> Any:
        return msgspec.structs.replace(state, cursors=[])


class ForgetsStages(Snapshots):
    def lose(self, state: Any) -> Any:
        return msgspec.structs.replace(state, staging=None)


class ForgetsMarks(Snapshots):
    """Snapshots lack what decides from where on the log is kept."""

    def lose(self, state: Any) -> Any:
        state.log.marks = []
        return state


class ForgetsWhoLostACursor(Snapshots):
    def lose(self, state: Any) -> Any:
        return msgspec.structs.replace(state, cursors_ended={})


# --------------------------------------------------------------------------------------------------------------- parts
class RefillsWithNothing(EventLog):
    def fill(self, first: int, wall: int, batch: EventBatch, out: Outbox) -> None:
        count = first + len(batch) - 1 - self.head
        if count > 0:
            token = out.append(EVENTS, LoggedEvents(self.head + 1, wall, NO_EVENTS), count)
            self.head += count
            self.under_way.append((token, self.head))


class NeverRefills(Refill):
    def fetch(self, out: Outbox) -> None:
        pass


class DropsWhatWaitsBehindAHole(EventLog):
    """And takes the hole for closed when it has got to where the events were when it began."""

    def close_hole(self, wanted: int, out: Outbox) -> None:
        if self._later and self._later[0].first <= self.head + 1:
            self.head = max(self.head, wanted)
            self._later.clear()
        self.has_hole = self.head < wanted


class TellsItsOwnEnd(LogDesk):
    def on_ask_log(self, peer: str, message: AskLog, out: Outbox) -> None:
        self._ask(peer, message, out)


class ConfirmsProposals(LogDesk):
    def on_acknowledge(self, peer: str, message: Acknowledge, out: Outbox) -> None:
        super().on_acknowledge(peer, message, out)
        if self._session(peer) is not None:
            out.send(peer, Acknowledged(message.cursor, message.position))


class AcknowledgesByItself(LogDesk):
    """Acknowledgements are applied by the leader, and not by the group."""

    def on_acknowledge(self, peer: str, message: Acknowledge, out: Outbox) -> None:
        session = self._session(peer)
        if session is not None:
            outputs: list[Any] = []
            command = commands.AcknowledgeCursor(peer, session.epoch, message.cursor, message.position)
            self._core.cursors.acknowledge(command, out.wall, outputs)
            self._sessions.on_commands_applied(CommandsApplied(outputs), out)


class _AtOnce:
    """A group's sequencer that is taken for one that applies commands at once."""

    is_serving = applies_at_once = applied_is_safe = shares_log = True
    takes_direct = False
    leader_addresses: tuple[str, ...] = ()
    direct_addresses: tuple[str, ...] = ()

    def __init__(self, sequencer: Sequencer) -> None:
        self.submit = self.submit_direct = sequencer.submit


class CountsWhatWasSentWhenItWasAsked(LogDesk):
    def on_open_cursor(self, peer: str, message: OpenCursor, out: Outbox) -> None:
        sequencer, self._sequencer = self._sequencer, _AtOnce(self._sequencer)
        super().on_open_cursor(peer, message, out)
        self._sequencer = sequencer


class DeliversWithoutItsClient(CountsWhatWasSentWhenItWasAsked):
    """Every replica begins to deliver to whoever has a cursor, and one that leads later takes it for delivered."""

    def _take(self, output: Output, out: Outbox) -> None:
        if isinstance(output, CursorTaken):
            self._deliveries.take(output, out)
            self._tick(out)
        else:
            super()._take(output, out)


class GivesUpByItsOwnClock(LogDesk):
    """Each replica gives up the events that it does not need, when it looks."""

    def _retain(self, out: Outbox) -> None:
        log = self._core.log
        assert log is not None
        log.keep_from(min(log.expendable(self._retention.bytes, -1), self._core.cursors.floor()))


# ------------------------------------------------------------------------------------------------------------- patches
def forgets_what_it_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def commit(self: Staging, query: str, epoch: int, first: int, last: int, wall: int, queries_max: int) -> None:
        pass

    monkeypatch.setattr(Staging, "commit", commit)


MUTANTS = [
    NamedGroupMutant("snapshots lack cursors", parts=GroupParts(core=ForgetsCursors)),
    NamedGroupMutant("snapshots lack stages", parts=GroupParts(core=ForgetsStages)),
    NamedGroupMutant("snapshots lack the log's marks", parts=GroupParts(core=ForgetsMarks)),
    NamedGroupMutant("snapshots lack who lost a cursor", parts=GroupParts(core=ForgetsWhoLostACursor)),
    NamedGroupMutant("fills a hole with nothing", parts=GroupParts(events=RefillsWithNothing)),
    NamedGroupMutant("never asks for the events that it lacks", parts=GroupParts(refill=NeverRefills)),
    NamedGroupMutant("drops what waits behind a hole", parts=GroupParts(events=DropsWhatWaitsBehindAHole)),
    NamedGroupMutant("tells the end of the log as it knows it", parts=GroupParts(log=TellsItsOwnEnd)),
    NamedGroupMutant("confirms an acknowledgement that is only proposed", parts=GroupParts(log=ConfirmsProposals)),
    NamedGroupMutant("acknowledges at the leader alone", parts=GroupParts(log=AcknowledgesByItself)),
    NamedGroupMutant("takes what was sent since for unsent", parts=GroupParts(log=CountsWhatWasSentWhenItWasAsked)),
    NamedGroupMutant("delivers where its client is not", parts=GroupParts(log=DeliversWithoutItsClient)),
    NamedGroupMutant("gives events up by itself", parts=GroupParts(log=GivesUpByItsOwnClock)),
    NamedGroupMutant("publishes an epoch twice", forgets_what_it_committed),
]
