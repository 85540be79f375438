"""Light clients: subscribers for large experiments, where a delivery is a row of the trace and not a node's turn.

A light client speaks just enough of the session protocol to a broker that can't tell the difference: it opens a session
and takes it up again after a lost link or a crash of the broker, subscribes, confirms what it got in bulk, and answers
for its silence. It never publishes, and its application deals with every event at once. It is no node: it has no
outbox, no queues and no turns, and lives in a few small objects. Its rows are those of the client that users run, so
that every checker can be asked about it; `tests/sim/test_light.py` compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kernel.links import Role, peer_name
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.batch import EventBatch
from holdfast.protocols.sessions import messages, requests
from holdfast.protocols.sessions.incoming import SubscriptionPhase
from holdfast.sim.network import End, Frame, Packet
from holdfast.sim.scenario import Action, Client, Subscribe, Unsubscribe
from holdfast.trace import schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.sim.disk import Disk
    from holdfast.sim.simulation import Simulation

PAUSE_MIN = 50 * MILLISECOND  # between attempts to connect; doubled each time
SILENT_PINGS = 3  # a broker that is silent for so many is given up

_MAKING, _LIVE = SubscriptionPhase.MAKING, SubscriptionPhase.LIVE
_ENDING, _FORGOTTEN = SubscriptionPhase.ENDING, SubscriptionPhase.FORGOTTEN


class _Subscription:
    __slots__ = (
        "asked",
        "gap",
        "late",
        "number",
        "phase",
        "received",
        "reported",
        "seen",
        "seen_before",
        "text",
        "wanted",
    )

    def __init__(self, number: int, text: str, wanted: Subscribe) -> None:
        self.number = number
        self.text = text
        self.wanted = wanted
        self.phase = _MAKING
        self.received = 0
        self.reported = 0
        self.late = 0  # of those received, the ones that came after their deadlines
        self.gap = False  # something did not arrive that should have
        self.asked = False  # the broker does not seem to know how far we are
        # "publisher/incarnation" → the highest sequence that came; and what that was when the broker last forgot.
        self.seen: dict[str, int] = {}
        self.seen_before: dict[str, int] | None = None

    def take(self, event: str) -> bool:
        """Counts the next event. False if it came before, from a session that the broker forgot."""
        self.received += 1
        self.gap = False
        source, _, text = event.rpartition("/")
        sequence = int(text)
        if self.seen_before and sequence <= self.seen_before.get(source, 0):
            return False
        self.seen[source] = sequence
        return True

    def forgotten(self, again: bool) -> None:
        self.phase = _MAKING if again else _FORGOTTEN
        self.received = self.reported = self.late = 0
        self.gap = self.asked = False
        self.seen_before = dict(self.seen)

    def enter(self, phase: SubscriptionPhase) -> None:
        self.phase = phase

    def lack(self, place: int) -> None:
        """Something came that is not the next."""
        if place > self.received:
            self.gap = True
        else:
            self.asked = True

    def count_late(self) -> None:
        self.late += 1

    def skip(self, through: int) -> None:
        """What is up to there was dropped."""
        self.received, self.gap = through, False

    def report(self) -> None:
        """The broker is told how far it is."""
        self.reported = self.received
        self.gap = self.asked = False

    @property
    def urgent(self) -> bool:
        return self.gap or self.asked or self.received - self.reported >= max(1, self.wanted.window // 4)


class LightClient:
    """A `Station` that links end at, without a node."""

    __slots__ = (
        "_addresses", "_attempt", "_end", "_epoch", "_failures", "_heard_at", "_hurried", "_instance", "_kept",
        "_last_number", "_member_since", "_open", "_pace", "_refused", "_report_due", "_resubscribe", "_simulation",
        "_subscriptions", "_unreported", "_wanted", "dark", "disk", "life", "name", "paused", "peer", "role",
        "running", "wall_offset",
    )  # fmt: skip

    def __init__(self, simulation: Simulation, client: Client) -> None:
        self.name = client.id
        self.role = Role.CLIENT
        self.peer = peer_name(Role.CLIENT, client.id)
        self.life = 0
        self.dark = False
        self.running = False
        self.paused = False
        self.disk: Disk | None = None
        self.wall_offset = 0
        self._simulation = simulation
        self._addresses = client.brokers
        self._resubscribe = client.resubscribe
        self._pace = client
        self._wanted: dict[str, Subscribe] = {}  # outlives crashes, as what the application wants does
        self._kept: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # what came while it was paused
        self._forget()

    def _forget(self) -> None:
        self._attempt = 0
        self._failures = 0
        self._instance = 0
        self._epoch = 0
        self._member_since = 0  # the broker, of its network
        self._end: End | None = None
        self._open = False
        self._refused = False  # the broker wants nothing of this client any more
        self._heard_at = 0
        self._report_due = False
        self._hurried = False  # a subscription has something to report that can't wait
        self._last_number = 0
        self._subscriptions: dict[int, _Subscription] = {}
        self._unreported: dict[_Subscription, None] = {}
        self._kept.clear()

    def jump(self, by: int) -> None:
        self.wall_offset += by

    # --------------------------------------------------------------------------------------------------------- life
    def start(self) -> None:
        require(not self.running, "a machine that runs is not started", machine=self.name)
        self.life += 1
        self.running, self.dark = True, False
        self._forget()
        self._instance = self._simulation.rng_for(self.name, self.life).getrandbits(63)
        for wanted in self._wanted.values():
            self._make(wanted)
        self._connect(self.life)

    def stop(self, power_cut: bool) -> None:
        if not self.running:
            return
        self.life += 1
        self.running = self.paused = False
        self.dark = power_cut
        network = self._simulation.network
        if self._end is not None:
            network.abandon(self._end, silently=power_cut)
        if power_cut:
            network.lose_power(self)
        self._forget()

    def pause(self) -> None:
        self.paused = self.running

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            kept, self._kept = self._kept, []
            for happen, arguments in kept:
                happen(*arguments)

    # -------------------------------------------------------------------------------------------------------- links
    def end_to(self, peer: str) -> End | None:
        return self._end if self._end is not None and self._end.peer == peer else None

    def _connect(self, life: int) -> None:
        if life != self.life:
            return
        if self.paused:
            self._kept.append((self._connect, (life,)))
            return
        address = self._addresses[self._attempt % len(self._addresses)]
        target = self._simulation.addresses.get(address)

        def fail(reason: str) -> None:
            if life == self.life:
                self._try_again()

        self._simulation.network.connect(self, target, "", address, fail)

    def _try_again(self) -> None:
        """After a pause that grows, at the next address."""
        self._attempt += 1
        pause = min(self._pace.pause_ms_max * MILLISECOND, PAUSE_MIN << min(self._failures, 30))
        self._failures += 1
        rng = self._simulation.rng_for(f"{self.name}/pause {self._attempt}", self.life)
        self._simulation.after(int(pause * (0.5 + rng.random() / 2)), self._connect, self.life)

    def link_up(self, end: End, initiated: bool) -> None:
        self._end = end
        if self.paused:
            self._kept.append((self._open_session, (end,)))
        else:
            self._open_session(end)

    def _open_session(self, end: End) -> None:
        if end is not self._end:
            return
        self._heard_at = self._simulation.now
        live = [s for s in self._subscriptions.values() if s.phase is _LIVE] if self._epoch else []
        received = tuple(s.received for s in live)
        self._send(messages.OpenSession(self._instance, self._epoch, tuple(s.number for s in live), received, received))
        self._simulation.after(self._pace.ping_ms * MILLISECOND, self._tick, end)

    def link_down(self, end: End, reason: str) -> None:
        if end is self._end:
            self._end, self._open = None, False
            if not self._refused:
                self._try_again()

    def _close(self, reason: str) -> None:
        if self._end is not None:
            self._simulation.network.close(self._end, reason)

    def _send(self, message: Message) -> None:
        end = self._end
        if end is not None:
            if self._simulation.tracing_brokers:
                self._simulation.note_hop(self.name, end.other.station.name, message, message.weight())
            self._simulation.network.send(end, Packet([self._simulation.messages.encode(message)]))

    # ------------------------------------------------------------------------------------------------------- actions
    def do(self, action: Action) -> None:
        """Carries out one action of the scenario, if there is anyone to do it."""
        if not self.running:
            return
        if self.paused:
            self._kept.append((self.do, (action,)))
            return
        match action:
            case Subscribe():
                self._wanted[action.name] = action
                self._make(action)
            case Unsubscribe():
                wanted = self._wanted.pop(action.name, None)
                for subscription in self._subscriptions.values():
                    if subscription.wanted is wanted and subscription.phase is not _ENDING:
                        self._over(subscription, "")
                        self._ask(subscription)
            case _:
                require(False, "a light client only subscribes", client=self.name)

    def _make(self, wanted: Subscribe) -> None:
        self._last_number += 1
        number = self._last_number
        text = f"{self.name}/{self.life}/{number}"
        subscription = self._subscriptions[number] = _Subscription(number, text, wanted)
        if self._simulation.tracing:
            self._emit(schema.Subscribed, subscription, filter=wanted.filter, overflow=wanted.overflow.value)
        self._ask(subscription)

    def _ask(self, subscription: _Subscription) -> None:
        """Asks the broker for what the subscription waits for, if it does and there is a session."""
        if not self._open:
            return
        if subscription.phase is _MAKING:
            wanted = subscription.wanted
            self._send(messages.Subscribe(subscription.number, wanted.filter, wanted.overflow, wanted.window))
        elif subscription.phase is _ENDING:
            self._send(messages.Unsubscribe(subscription.number))

    def _over(self, subscription: _Subscription, reason: str) -> None:
        subscription.enter(_ENDING)
        self._unreported.pop(subscription, None)
        self._emit(schema.Unsubscribed, subscription, reason=reason)

    def _emit(self, kind: type[schema.Row], subscription: _Subscription, **fields: Any) -> None:
        simulation = self._simulation
        if simulation.tracing:
            row = kind(t=simulation.now, subscription=subscription.text, subscriber=self.name, **fields)  # type: ignore[call-arg]
            simulation.emit(row)

    # ------------------------------------------------------------------------------------------------- what comes in
    def receive(self, end: End, frames: list[Frame]) -> None:
        if self.paused:
            self._kept.append((self.receive, (end, frames)))
            return
        self._heard_at = self._simulation.now
        for kind, body in frames:
            if end is not self._end:
                return  # closed over one of these messages
            message = self._simulation.messages.decode(kind, body)
            if isinstance(message, messages.SessionOpened):
                self._on_session_opened(message, end.peer)
            elif isinstance(message, messages.SessionRefused):
                self._on_session_refused(message)
            elif isinstance(message, messages.Redirect):
                others = (address for address in self._addresses if address not in message.addresses)
                self._addresses, self._attempt = (*message.addresses, *others), -1
                self._close("redirected")
            elif isinstance(message, messages.SessionClosed):
                self._close("the broker closed the session")
            elif self._open:
                self._on_message(message, end.peer)
        if self._unreported:
            self._report_soon()

    def _on_session_opened(self, opened: messages.SessionOpened, broker: str) -> None:
        if self._open:
            return
        resumed = opened.epoch == self._epoch
        was_apart = resumed and opened.member_since > self._member_since
        self._open, self._epoch, self._failures = True, opened.epoch, 0
        self._member_since = opened.member_since
        for subscription in self._subscriptions.values():
            if subscription.phase is _LIVE and (not resumed or subscription.number in opened.forgotten):
                subscription.forgotten(self._resubscribe or opened.reissue)
                self._emit(schema.Missed, subscription, reason="forgotten")
            elif subscription.phase is _LIVE and was_apart:
                self._emit(schema.Missed, subscription, reason=requests.APART)
                self._emit(schema.Confirmed, subscription, via=broker)
            self._ask(subscription)

    def _on_session_refused(self, refused: messages.SessionRefused) -> None:
        self._refused = True
        for subscription in self._subscriptions.values():
            if subscription.phase is not _ENDING:
                self._over(subscription, refused.problem)
        self._subscriptions = {}
        self._close(refused.problem)

    def _on_message(self, message: Message, broker: str) -> None:
        match message:
            case messages.Deliver():
                self._on_deliver(message, broker)
            case messages.Subscribed():
                subscription = self._in_phase(message.subscription, _MAKING)
                if subscription is not None:
                    subscription.enter(_LIVE)
                    self._emit(schema.Confirmed, subscription, via=broker)
            case messages.SubscribeRefused():
                subscription = self._in_phase(message.subscription, _MAKING)
                if subscription is not None:
                    del self._subscriptions[message.subscription]
                    self._over(subscription, message.problem)
            case messages.Unsubscribed():
                if self._in_phase(message.subscription, _ENDING) is not None:
                    del self._subscriptions[message.subscription]
            case messages.SubscriptionEnded():
                ended = self._subscriptions.get(message.subscription)
                if ended is not None and ended.phase is not _ENDING:
                    self._over(ended, message.reason)
                self._send(messages.Unsubscribe(message.subscription))
            case messages.Dropped():
                subscription = self._in_phase(message.subscription, _LIVE)
                if subscription is not None:
                    self._on_dropped(subscription, message)

    def _in_phase(self, number: int, phase: SubscriptionPhase) -> _Subscription | None:
        subscription = self._subscriptions.get(number)
        return subscription if subscription is not None and subscription.phase is phase else None

    def _on_deliver(self, message: messages.Deliver, broker: str) -> None:
        tracing = self._simulation.tracing
        wall = self._simulation.wall + self._simulation.now + self.wall_offset
        batch = EventBatch.read(message.events)
        marks = zip(batch.ids, batch.deadlines or [0] * len(batch), strict=True)
        places = [(number, place) for number, first, count in message.runs for place in range(first, first + count)]
        for (number, place), (event, deadline) in zip(places, marks, strict=True):
            subscription = self._in_phase(number, _LIVE)
            if subscription is None:
                continue
            self._unreported[subscription] = None
            if place != subscription.received + 1:
                subscription.lack(place)
            elif not subscription.take(event):
                pass  # it came before
            elif 0 < deadline <= wall:
                subscription.count_late()
                self._emit(schema.Expired, subscription, event=event, node=self.name)
            elif tracing:
                left = deadline - wall if deadline else None
                self._emit(schema.Delivered, subscription, event=event, via=broker, left=left)
            self._hurried = self._hurried or subscription.urgent

    def _on_dropped(self, subscription: _Subscription, dropped: messages.Dropped) -> None:
        before, through = subscription.received, dropped.through
        count = through - before
        self._unreported[subscription] = None
        if count > 0:
            subscription.skip(through)
            count -= dropped.expired_between(before, through)
            if count > 0:
                self._emit(schema.Missed, subscription, reason="overflow", count=count)
        else:
            subscription.lack(through)
        self._hurried = self._hurried or subscription.urgent

    # --------------------------------------------------------------------------------------------------------- time
    def _report_soon(self) -> None:
        if self._hurried:
            self._report()
        elif not self._report_due:
            self._report_due = True
            self._simulation.after(self._pace.report_ms * MILLISECOND, self._report_now, self.life)

    def _report_now(self, life: int) -> None:
        if life != self.life:
            return
        if self.paused:
            self._kept.append((self._report_now, (life,)))
            return
        self._report_due = False
        if self._open and self._unreported:
            self._report()

    def _report(self) -> None:
        subscriptions, self._unreported, self._hurried = list(self._unreported), {}, False
        received = tuple(s.received for s in subscriptions)
        missing = any(s.gap for s in subscriptions)
        late = tuple(s.late for s in subscriptions)
        numbers = tuple(s.number for s in subscriptions)
        self._send(messages.Progress(numbers, received, received, missing, late if any(late) else ()))
        for subscription in subscriptions:
            subscription.report()

    def _tick(self, end: End) -> None:
        """Says that someone is here, and again what was not answered; gives up a broker from which nothing comes."""
        ping = self._pace.ping_ms * MILLISECOND
        if end is not self._end:
            return
        if self.paused:
            self._kept.append((self._tick, (end,)))
        elif not self._open:
            self._close("no session in time")
        elif self._simulation.now - self._heard_at >= SILENT_PINGS * ping:
            self._close(f"nothing heard for {SILENT_PINGS * ping // SECOND} s")
        else:
            self._send(messages.Ping())
            for subscription in self._subscriptions.values():
                self._ask(subscription)
            self._simulation.after(ping, self._tick, end)
