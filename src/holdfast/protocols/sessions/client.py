"""The client: connects, keeps its session over broken links, and says goodbye.

A client is a node like a broker's, and the library that users call and the simulator both drive this very machine. It
has several parts: this one, which talks to one broker at a time and changes brokers, a `Publisher` and a `Subscriber`,
companions, which say their things again to every broker, and maybe links to others, which its scheme gives it.

- It knows one or more addresses and tries them in turn, with a pause that grows; a broker may send it elsewhere, and
  may tell it of others that serve too.
- What it publishes stays in flight until it is answered, and is sent again after a lost link. If the broker lost its
  whole memory, events in flight are published again; subscribers are spared the repetition by their own clients, which
  remember how far they were with each publisher. If it only forgot this client, nobody knows whether events in flight
  were accepted, and they fail as that.
- With `retry=False` an event that a lost link swallows is lost (D1-B4.4), and with `resubscribe=False` a subscription
  that the broker forgot stays forgotten (D1-C1): for experiments that need a naive client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.addresses import Addresses
from holdfast.protocols.sessions.conversation import Companion, Conversation, Phase
from holdfast.protocols.sessions.messages import (
    AlternatesChanged,
    CloseSession,
    OpenDirect,
    Ping,
    Pong,
    Redirect,
    Refusal,
    SessionClosed,
    SessionOpened,
    SessionRefused,
)
from holdfast.protocols.sessions.other_links import OtherLinks
from holdfast.protocols.sessions.patience import Patience
from holdfast.protocols.sessions.publisher import Publisher
from holdfast.protocols.sessions.subscriber import Subscriber

if TYPE_CHECKING:
    from random import Random


class ClientSession(Part):
    """The first part of a client's node."""

    name: ClassVar[str] = "client"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (SessionOpened, SessionRefused, SessionClosed, Redirect, AlternatesChanged, Pong), frozenset({Role.BROKER})
    )
    asked: ClassVar[tuple[type, ...]] = (requests.Close,)

    def __init__(
        self,
        conversation: Conversation,
        publisher: Publisher,
        subscriber: Subscriber,
        companions: Sequence[Companion],
        others: OtherLinks,
        rng: Random,
    ) -> None:
        settings = conversation.settings
        self._conversation = conversation
        self._publisher = publisher
        self._subscriber = subscriber
        self._companions = tuple(companions)
        self._others = others
        self._settings = settings
        self._addresses = Addresses(settings.addresses, settings.pause_min, settings.pause_max, rng)
        self._patience = Patience(settings)
        self._instance = rng.getrandbits(63)
        self.epoch = 0
        self._link = 0
        self._address = ""
        self._heard_at = 0
        self._refusal = ""  # the broker's reason to give us no session on this link
        self._closing: list[int] = []  # requests to close

    @property
    def phase(self) -> Phase:
        return self._conversation.phase

    # --------------------------------------------------------------------------------------------------- connecting
    def on_started(self, started: Started, out: Outbox) -> None:
        self._conversation.begin(started.incarnation)
        self._connect(out, self._settings.contact)

    def _connect(self, out: Outbox, contact: str = "") -> None:
        """`contact` is dialled already."""
        self._conversation.enter(Phase.CONNECTING)
        self._address = self._addresses.current
        self._patience.choose_among(self._addresses.are_several)
        # What another part dials is ours too, once it is a link.
        if self._address != contact and not self._others.is_dialling(self._address):
            out.connect("", self._address)
        out.set_timer((self.name, "opening"), self._patience.opening_max)

    def _pause(self, out: Outbox) -> None:
        """Waits, longer each time, and then tries the next address."""
        self._conversation.enter(Phase.PAUSING)
        out.cancel_timer((self.name, "opening"))
        out.set_timer((self.name, "pause"), self._addresses.failed())

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if self.phase is Phase.CONNECTING and failed.address == self._address:
            self._not_reached(failed.reason, out, failed.refusal)
            self._pause(out)

    def _not_reached(self, reason: str, out: Outbox, refusal: str = "") -> None:
        out.complete(requests.UNSOLICITED, requests.NotReached(self._address, reason, refusal))

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if self.phase is not Phase.CONNECTING or up.address != self._address:
            if not self._others.takes(up, out):
                out.disconnect(up.link, "not wanted any more")
            return
        if up.role is not Role.BROKER:
            out.disconnect(up.link, "no broker")
            self._not_reached(f"{up.peer} is no broker", out, requests.NO_BROKER)
            self._pause(out)
            return
        self._conversation.enter(Phase.OPENING)
        self._conversation.turn_to(up.peer)
        self._link, self._heard_at, self._refusal = up.link, out.now, ""
        self._open(out)
        self._conversation.started_talking(out)

    def _open(self, out: Outbox) -> None:
        self._conversation.send(self._subscriber.opening(self._instance, self.epoch), out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if not self._link or down.link != self._link:
            return
        out.drop_queue(self._conversation.broker)
        self._link = 0
        self._others.close("the session is elsewhere", out)
        if self.phase is Phase.CLOSED:
            return
        if self.phase is Phase.OPEN:
            out.complete(requests.UNSOLICITED, requests.Disconnected(down.reason))
        else:
            self._not_reached(down.reason, out, self._refusal)
        self._publisher.link_lost(down.reason, out)
        if self._closing:
            self._closed("the broker was gone", out)
            return
        self._pause(out)

    def on_heard(self, peer: str, out: Outbox) -> None:
        if peer == self._conversation.broker:
            self._heard_at = out.now

    def on_pong(self, peer: str, pong: Pong, out: Outbox) -> None:
        if peer == self._conversation.broker:
            self._patience.answered(out.now)

    def on_redirect(self, peer: str, redirect: Redirect, out: Outbox) -> None:
        if not self._conversation.is_opening_with(peer):
            return
        if not self._addresses.redirect(redirect.addresses):
            out.disconnect(self._link, "sent from one broker to the next")  # LinkDown leads to a pause
            return
        link, self._link = self._link, 0
        out.drop_queue(peer)
        out.disconnect(link, "redirected")
        self._connect(out)

    # ----------------------------------------------------------------------------------------------------- sessions
    def on_session_opened(self, peer: str, opened: SessionOpened, out: Outbox) -> None:
        if not self._conversation.is_opening_with(peer):
            return
        if opened.epoch < 1:
            raise ProtocolError(f"an epoch is 1 or more, not {opened.epoch}")
        resumed = self.epoch == opened.epoch
        self._publisher.check_opened(opened, resumed)
        self._others.check(opened.direct)
        self._conversation.enter(Phase.OPEN)
        self._addresses.succeeded()
        self._addresses.learn(opened.alternates)
        self._patience.choose_among(self._addresses.are_several)
        self._patience.opened()
        out.cancel_timer((self.name, "opening"))
        out.set_timer((self.name, "ping"), self._patience.ping_every)
        self.epoch = opened.epoch
        self._conversation.opened(opened, resumed)
        self._others.opened(OpenDirect(self.epoch, self._instance), self._address, opened.direct, out)
        for companion in self._companions:
            companion.opened(out)
        self._publisher.opened(opened, resumed, out)
        out.complete(requests.UNSOLICITED, requests.Connected(self._address, peer, resumed))
        self._subscriber.opened(opened.forgotten, resumed, opened.reissue, out)

    def on_alternates_changed(self, peer: str, changed: AlternatesChanged, out: Outbox) -> None:
        if self._conversation.is_open_with(peer):
            self._addresses.learn(changed.alternates)
            self._patience.choose_among(self._addresses.are_several)

    def on_session_refused(self, peer: str, refused: SessionRefused, out: Outbox) -> None:
        if not (self._conversation.is_opening_with(peer) or self._conversation.is_open_with(peer)):
            return
        if refused.reason is Refusal.LIMIT:
            self._refusal = refused.reason.value
            out.disconnect(self._link, refused.problem)  # the broker is full: LinkDown leads to the next address
            return
        out.complete(requests.UNSOLICITED, requests.SessionLost(refused.problem))
        self._closed(refused.problem, out, refused.reason)

    def on_session_closed(self, peer: str, closed: SessionClosed, out: Outbox) -> None:
        if not self._conversation.is_open_with(peer):
            return
        if self._closing:
            self._closed("", out)
        else:
            # The broker gave up on this client while it was still there; it starts again with a new session.
            out.disconnect(self._link, "the broker closed the session")

    # ------------------------------------------------------------------------------------------------------ closing
    def on_close(self, request: int, command: requests.Close, out: Outbox) -> None:
        if self.phase is Phase.CLOSED:
            out.complete(request, requests.Closed())
            return
        self._closing.append(request)
        if self.phase is Phase.OPEN:
            self._subscriber.report_rest(out)
            self._conversation.ask(CloseSession(), out)
        else:
            link, self._link = self._link, 0
            if link:
                out.disconnect(link, "closed by the application")
            self._closed("", out)

    def _closed(self, reason: str, out: Outbox, refusal: Refusal | None = None) -> None:
        self._conversation.enter(Phase.CLOSED)
        if self._link:
            out.disconnect(self._link, reason or "closed by the application")
        for timer in ("opening", "pause", "ping", "repeat"):
            out.cancel_timer((self.name, timer))
        self._others.close("the session is closed", out)
        why = reason or "the client was closed"
        for companion in self._companions:
            companion.end_all(why, out)
        self._publisher.give_up(refusal, why, out)
        self._subscriber.end_all(why, out)
        for request in self._closing:
            out.complete(request, requests.Closed(reason))
        self._closing = []

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "pause":
                if self.phase is Phase.PAUSING:  # and not closed in this very turn
                    self._connect(out)
            case "opening":
                self._give_up_attempt(out)
            case "ping":
                self._ping(out)
            case "repeat":
                self._conversation.timer_fired()
                self._repeat(out)
            case _:
                broken("a timer of the client has a known name", key=key)

    def _give_up_attempt(self, out: Outbox) -> None:
        self._patience.was_not_opened()
        if self.phase is Phase.OPENING:
            out.disconnect(self._link, "no session in time")  # LinkDown leads to a pause
        elif self.phase is Phase.CONNECTING:
            self._not_reached("no answer in time", out)
            self._pause(out)

    def _ping(self, out: Outbox) -> None:
        if self.phase is not Phase.OPEN:
            return
        silent_after = self._patience.silent_after
        if out.now - self._heard_at >= silent_after:
            self._patience.was_silent()
            out.disconnect(self._link, f"nothing heard for {silent_after / SECOND:g} s")
            return
        if self._patience.needs_ping(self._heard_at, out.now):
            self._patience.pinged(out.now)
            self._conversation.send(Ping(), out, after=NOW)
        out.set_timer((self.name, "ping"), self._patience.ping_every)

    @property
    def _is_waiting(self) -> bool:
        own = self._publisher.is_waiting or self._subscriber.is_waiting
        return own or any(companion.is_waiting for companion in self._companions)

    def _repeat(self, out: Outbox) -> None:
        """Says again what has not been answered for a while. Over TCP that is rare, and harmless."""
        if self.phase is Phase.OPENING:
            self._open(out)
            self._conversation.expect_answers(out)
        elif self.phase is Phase.OPEN and (self._closing or self._is_waiting):
            if self._conversation.is_overdue(out):
                for companion in self._companions:
                    companion.repeat(out)
                self._publisher.repeat()
                self._subscriber.repeat(out)
                if self._closing:
                    self._conversation.send(CloseSession(), out)
            self._conversation.expect_answers(out)

    def check_invariants(self) -> None:
        if self.phase in {Phase.OPENING, Phase.OPEN}:
            require(self._link, "a session is on a link", phase=self.phase)
