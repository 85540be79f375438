"""Which events are taken in now, and which publishers wait: `block`, the overflow policy that loses nothing.

Publishers whose events a full blocking subscription wants are held, each with its later events behind, until there is
room; nobody else is, and control never is. No event waits longer than `block_max`: then the subscription that it waits
for ends.

In a group what is submitted is applied later. Until then it counts as wanted by every blocking subscription: too much
is held back for a moment, and never too little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import SECOND
from holdfast.model.batch import EventBatch
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.session import Session
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.publications import direct_addresses
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.sessions.messages import Publish


class _Waiting(NamedTuple):
    """Events that came together and wait: the number of the first, and since when."""

    first: int
    batch: EventBatch
    since: int

    @property
    def following(self) -> int:
        return self.first + len(self.batch)


class _Held:
    """A publisher's events that wait."""

    __slots__ = ("bytes", "epoch", "waiting")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.waiting: deque[_Waiting] = deque()
        self.bytes = 0

    def add(self, waiting: _Waiting) -> None:
        self.waiting.append(waiting)
        self.bytes += waiting.batch.bytes

    def take(self, count: int) -> None:
        """So many of the oldest, which came together, wait no more."""
        first, batch, since = self.waiting.popleft()
        self.bytes -= batch.bytes_of(0, count)
        if count < len(batch):
            self.waiting.appendleft(_Waiting(first + count, batch.behind(count), since))


class _UnderWay(NamedTuple):
    """Events that were submitted and not applied: of which session, up to which number, how many, how large."""

    client: str
    epoch: int
    last: int
    events: int
    size: int


