"""A broker as its overlay sees it: what it wants, and where to hand in what comes from other brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kernel.outbox import Outbox
from holdfast.model.batch import EventBatch
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.judgement import sound_rows
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.sequencer import Sequencer


class Arrived(NamedTuple):
    """What may go on of events that arrived, and how many of them came after their deadline."""

    sound: EventBatch
    late: int


class Home:
    """Of one overlay."""

    def __init__(self, core: BrokerCore, sequencer: Sequencer) -> None:
        self._core = core
        self._sequencer = sequencer

    @property
    def interests(self) -> Interests:
        """What clients want and advertise here."""
        return self._core.interests

    def is_known(self, client: str) -> bool:
        return client in self._core.sessions

    def session(self, client: str, epoch: int) -> Session | None:
        """The client's session, if it is still this one."""
        return self._core.register.session(client, epoch)

    def arrive(self, source: str, feed: str, first: int, batch: EventBatch, out: Outbox) -> Arrived:
        """Takes events in that came from another broker, the `source`: those that someone wants here go to the core.
        Those with a `feed` have numbers of it, from `first` on, and count once (D1-B4)."""
        rows = sound_rows(batch, batch.doubtful)
        sound = batch.take(rows)
        wanted = self._core.wanted_of(sound)
        if wanted.batch:
            # Also those that are late: they are counted where they were wanted.
            numbers = _numbers(first, rows, wanted.rows) if first and feed else ()
            command = commands.Arrive("", source, feed, numbers, wanted.batch.encoded)
            self._sequencer.submit(command, out, wanted)
        if not 0 < sound.soonest <= out.wall:
            return Arrived(sound, 0)
        deadlines = sound.deadlines or ()
        timely = sound.take([row for row, deadline in enumerate(deadlines) if not 0 < deadline <= out.wall])
        return Arrived(timely, len(sound) - len(timely))


def _numbers(first: int, rows: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """Of those wanted among the rows, as the command has them: of the first alone, if they follow without a gap."""
    low, high = rows[wanted[0]], rows[wanted[-1]]
    return (first + low,) if high - low == len(wanted) - 1 else tuple([first + rows[row] for row in wanted])
