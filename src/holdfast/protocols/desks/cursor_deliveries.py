"""Events of cursors on their way to their owners.

A delivery follows the log: it is *live* while every event behind what was sent is in its queue, straight from the core;
if there are too many of those, or after a loss, it lets them go and *catches up* from the log instead, which the driver
reads and sends. So a slow owner costs a bounded queue, and nothing is ever dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import LogSent
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import NO_EVENTS
from holdfast.protocols.core.backlog import Backlog, Run
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.outputs import CursorFed, CursorTaken
from holdfast.protocols.cursors.messages import CursorEvents, CursorProgress
from holdfast.protocols.desks.ranges import CursorPart, cursor_events

Owner = tuple[str, int, int]


class DeliverySettings(msgspec.Struct, frozen=True, gc=False):
    """Sizes in bytes, times in nanoseconds."""

    queue_events: int = 4_096  # that a live delivery keeps in memory
    queue_bytes: int = 1024 * 1024
    message_events: int = 256  # in one message
    read_bytes: int = 256 * 1024  # of the log at a time
    unsent_bytes_max: int = 1024 * 1024  # in the client's queue
    repeat_after: int = 1 * SECOND
    repeat_after_max: int = 8 * SECOND
    tick: int = 250 * MILLISECOND


class Delivery:
    """One cursor's events on their way over this link.

    The client says how many events it holds that its application has not taken: the window bounds those, and what was
    sent behind the last position that it has told of. What was sent before we went back may arrive all the same. It
    kept within the window when it was sent, so it does so still; with its next word the client counts it. For that the
    same events are sent again, also those that have expired since: with others in their place it would hold both.
    """

    __slots__ = (
        "consumed", "cursor", "flown", "gone", "live", "number", "opened", "peer", "progress_at", "queue", "reading",
        "reading_until", "received", "repeat_after", "sent", "unconsumed", "under_way", "under_way_count", "window",
    )  # fmt: skip

    def __init__(self, owner: Owner, taken: CursorTaken, live: bool, now: int, repeat_after: int) -> None:
        self.peer, _, self.number = owner
        self.cursor = taken.cursor
        self.window = taken.window
        self.sent = self.received = taken.after
        self.consumed = -1  # a position; nothing was said of it on this link
        self.unconsumed = taken.unconsumed  # events, of those up to what was received
        self.under_way: deque[tuple[int, int]] = deque()  # (up to which position, how many), behind what was received
        self.under_way_count = 0
        self.live = live
        self.queue = Backlog()
        self.reading = 0  # the request that reads the log for it, if one does
        self.reading_until = 0  # how far that one may come
        self.flown = 0  # up to here events may have been sent that are sent again
        self.opened = -1  # the token with which its owner is told that it has the cursor; -1: not known yet
        self.gone = False  # what comes next is not in the log any more, of which its owner was told
        self.progress_at = now
        self.repeat_after = repeat_after

    @property
    def room(self) -> int:
        return self.window - self.unconsumed - self.under_way_count

    def fly(self, through: int, count: int) -> None:
        self.sent = max(self.sent, through)
        if count:
            self.under_way.append((through, count))
            self.under_way_count += count

    def is_news(self, said: CursorProgress) -> bool:
        """Both positions only grow at a client: what is behind in one of them was said earlier, and comes late."""
        return said.received > self.received or said.consumed > self.consumed

    def land(self, said: CursorProgress) -> None:
        self.received, self.consumed = max(self.received, said.received), max(self.consumed, said.consumed)
        self.unconsumed = min(said.unconsumed, self.window)
        while self.under_way and self.under_way[0][0] <= self.received:
            self.under_way_count -= self.under_way.popleft()[1]
        if self.received > self.sent:
            # We went back, and what was sent before has arrived all the same.
            self.stop_reading()
            self.sent = self.received

    def wait_from(self, now: int, repeat_after: int) -> None:
        self.progress_at, self.repeat_after = now, repeat_after

    def known_with(self, token: int) -> int:
        """The token with which its owner knows that it has the cursor: this one, if it is asked for the first time."""
        if self.opened < 0:
            self.opened = token
        return self.opened

    def read(self, request: int, until: int) -> None:
        """A request reads the log for it, and comes this far at most; with 0, none does."""
        self.reading, self.reading_until = request, until

    def lack(self, now: int) -> None:
        """What comes next is not there any more."""
        self.gone, self.progress_at = True, now

    def try_again(self) -> None:
        self.gone = False

    def follow(self) -> None:
        self.live = True

    def fall_behind(self) -> None:
        """Lets go of what is in memory; the log has it."""
        self.live = False
        self.queue.clear()

    def stop_reading(self) -> None:
        """Waits for no one: what is being read may be sent all the same."""
        if self.reading:
            self.flown = max(self.flown, self.reading_until)
        self.fall_behind()
        self.reading = 0

    def rewind(self) -> None:
        """Goes back to what has arrived."""
        self.flown = max(self.flown, self.sent)
        self.stop_reading()
        # What is acknowledged has arrived, though we may not have heard of that; the filter it fell under may be gone.
        # It counts as under way until the client says how much of it was taken, also if more was sent together with it.
        heard = self.received
        self.received = self.sent = max(heard, min(self.cursor.acknowledged, self.sent))
        first = 0
        while self.under_way and self.under_way[-1][0] > self.sent:
            first = self.under_way.pop()[1]
            self.under_way_count -= first
        if first and self.sent > max(heard, self.under_way[-1][0] if self.under_way else 0):
            self.fly(self.sent, first)


class CursorDeliveries:
    """All deliveries, by owner."""

    def __init__(self, head: Callable[[], int], settings: DeliverySettings) -> None:
        self.sent_total = 0
        self.read_total = 0  # of those, from the log
        self.expired_total = 0  # as their owners say
        self._head = head
        self._settings = settings
        self._deliveries: dict[Owner, Delivery] = {}
        self._by_cursor: dict[Cursor, Owner] = {}
        self._reading: dict[int, tuple[Owner, Cursor]] = {}
        self._durable = 0  # token
        self._last_request = 0
        self.due: dict[Owner, None] = {}  # to be looked at when the turn ends
        self._expired_in_life: dict[str, tuple[int, int]] = {}  # name → generation, and what its owner said last
        self._sent_in_life: dict[str, int] = {}  # name → the last position that was sent to anyone

    def __bool__(self) -> bool:
        return bool(self._deliveries)

    def sent_to_anyone(self, cursor: Cursor | None) -> int:
        """Up to where events were sent in this life of the broker; -1 if that says nothing of the life before."""
        if cursor is None or cursor.name not in self._sent_in_life:
            return -1
        if any(read is cursor for _, read in self._reading.values()):
            return -1  # nor how far a driver that reads the log for it will come
        return self._sent_in_life[cursor.name]

    # ------------------------------------------------------------------------------------------------------- owners
    def take(self, taken: CursorTaken, out: Outbox) -> None:
        owner = taken.cursor.owner
        if owner is None:
            return
        known = self._deliveries.get(owner)
        if known is not None and known.cursor is taken.cursor:
            return  # asked twice; what has happened on the link since then stands
        live = taken.after >= self._head()
        delivery = Delivery(owner, taken, live, out.now, self._settings.repeat_after)
        self._deliveries[owner] = delivery
        self._by_cursor[taken.cursor] = owner
        self._sent_in_life.setdefault(taken.cursor.name, taken.after if taken.cursor.is_first_owner else self._head())
        self.due[owner] = None

    def leave(self, owner: Owner) -> None:
        delivery = self._deliveries.pop(owner, None)
        self.due.pop(owner, None)
        if delivery is not None and self._by_cursor.get(delivery.cursor) == owner:
            del self._by_cursor[delivery.cursor]

    def detach(self, peer: str) -> None:
        for owner in [owner for owner in self._deliveries if owner[0] == peer]:
            self.leave(owner)

    def forget(self, name: str) -> None:
        self._sent_in_life.pop(name, None)
        self._expired_in_life.pop(name, None)

    # ------------------------------------------------------------------------------------------------------- events
    def feed(self, fed: CursorFed) -> None:
        owner = self._by_cursor.get(fed.cursor)
        delivery = None if owner is None else self._deliveries.get(owner)
        if owner is None or delivery is None or not delivery.live:
            return
        delivery.queue.add(fed.run)
        settings = self._settings
        if len(delivery.queue) > settings.queue_events or delivery.queue.bytes > settings.queue_bytes:
            delivery.fall_behind()
        self.due[owner] = None

    def progress(self, owner: Owner, said: CursorProgress, out: Outbox) -> None:
        delivery = self._deliveries.get(owner)
        if delivery is None:
            return
        if said.received > self._head() or said.consumed > said.received or said.unconsumed < 0:
            problem = f"{said.received}/{said.consumed} with {said.unconsumed} to take"
            raise ProtocolError(f"CursorProgress says {problem}, and the log ends at {self._head()}")
        if delivery.is_news(said):
            delivery.land(said)
            delivery.wait_from(out.now, self._settings.repeat_after)
        self._count_expired(delivery.cursor, said.expired)
        if said.missing and delivery.sent > delivery.received:
            delivery.rewind()
        self.due[owner] = None

    def _count_expired(self, cursor: Cursor, expired: int) -> None:
        """An owner counts from when it took the cursor on, over all of its links."""
        generation, known = self._expired_in_life.get(cursor.name, (0, 0))
        known = known if generation == cursor.generation else 0
        if expired > known:
            self.expired_total += expired - known
            self._expired_in_life[cursor.name] = (cursor.generation, expired)

    def look_again(self, peer: str) -> None:
        """The peer's queue has room."""
        for owner in self._deliveries:
            if owner[0] == peer:
                self.due[owner] = None

    def finish(self, out: Outbox) -> None:
        due, self.due = self.due, {}
        for owner in due:
            delivery = self._deliveries.get(owner)
            if delivery is not None:
                self._pump(owner, delivery, out)

    def _pump(self, owner: Owner, delivery: Delivery, out: Outbox) -> None:
        queue = out.queue(delivery.peer)
        while delivery.room > 0 and not (delivery.reading or delivery.gone):
            if queue.bytes > self._settings.unsent_bytes_max:
                queue.notify_below(0)
                return
            if not delivery.live:
                if delivery.sent >= self._head():
                    delivery.follow()  # nothing is missing
                else:
                    self._catch_up(owner, delivery, out)
                return
            if not delivery.queue:
                return
            self._send_live(delivery, out)

    def _send_live(self, delivery: Delivery, out: Outbox) -> None:
        count = min(delivery.room, len(delivery.queue), self._settings.message_events)
        taken = delivery.queue.take(count)
        # What lies between the last one and the head does not concern the cursor.
        through = taken[-1].positions[-1] if delivery.queue else self._head()
        expired: list[int] = []
        taken = [alive for run in taken if (alive := _alive(run, out.wall, expired))]
        takeovers = delivery.cursor.takeovers
        message = cursor_events(delivery.number, takeovers, delivery.sent, through, taken, expired)
        out.send(delivery.peer, message, Lane.USER)
        delivery.fly(through, len(message.positions))
        self._count(delivery, len(message.positions))

    def _count(self, delivery: Delivery, count: int) -> None:
        self.sent_total += count
        self._note_sent(delivery.cursor, delivery.sent)

    def _note_sent(self, cursor: Cursor, through: int) -> None:
        self._sent_in_life[cursor.name] = max(self._sent_in_life.get(cursor.name, 0), through)

    def _catch_up(self, owner: Owner, delivery: Delivery, out: Outbox) -> None:
        if delivery.known_with(out.token) > self._durable:
            return  # what is read would be there before its owner knows that it has the cursor, and be ignored
        self._last_request += 1
        cursor = delivery.cursor
        self._reading[self._last_request] = (owner, cursor)
        room = max(1, min(delivery.room, max(1, delivery.window // 4), self._settings.message_events))
        # Up to what is there now: whoever takes the cursor over in the meantime is told that all that was sent.
        filters, sent_before = tuple(cursor.filters), tuple(cursor.takeovers)
        until = self._head()
        delivery.read(self._last_request, until)
        part = CursorPart(delivery.number, sent_before, filters, delivery.sent, room, until, out.wall, delivery.flown)
        out.send_log(delivery.peer, self._last_request, EVENTS, delivery.sent + 1, self._settings.read_bytes, part)

    def on_log_sent(self, sent: LogSent, out: Outbox) -> bool:
        """Whether it was for a delivery."""
        read = self._reading.pop(sent.request, None)
        if read is None:
            return False
        owner, cursor = read
        if sent.count:
            self._note_sent(cursor, sent.through)
        delivery = self._deliveries.get(owner)
        if delivery is None or delivery.reading != sent.request:
            return True
        delivery.read(0, delivery.reading_until)
        if sent.gone:
            delivery.lack(out.now)  # its owner is told again until it says that it knows
            return True
        if sent.through == delivery.sent:
            # Nothing of it is durable yet; it is looked at again when something is.
            return True
        delivery.fly(sent.through, sent.count)
        self._count(delivery, sent.count)
        self.read_total += sent.count
        self.due[owner] = None
        return True

    def on_durable(self, token: int) -> None:
        """What catches up may have something to read."""
        self._durable = token
        for owner, delivery in self._deliveries.items():
            if not (delivery.live or delivery.reading or delivery.gone):
                self.due[owner] = None

    def repeat(self, out: Outbox) -> None:
        """Sends again what was not confirmed for a while."""
        for owner, delivery in self._deliveries.items():
            unconfirmed, starved = delivery.sent > delivery.received, delivery.room <= 0
            if not (unconfirmed or starved or delivery.gone):
                delivery.wait_from(out.now, delivery.repeat_after)
            elif out.now - delivery.progress_at >= delivery.repeat_after:
                delivery.wait_from(out.now, min(2 * delivery.repeat_after, self._settings.repeat_after_max))
                if unconfirmed:
                    delivery.rewind()
                elif starved:
                    # A question: the client answers how far it is.
                    question = CursorEvents(delivery.number, delivery.sent, delivery.sent, [], NO_EVENTS)
                    out.send(delivery.peer, question, Lane.USER)
                delivery.try_again()
                self.due[owner] = None

    def check_invariants(self) -> None:
        for owner, delivery in self._deliveries.items():
            fields = {"owner": owner, "sent": delivery.sent, "received": delivery.received}
            require(delivery.cursor.owner == owner, "events go to who has the cursor", **fields)
            require(delivery.consumed <= delivery.received <= delivery.sent, "what is consumed was sent", **fields)
            require(delivery.sent <= self._head(), "what is sent exists", **fields)
            counted = sum(count for _, count in delivery.under_way)
            require(counted == delivery.under_way_count <= delivery.window, "credit bounds what is sent", **fields)
            require(not (delivery.live and delivery.reading), "who is live reads no log", **fields)


def _alive(run: Run, wall: int, expired: list[int]) -> Run | None:
    """What has not expired, if anything; the positions of what has are noted."""
    deadlines = run.batch.deadlines
    if deadlines is None:
        return run
    alive = [row for row, deadline in enumerate(deadlines) if not 0 < deadline <= wall]
    if len(alive) < len(deadlines):
        expired += [run.positions[row] for row, deadline in enumerate(deadlines) if 0 < deadline <= wall]
    return run.take(alive) if alive else None
