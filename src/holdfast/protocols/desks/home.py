"""A broker as its overlay sees it: what it wants, and where to hand in what comes from other brokers."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.kernel.outbox import Outbox
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.judgement import judge
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

    def decode(self, events: EventBytes) -> EventBatch:
        """Once for all who look at them in a turn; EventError if these are no events."""
        return self._core.decode(events)

    def arrive(self, source: str, feed: str, first: int, batch: EventBatch, out: Outbox) -> Arrived:
        """Takes events in that came from another broker, the `source`: those that someone wants here go to the core.
        Those with a `feed` have numbers of it, from `first` on, and count once (D1-B4)."""
        events, slices = batch.events, batch.slices
        matched, refused = judge(self._core.index, None, events, slices)
        late = {row for row, event in enumerate(events) if event.lifetime and event.deadline <= out.wall}
        wanted = self._core.wanted_rows(events, matched, refused)
        if wanted:
            # Also those that are late: they are counted where they were wanted.
            numbers = tuple([first + row for row in wanted]) if first and feed else ()
            command = commands.Arrive("", source, feed, numbers, batch.take(wanted).encoded)
            self._sequencer.submit(command, out)
        if refused or late:
            batch = batch.take([row for row in range(len(batch)) if row not in refused and row not in late])
        return Arrived(batch, len(late))