class Admission:
    """Submits what is published, now or when there is room."""

    def __init__(self, core: BrokerCore, sequencer: Sequencer, settings: DeskSettings) -> None:
        self._core = core
        self._sequencer = sequencer
        self._settings = settings
        self._held: dict[str, _Held] = {}  # in the order in which they came to wait
        self._submitted: dict[str, int] = {}  # client → the last of its events that a command was made of
        self._under_way: deque[_UnderWay] = deque()  # in a group
        self._direct: dict[str, _UnderWay] = {}  # those of a client that it said to other replicas too
        self._under_way_events = 0
        self._under_way_bytes = 0
        self._freed = False
        self._releasing = False

    @property
    def waiting(self) -> int:
        """How many publishers wait."""
        return len(self._held)

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def publish(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        """Takes in what it can of a message with these events. Whether the publisher has just come to wait."""
        if not message.direct and session.client in self._direct:
            self._forget_direct(session.client)  # it is said again: the same events count once
        held = self._held.get(session.client)
        if held is not None:
            self._hold(held, message.first, batch, out.now)
            return False
        submitted = max(session.accepted, self._submitted.get(session.client, 0))
        if message.first > submitted + 1:
            return False  # something before it is missing, and will come again with it
        if message.skipped:
            self._skip(session, message, out)
            return False
        admitted = self._admissible(session, message.first, batch)
        if admitted >= len(batch):
            # As other replicas do with the same message. What waits or is cut is another value than theirs.
            direct = message.direct and session.client not in self._direct
            direct = direct and bool(direct_addresses(self._core, self._sequencer))
            self._submit(session, message.first, message.confirmed, batch, out, direct)
            return False
        if admitted:
            self._submit(session, message.first, message.confirmed, batch.part(0, admitted), out)
        held = self._held[session.client] = _Held(session.epoch)
        self._hold(held, message.first + admitted, batch.behind(admitted), out.now)
        return True

    def _skip(self, session: Session, message: Publish, out: Outbox) -> None:
        last = message.first + message.skipped - 1
        self._submitted[session.client] = max(self._submitted.get(session.client, 0), last)
        command = commands.Publish(
            session.client, session.epoch, message.first, message.confirmed, message.events, message.skipped
        )
        self._sequencer.submit(command, out)

    def _submit(
        self,
        session: Session,
        first: int,
        confirmed: int,
        batch: EventBatch,
        out: Outbox,
        direct: bool = False,
    ) -> None:
        last, encoded = first + len(batch) - 1, batch.encoded
        self._submitted[session.client] = max(self._submitted.get(session.client, 0), last)
        if not self._sequencer.applies_at_once:
            under_way = _UnderWay(session.client, session.epoch, last, len(batch), len(encoded))
            if direct:
                self._direct[session.client] = under_way
            else:
                self._under_way.append(under_way)
            self._under_way_events += under_way.events
            self._under_way_bytes += under_way.size
        command = commands.Publish(session.client, session.epoch, first, confirmed, encoded)
        if direct:
            self._sequencer.submit_direct(command, out)
        else:
            self._sequencer.submit(command, out, batch)

    def _forget_direct(self, client: str) -> None:
        under_way = self._direct.pop(client, None)
        if under_way is not None:
            self._under_way_events -= under_way.events
            self._under_way_bytes -= under_way.size

    def on_applied(self, answered: Sequence[str], out: Outbox) -> None:
        """In a group: some of what was submitted is applied, in the order of submitting, but for what clients said to
        other replicas too: that comes in any order, and some of it may be lost."""
        for client in answered:
            if client in self._direct and self._is_applied(self._direct[client]):
                self._forget_direct(client)
        while self._under_way:
            if not self._is_applied(self._under_way[0]):
                break
            under_way = self._under_way.popleft()
            self._under_way_events -= under_way.events
            self._under_way_bytes -= under_way.size
        if self._held:
            self.release(out)

    def _is_applied(self, under_way: _UnderWay) -> bool:
        session = self._core.register.session(under_way.client, under_way.epoch)
        return session is None or session.accepted >= under_way.last

    def give_up(self) -> None:
        """What was submitted may never be applied: another replica leads."""
        self._under_way.clear()
        self._direct.clear()
        self._under_way_events = self._under_way_bytes = 0

    def _admissible(self, session: Session, first: int, batch: EventBatch) -> int:
        """How many of the events, from the first on, find room in every blocking subscription that wants them."""
        if not self._core.crowding.blocking:
            return len(batch)
        limits, more_events, more_bytes = self._core.limits, self._under_way_events, self._under_way_bytes
        count, size_of_all = len(batch) + more_events, batch.bytes + more_bytes
        tight = {
            subscription: limits.backlog_events - len(subscription) - more_events
            for subscription in self._core.crowding.possibly_full(count, size_of_all)
            if len(subscription) + count > limits.backlog_events
            or subscription.bytes + size_of_all > limits.backlog_bytes
            or subscription.ledger.bytes + size_of_all > subscription.ledger.bytes_max
        }
        if not tight:
            return len(batch)
        room_bytes = {
            subscription: min(
                limits.backlog_bytes - subscription.bytes, subscription.ledger.bytes_max - subscription.ledger.bytes
            )
            - more_bytes
            for subscription in tight
        }
        seen = max(0, session.accepted + 1 - first)
        refused = set(batch.doubtful)
        for row in range(seen, len(batch)):
            if row in refused:
                continue  # it is kept by no one
            size, event = batch.bytes_of(row, row + 1), batch.event(row)
            for subscription in tight:
                if subscription.filter.matches(event.attributes, event.topic):
                    if tight[subscription] < 1 or room_bytes[subscription] < size:
                        return row
                    tight[subscription] -= 1
                    room_bytes[subscription] -= size
        return len(batch)

    def _hold(self, held: _Held, first: int, batch: EventBatch, now: int) -> None:
        """Puts events behind those that wait; what waits already is skipped, what leaves a gap is not taken."""
        following = held.waiting[-1].following if held.waiting else first
        if first > following:
            return
        fresh = batch.behind(following - first)
        fitting = fresh.rows_within(0, max(0, self._settings.held_bytes_max - held.bytes)) if fresh else 0
        if fresh and not (fitting or held.bytes):
            fitting = 1  # the first is taken however large it is
        if fitting:
            held.add(_Waiting(following, fresh.part(0, fitting).apart(), now))

    def forget(self, client: str) -> None:
        """The publisher is gone, or begins anew; it will say again what was not answered."""
        self._held.pop(client, None)
        self._submitted.pop(client, None)
        self._forget_direct(client)

    def release(self, out: Outbox) -> None:
        """There may be room: lets publishers go on that waited, in the order in which they came."""
        self._freed = True
        if self._releasing:
            return  # what their events free is for the next round
        self._releasing = True
        while self._freed:
            self._freed = False
            self._release_round(out)
        self._releasing = False

    def _release_round(self, out: Outbox) -> None:
        for client, held in list(self._held.items()):
            session = self._core.register.session(client, held.epoch)
            while held.waiting and session is not None:
                first, batch, _ = held.waiting[0]
                admitted = self._admissible(session, first, batch)
                if admitted == 0:
                    break
                held.take(admitted)
                self._submit(session, first, 0, batch.part(0, admitted), out)
            if not held.waiting or session is None:
                self._held.pop(client, None)

    def until_patience_ends(self, out: Outbox) -> int:
        """How long until the first event has waited long enough."""
        since = min(held.waiting[0].since for held in self._held.values())
        return max(0, since + self._settings.block_max - out.now)

    def lose_patience(self, out: Outbox) -> None:
        """Events that have waited long enough wait no more: the subscriptions that they wait for end."""
        for client, held in list(self._held.items()):
            while self._held.get(client) is held and out.now - held.waiting[0].since >= self._settings.block_max:
                head = held.waiting[0]
                for subscription in self._in_the_way_of(head.batch):
                    owner = self._core.sessions[subscription.client]
                    reason = f"overflow: publishers waited {self._settings.block_max // SECOND} s for room"
                    command = commands.EndSubscription(owner.client, owner.epoch, subscription.number, reason)
                    self._sequencer.submit(command, out)
                if self._held.get(client) is held and held.waiting[0] is head:
                    # Nothing was in its way, or what was there is being ended by others. Either way there may be room.
                    self.release(out)
                    break

    def _in_the_way_of(self, batch: EventBatch) -> list[Subscription]:
        """Who has no room for the first event of these."""
        if 0 in batch.doubtful:
            return []
        event, size, limits = batch.event(0), batch.bytes_of(0, 1), self._core.limits
        return [
            subscription
            for subscription in self._core.crowding.blocking
            if (
                len(subscription) >= limits.backlog_events
                or subscription.bytes + size > limits.backlog_bytes
                or subscription.ledger.bytes + size > subscription.ledger.bytes_max
            )
            and subscription.filter.matches(event.attributes, event.topic)
        ]

    def check_invariants(self) -> None:
        if not (self._under_way or self._direct or self._held or self._under_way_events or self._under_way_bytes):
            return
        events = size = 0
        for each in (*self._under_way, *self._direct.values()):
            events, size = events + each.events, size + each.size
        require(events == self._under_way_events, "events under way are counted")
        require(size == self._under_way_bytes, "bytes under way are counted")
        for client, held in self._held.items():
            require(held.waiting, "who is held has something that waits", client=client)
            total = sum(waiting.batch.bytes for waiting in held.waiting)
            require(total == held.bytes, "held bytes are counted", client=client)
