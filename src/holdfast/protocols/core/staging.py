"""Events that are staged: invisible until they are committed, then published all at once, and once only.

For sinks that deliver exactly once: tasks stage what they have, under a stage id of their own, and whoever coordinates
them commits the stages of an epoch. A commit that is repeated is answered as done; for each query the last committed
epoch is remembered, and earlier ones count as done too. What is never committed expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.model.event import EventBytes
from holdfast.protocols.cursors.messages import LogRefused, Staged, StagesCommitted
from holdfast.protocols.sessions.messages import Refusal

if TYPE_CHECKING:
    from holdfast.protocols.core import commands


class Stage(msgspec.Struct, array_like=True):
    """One stage. `parts` are batches that were checked when they came."""

    query: str
    epoch: int
    task: int
    wall: int  # when it last grew
    count: int = 0
    bytes: int = 0
    parts: list[msgspec.Raw] = []

    def grow(self, events: EventBytes, count: int, wall: int) -> None:
        self.parts.append(events.copy())
        self.count += count
        self.bytes += len(events)
        self.wall = wall


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    epoch: int
    first: int
    last: int
    wall: int


class Staging(msgspec.Struct, array_like=True):
    """Mutable; part of the core's state as it is."""

    stages: dict[str, Stage] = {}
    committed: dict[str, Commit] = {}  # query → its last
    bytes: int = 0

    def stage(self, command: commands.StageEvents, count: int, wall: int, bytes_max: int) -> Message:
        """Adds a part of a stage, whose events are sound; one that was there before changes nothing. The answer."""
        request, id = command.request, command.stage
        last = self.committed.get(command.query)
        if last is not None and command.query_epoch <= last.epoch:
            problem = f"epoch {last.epoch} of {command.query!r} is committed already"
            return LogRefused(request, Refusal.CONFLICT, problem)
        stage = self.stages.get(id)
        if stage is None:
            stage = Stage(command.query, command.query_epoch, command.task, wall)
        if (stage.query, stage.epoch, stage.task) != (command.query, command.query_epoch, command.task):
            return LogRefused(request, Refusal.CONFLICT, f"stage {id!r} is for something else")
        if command.part <= len(stage.parts):
            return Staged(request, stage.count)
        if command.part != len(stage.parts) + 1:
            problem = f"stage {id!r} is not known any more, or a part before part {command.part} is missing"
            return LogRefused(request, Refusal.UNKNOWN, problem)
        if self.bytes + len(command.events) > bytes_max:
            return LogRefused(request, Refusal.LIMIT, f"more than staged_bytes, {bytes_max}, would be staged")
        self.stages[id] = stage
        stage.grow(command.events, count, wall)
        self.bytes += len(command.events)
        return Staged(request, stage.count)

    def answer_commit(self, command: commands.CommitStages) -> Message | None:
        """What there is to say if nothing is to be done: it is done already, or can't be."""
        last = self.committed.get(command.query)
        if last is not None and command.query_epoch <= last.epoch:
            known = (last.first, last.last) if last.epoch == command.query_epoch else (0, 0)
            return StagesCommitted(command.request, *known, already=True)
        for id in command.stages:
            stage = self.stages.get(id)
            if stage is None or (stage.query, stage.epoch) != (command.query, command.query_epoch):
                problem = f"stage {id!r} of epoch {command.query_epoch} of {command.query!r} is not known any more"
                return LogRefused(command.request, Refusal.UNKNOWN, problem)
        return None

    def take_parts(self, ids: tuple[str, ...]) -> list[EventBytes]:
        """The batches of some stages, in order; a stage that is named twice counts once."""
        return [part for id in dict.fromkeys(ids) for part in self._take(id).parts]

    def _take(self, id: str) -> Stage:
        stage = self.stages.pop(id)
        self.bytes -= stage.bytes
        return stage

    def commit(self, query: str, epoch: int, first: int, last: int, wall: int, queries_max: int) -> None:
        """The epoch is done; what was staged for it or an earlier one of the query is not needed any more."""
        if query not in self.committed and len(self.committed) >= queries_max:
            del self.committed[min(self.committed, key=lambda other: self.committed[other].wall)]
        self.committed[query] = Commit(epoch, first, last, wall)
        for id in [id for id, stage in self.stages.items() if stage.query == query and stage.epoch <= epoch]:
            self._take(id)

    def expire(self, before: int) -> None:
        """Forgets stages that did not grow since then."""
        for id in [id for id, stage in self.stages.items() if stage.wall < before]:
            self._take(id)

    def oldest(self) -> int | None:
        return min((stage.wall for stage in self.stages.values()), default=None)

    def check_invariants(self) -> None:
        total = sum(stage.bytes for stage in self.stages.values())
        require(total == self.bytes, "staged bytes are counted", bytes=self.bytes)
        for id, stage in self.stages.items():
            last = self.committed.get(stage.query)
            require(last is None or stage.epoch > last.epoch, "what is committed is not staged any more", stage=id)
