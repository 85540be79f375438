"""Events from broker to broker: each goes on over all other links when it comes for the first time.

An origin's events come to a broker in the order of their numbers, over whichever link: who sends one has sent all
before it, or had them from the receiver. So the last number is enough to know what came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import FEEDS, StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.interests import Key
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.overlay import EVERYTHING, PublicationsAnswerable, SubscriptionState
from holdfast.protocols.links.link_set import Came, LinkSet
from holdfast.protocols.links.pauses import SteadyPauses
from holdfast.protocols.operating.changes import NO_CHANGES
from holdfast.protocols.sessions.messages import Publish
from tests.schemes.flood.messages import Flooded, FloodItem, FloodRecord, Stored
from tests.schemes.flood.settings import FloodSettings
from tests.schemes.flood.stored_beside import STORED
from tests.schemes.flood.witnesses import Witnesses

BROKERS = frozenset({Role.BROKER})
PATIENT = 5  # times as long a broker waits that is to be dialled


class Flooding(Part):
    """The overlay of one broker."""

    name: ClassVar[str] = "flooding"
    elsewhere: tuple[str, ...] = ()
    member_since: int = 0
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Flooded: BROKERS, Stored: BROKERS}

    def __init__(
        self,
        settings: FloodSettings,
        home: Home,
        witnesses: Witnesses,
        recovered: Sequence[Entered],
        streams: StoredStreams,
    ) -> None:
        self.parts: Sequence[Part] = (self, witnesses)
        self._settings = settings
        self._home = home
        self._witnesses = witnesses
        self._life = ""
        self._seen: dict[tuple[str, str], int] = {}
        self._stored = dict.fromkeys(settings.near, 0)  # of what was published here
        self._unanswered: deque[FloodItem] = deque()  # published here, and not stored by all neighbours
        self._pending: dict[str, list[FloodItem]] = {peer: [] for peer in settings.near}
        self._links = LinkSet(self.name)
        self._number = self._entered = 0  # of the last record, and of the last command whose events are in one
        self._kept: deque[tuple[int, list[FloodItem]]] = deque()
        self._duplicates = 0
        # Of this turn:
        self._items: list[FloodItem] = []
        self._received: dict[tuple[str, str, str], int] = {}  # (neighbour, origin, life) → through
        self._changed = False
        self._recover(streams)
        self._again = [entered for entered in recovered if entered.number > self._entered]

    def _recover(self, streams: StoredStreams) -> None:
        for record in streams.get(FEEDS, ()):
            if not isinstance(record, FloodRecord):
                broken("the feeds on the disk are known records", record=type(record).__name__)
            self._number, self._entered = record.number, record.entered
            self._seen = {(origin, life): number for origin, life, number in record.seen}
            self._stored |= {peer: through for peer, through in record.stored.items() if peer in self._stored}
            self._kept.append((record.number, record.items))
        for _, items in self._kept:
            for item in items:
                self._put(item)

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._life = started.log_id
        for entered in self._again:
            self.entered(entered, out)
        # All, also those that dial this one: they do not know yet that it was started again.
        for peer, near in self._settings.near.items():
            times = 1 if near.is_dialled else PATIENT
            self._links.want(peer, near.address, SteadyPauses(times * self._settings.dial_every), out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._links.timer_fired(key, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._links.connect_failed(failed, out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        came = self._links.link_up(up, out)
        if came is Came.REFUSED:
            out.disconnect(up.link, f"{up.peer} is no neighbour of {self._settings.name}")
            return
        if came is Came.REPLACED:
            out.drop_queue(up.peer)
        for item in self._pending[up.peer]:
            self._send(up.peer, item, out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        peer = self._links.link_down(down, out)
        if peer:
            self._received = {key: through for key, through in self._received.items() if key[0] != peer}
            out.report("neighbour-lost", Level.WARNING, peer=peer, reason=down.reason)

    # ------------------------------------------------------------------------------------------------------ events
    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        return True

    def entered(self, entered: Entered, out: Outbox) -> None:
        batch = entered.batch
        first = self._seen.get((self._settings.name, self._life), 0) + 1
        self._entered = entered.number
        self._witnesses.see(batch)
        if out.tracing:
            out.note("accepted", node=self._settings.name, events=batch.ids)
        own = (entered.number, entered.client, entered.epoch, entered.first)
        self._take(FloodItem(self._settings.name, self._life, first, len(batch), batch.encoded, "", *own), out)

    def on_flooded(self, peer: str, message: Flooded, out: Outbox) -> None:
        if not self._links.link_of(peer):
            raise ProtocolError("events come from neighbours")
        try:
            batch = EventBatch.read(message.events)
        except EventError as error:
            raise ProtocolError(f"in Flooded, {error}") from error
        key = (message.origin, message.life)
        seen, last = self._seen.get(key, 0), message.first + len(batch) - 1
        if not batch or message.first < 1 or (seen and message.first > seen + 1):
            raise ProtocolError(f"events {message.first} to {last} of {message.origin} come behind {seen}")
        skipped = max(0, seen + 1 - message.first) if seen else 0
        fresh = batch.behind(min(skipped, len(batch)))
        self._duplicates += len(batch) - len(fresh)
        self._received[(peer, *key)] = max(last, seen)
        self._changed = True
        if fresh:
            first = message.first + skipped
            self._home.arrive("/".join(key), message.life, first, fresh, out)
            self._witnesses.see(fresh)
            if out.tracing:
                out.report(STORED, events=fresh.ids)
            self._take(FloodItem(*key, first, len(fresh), fresh.encoded, peer), out)

    def _take(self, item: FloodItem, out: Outbox) -> None:
        self._seen[item.origin, item.life] = item.last
        self._items.append(item)
        self._changed = True
        self._put(item)

    def _put(self, item: FloodItem) -> None:
        own = item.origin == self._settings.name
        for peer, pending in self._pending.items():
            if peer != item.source and not (own and item.last <= self._stored[peer]):
                pending.append(item)
        if own and self._is_unanswered(item):
            self._unanswered.append(item)

    def _is_unanswered(self, item: FloodItem) -> bool:
        return any(through < item.last for through in self._stored.values())

    def _send(self, peer: str, item: FloodItem, out: Outbox) -> None:
        out.send(peer, Flooded(item.origin, item.life, item.first, item.events), Lane.USER)

    def on_stored(self, peer: str, message: Stored, out: Outbox) -> None:
        if not self._links.link_of(peer) or message.through > self._seen.get((message.origin, message.life), 0):
            raise ProtocolError(f"{peer} has stored {message.through} of {message.origin}, which it was never told")
        key = (message.origin, message.life)
        self._pending[peer] = [
            item for item in self._pending[peer] if (item.origin, item.life) != key or item.last > message.through
        ]
        if key == (self._settings.name, self._life) and message.through > self._stored[peer]:
            self._stored[peer] = message.through
            self._changed = True  # an answer is never taken back: it waits until this is on the disk
            answered = dict.fromkeys(item.client for item in self._unanswered if not self._is_unanswered(item))
            while self._unanswered and not self._is_unanswered(self._unanswered[0]):
                self._unanswered.popleft()
            out.tell(PublicationsAnswerable(list(answered)))

    def answerable_through(self, session: Session) -> int:
        for item in self._unanswered:
            if (item.client, item.epoch) == (session.client, session.epoch):
                return item.session_first - 1
        return EVERYTHING

    def answerable_commands(self) -> int:
        return self._unanswered[0].command - 1 if self._unanswered else EVERYTHING

    def interests_changed(self, out: Outbox) -> None:
        self._home.interests.take()  # every event comes here anyway

    def subscription_state(self, key: Key) -> SubscriptionState:
        return SubscriptionState.CONFIRMED

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        return NO_CHANGES

    def finish(self, out: Outbox) -> None:
        items, self._items = self._items, []
        received, self._received = self._received, {}
        if self._changed:
            self._changed = False
            self._number += 1
            seen = [(*key, number) for key, number in self._seen.items()]
            out.append(FEEDS, FloodRecord(self._number, self._entered, seen, dict(self._stored), items))
            self._kept.append((self._number, items))
        for item in items:
            for peer in self._links.linked:
                if peer != item.source:
                    self._send(peer, item, out)
        for (peer, origin, life), through in received.items():
            out.send(peer, Stored(origin, life, through))
        self._truncate(out)

    def _truncate(self, out: Outbox) -> None:
        """Records go when no neighbour lacks what is in them. The last one stays: it knows the numbers."""
        needed = {(one.origin, one.life, one.last) for pending in self._pending.values() for one in pending}
        before = 0
        while len(self._kept) > 1 and not any((i.origin, i.life, i.last) in needed for i in self._kept[0][1]):
            before = self._kept.popleft()[0] + 1
        if before:
            out.truncate(FEEDS, before)

    def check_invariants(self) -> None:
        self._links.check_invariants()

    # ------------------------------------------------------------------------------------------------------ people
    def facts(self) -> dict[str, str]:
        return {"neighbours": ", ".join(self._settings.near), "neighbours_up": ", ".join(self._links.linked)}

    def measure(self) -> dict[str, int]:
        pending = sum(item.count for items in self._pending.values() for item in items)
        return {"flood_pending_events": pending, "flood_duplicates_total": self._duplicates}
