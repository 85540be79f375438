"""A replica's own snapshots: the last one, and when the next is due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.kernel.messages import Record
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.messages import ReplicaState
from holdfast.schemes.paxos.settings import PaxosSettings
from holdfast.schemes.paxos.transfer import make_state

STREAM: Final = "state"


class Snapshots:
    """The last one, `latest`, on the disk or on its way there; `at` is the slot of the last that was taken, or is being
    decided on; `is_due`: there should be one after what is executed now."""

    def __init__(self, settings: PaxosSettings) -> None:
        self.latest: ReplicaState | None = None
        self.at = 0
        self.is_due = False
        self._settings = settings
        self._bytes_since = 0  # of what was executed since then

    def recover(self, records: Iterable[Record]) -> None:
        for record in records:
            if not isinstance(record, ReplicaState):
                broken("a replica keeps states", record=type(record).__name__)
            same = make_state(
                record.slot,
                record.commands,
                record.state,
                record.membership,
                record.wall,
                record.origins,
                record.trimmed,
            )
            require(same.digest == record.digest, "a snapshot is what it was", slot=record.slot)
            self._take(record)

    def keep(self, state: ReplicaState, out: Outbox) -> None:
        """Takes the place of the one before: one of our own, or another replica's."""
        self._take(state)
        out.snapshot(STREAM, state)

    def _take(self, state: ReplicaState) -> None:
        self.latest, self.at, self._bytes_since = state, state.slot, 0
        self._look(state.slot)

    def proposed(self, slot: int) -> None:
        """One after this slot is being decided on."""
        self.at = slot
        self._look(slot)

    def executed(self, slot: int, size: int) -> None:
        """The value of the slot has this size, and was executed."""
        self._bytes_since += size
        self._look(slot)

    def _look(self, slot: int) -> None:
        """A large state is written again only when as much was decided."""
        settings = self._settings
        written = 0 if self.latest is None else len(self.latest.state)
        due = slot - self.at >= settings.trim_every or self._bytes_since >= settings.trim_bytes
        self.is_due = due and self._bytes_since >= settings.trim_ratio * written
