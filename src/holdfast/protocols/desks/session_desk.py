"""The broker's side of sessions: what clients ask, and what they are answered.

Everything that must outlive a link is in the core, and changes only by commands; here is what concerns the links of the
moment. Replies are held until the end of the turn, when the sequencer has journalled it: nothing is said to a client
that could be forgotten, since a send waits for what was appended before.

Five helpers do the rest: `Attachments` knows the links, `Replies` says what a turn came to, `Deliveries` sends events
and sends them again, `Admission` takes publications in or makes their publishers wait, `Upkeep` is what happens now and
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import Drained, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.kernel.sequencing import CommandsApplied, Deposed, Elected, LeaderKnown
from holdfast.kernel.time import MILLISECOND
from holdfast.model.batch import EventBatch
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.outputs import (
    Answered,
    Entered,
    Expired,
    Freed,
    MadeByApplication,
    NotOpened,
    Opened,
    Removed,
    Reply,
    Woken,
)
from holdfast.protocols.core.register import EPOCH_MAX
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.admission import Admission
from holdfast.protocols.desks.attachments import Attachment, Attachments
from holdfast.protocols.desks.census import census, note_expired
from holdfast.protocols.desks.deliveries import Deliveries
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.overlay import (
    Alone,
    ClientsSentElsewhere,
    Overlay,
    PublicationReleased,
    PublicationsAnswerable,
)
from holdfast.protocols.desks.publications import alternate_addresses, check_publication, direct_addresses
from holdfast.protocols.desks.replies import Replies
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.desks.upkeep import Upkeep
from holdfast.protocols.sessions.messages import (
    Advertise,
    CloseSession,
    DirectChanged,
    OpenSession,
    Ping,
    Pong,
    Progress,
    Publish,
    Redirect,
    SessionClosed,
    SessionOpened,
    Subscribe,
    SubscriptionEnded,
    Unadvertise,
    Unsubscribe,
)

CLIENTS: Final = frozenset({Role.CLIENT})
EVENTS_FEW: Final = 256  # of a subscription, kept at the broker
BYTES_FEW: Final = 1024 * 1024


class SessionDesk(Part):
    """Serves clients: their links, their sessions, what they say and what is said to them."""

    name: ClassVar[str] = "sessions"
    heard_from: ClassVar[frozenset[Role]] = CLIENTS
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {
        OpenSession: CLIENTS,
        Subscribe: CLIENTS,
        Unsubscribe: CLIENTS,
        Advertise: CLIENTS,
        Unadvertise: CLIENTS,
        Publish: CLIENTS,
        Progress: CLIENTS,
        CloseSession: CLIENTS,
        Ping: CLIENTS,
    }
    notices: ClassVar[tuple[type[Notice], ...]] = (
        CommandsApplied,
        Elected,
        Deposed,
        LeaderKnown,
        PublicationReleased,
        PublicationsAnswerable,
        ClientsSentElsewhere,
    )

    def __init__(
        self,
        node: str,
        core: BrokerCore,
        sequencer: Sequencer,
        settings: DeskSettings | None = None,
        overlay: Overlay | None = None,
    ) -> None:
        self._node = node
        self._overlay = overlay or Alone()
        self._core = core
        self._sequencer = sequencer
        self._settings = settings or DeskSettings()
        self._deliveries = Deliveries(node, core, self._settings)
        self._admission = Admission(core, sequencer, self._settings)
        self._clients = Attachments(core, self._settings)
        self._upkeep = Upkeep((self.name, "tick"), core, sequencer, self._clients, self._settings)
        self._replies = Replies(self._clients, self._overlay)
        self._disk = ""
        self._noted_size = 0  # the table's size that the trace knows of

    # -------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._disk = started.log_id
        self._clients.expect_all(out)
        self._upkeep.keep_ticking(out)
        self._tell_interests(out)  # what the disk brought back

    @property
    def log_id(self) -> str:
        """Names the log of events: the disk's, or the group's, which has one log on many disks."""
        if self._core.log is None:
            return ""
        return f"{self._core.memory:032x}" if self._sequencer.shares_log else self._disk

    def on_elected(self, elected: Elected, out: Outbox) -> None:
        """This replica leads now: whoever has a session may come here, and gets what it has not confirmed (D4-B6.5)."""
        self._clients.expect_all(out)
        self._admission.give_up()  # what came behind the word that we were deposed went nowhere
        self._upkeep.keep_ticking(out)
        self._take_up_all(out)

    def on_deposed(self, deposed: Deposed, out: Outbox) -> None:
        """It leads no more: clients find the next leader."""
        for attachment in self._clients.links.values():
            out.disconnect(attachment.link, "this replica leads no more")
        self._clients.expect_nobody()
        self._admission.give_up()

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.CLIENT:
            if up.peer in self._clients.links:
                self._detach(up.peer, out)  # the driver may say later that the older link is down
            self._clients.attach(up, out)
            self._upkeep.keep_ticking(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        attachment = self._clients.links.get(down.peer)
        if attachment is not None and attachment.link == down.link:
            self._detach(down.peer, out)

    def _detach(self, peer: str, out: Outbox) -> None:
        """Forgets a link, and what was to be said on it: the next one may be another client's."""
        self._clients.detach(peer, out)
        self._admission.forget(peer)
        self._deliveries.detach(peer)
        self._replies.forget(peer)
        out.drop_queue(peer)
        self._upkeep.keep_ticking(out)

    def take_over(self, peer: str, out: Outbox) -> int:
        """The number of a link on which there is to be no session: from now on it is not this part's affair."""
        attachment = self._clients.links.get(peer)
        if attachment is None or attachment.opening is not None:
            raise ProtocolError("a link with a session is not a direct one")
        self._detach(peer, out)
        return attachment.link

    def on_heard(self, peer: str, out: Outbox) -> None:
        if peer in self._clients.links:
            self._clients.heard_at[peer] = out.now
            if peer in out.queues and out.queues[peer].bytes > self._settings.unread_bytes_max:
                raise ProtocolError(f"more than {self._settings.unread_bytes_max} bytes of answers are not read")

    def on_ping(self, peer: str, ping: Ping, out: Outbox) -> None:
        if peer in self._clients.links:
            out.send(peer, Pong(), after=NOW)

    def on_drained(self, drained: Drained, out: Outbox) -> None:
        self._deliveries.send_all(drained.peer, out)

    # ----------------------------------------------------------------------------------------------------- sessions
    def on_open_session(self, peer: str, message: OpenSession, out: Outbox) -> None:
        attachment = self._clients.links.get(peer)
        if attachment is None:
            raise ProtocolError("a direct link has no session")
        self._check_counts(message)
        if not 0 <= message.epoch <= EPOCH_MAX:
            raise ProtocolError(f"an epoch is 0 to {EPOCH_MAX}, not {message.epoch}")
        attachment.ask(message)
        self._take_up(peer, message, out)

    def _take_up(self, peer: str, opening: OpenSession, out: Outbox) -> None:
        redirect = self._settings.redirect or self._overlay.elsewhere or self._sequencer.leader_addresses
        if redirect:
            out.send(peer, Redirect(redirect))
        elif self._sequencer.is_serving:
            # Not away any more, though the group may take its time: what is dropped between now and the answer would
            # not be among what the answer says is forgotten.
            self._clients.away.pop(peer, None)
            incarnation = self._clients.links[peer].incarnation
            self._sequencer.submit(commands.OpenSession(peer, opening.instance, opening.epoch, incarnation), out)
        else:
            # There will be a leader soon, if this replica is not cut off; going elsewhere would take longer.
            out.set_timer((self.name, "leaderless"), self._settings.leader_within)

    def on_leader_known(self, known: LeaderKnown, out: Outbox) -> None:
        self._take_up_all(out)

    def _take_up_all(self, out: Outbox) -> None:
        """This replica leads, or knows who does: those that waited for that get to know it too."""
        for peer, attachment in self._clients.links.items():
            if attachment.opening is not None and not attachment.epoch:
                self._take_up(peer, attachment.opening, out)

    def on_clients_sent_elsewhere(self, sent: ClientsSentElsewhere, out: Outbox) -> None:
        """Whoever comes back is told where to go. What they said and was not taken in yet, they say there."""
        for peer, attachment in list(self._clients.links.items()):
            self._detach(peer, out)
            out.disconnect(attachment.link, "clients of this broker are to go to another one")

    def _send_away(self, out: Outbox) -> None:
        if not self._sequencer.is_serving:
            for attachment in self._clients.links.values():
                if attachment.opening is not None:
                    out.disconnect(
                        attachment.link,
                        "no leader is known here: too few replicas are up, or an election is under way",
                    )

    def _check_counts(self, message: OpenSession | Progress) -> None:
        what, count = type(message).__name__, len(message.subscriptions)
        if not count == len(message.received) == len(message.consumed):
            raise ProtocolError(f"{what} names subscriptions and numbers in different counts")
        if count > self._settings.named_max:
            raise ProtocolError(f"{what} names {count} subscriptions, beyond named_max, {self._settings.named_max}")

    def on_close_session(self, peer: str, message: CloseSession, out: Outbox) -> None:
        session = self.session(peer)
        if session is None:
            self._replies.say(peer, SessionClosed())
        else:
            self._replies.answer_now(peer)
            self._sequencer.submit(commands.EndSession(peer, session.epoch), out)

    def _opened(self, opened: Opened, out: Outbox) -> None:
        client = opened.client
        self._clients.away.pop(client, None)
        attachment = self._clients.links.get(client)
        opening = None if attachment is None else attachment.opening
        if attachment is None or opening is None or opening.instance != opened.instance:
            if attachment is None:
                self._clients.away[client] = out.now
            return
        if not self._sequencer.is_serving:
            return  # it was opened at the leader; here the client still waits to be told who that is
        session = self._core.sessions[client]
        attachment.tell_direct(direct_addresses(self._core, self._sequencer))
        attachment.tell_alternates(alternate_addresses(self._sequencer, self._settings))
        self._replies.say(client, self._session_opened(session, opening, attachment))
        if not attachment.open(opened.epoch):
            return  # asked twice; what has happened on the link since then stands
        self._admission.forget(client)
        known: dict[int, tuple[int, int]] = {}
        resumed = opening.epoch == opened.epoch
        if resumed:
            numbers = zip(opening.subscriptions, opening.received, opening.consumed, strict=True)
            known = {number: (received, consumed) for number, received, consumed in numbers}
        self._deliveries.attach(client, known, out)
        for number, reason in session.ended.items():
            self._replies.say(client, SubscriptionEnded(number, reason))
        if resumed:
            command = commands.Receive(client, opened.epoch, opening.subscriptions, opening.received)
            self._sequencer.submit(command, out)
        self._deliveries.send_all(client, out)

    def _session_opened(self, session: Session, opening: OpenSession, attachment: Attachment) -> SessionOpened:
        forgotten = [n for n in opening.subscriptions if n not in session.subscriptions and n not in session.ended]
        return SessionOpened(
            session.epoch,
            self._replies.answerable(session),
            self._settings.publish_window,
            self._core.memory,
            tuple(forgotten),
            attachment.alternates,
            self._replies.refusals(session),
            self.log_id,
            self._core.hosting.window,
            attachment.direct,
            self._settings.reissue,
            report_every(self._core.limits),
            self._overlay.member_since,
        )

    def session(self, peer: str) -> Session | None:
        """The session that is open on the peer's link. Without one, a message came too early, and comes again."""
        return self._clients.session(peer)

    def reply(self, peer: str, message: Message) -> None:
        """Says something to a client when the turn is journalled."""
        self._replies.say(peer, message)

    # ---------------------------------------------------------------------------------- subscribing and publishing
    def on_subscribe(self, peer: str, message: Subscribe, out: Outbox) -> None:
        if not 1 <= message.window <= self._settings.window_max:
            raise ProtocolError(f"a subscription's window is 1 to {self._settings.window_max}, not {message.window}")
        session = self.session(peer)
        if session is not None:
            command = commands.Subscribe(
                peer, session.epoch, message.subscription, message.filter, message.overflow, message.window
            )
            self._sequencer.submit(command, out)

    def on_unsubscribe(self, peer: str, message: Unsubscribe, out: Outbox) -> None:
        session = self.session(peer)
        if session is not None:
            self._sequencer.submit(commands.Unsubscribe(peer, session.epoch, message.subscription), out)

    def on_advertise(self, peer: str, message: Advertise, out: Outbox) -> None:
        session = self.session(peer)
        if session is not None:
            command = commands.Advertise(peer, session.epoch, message.advertisement, message.filter)
            self._sequencer.submit(command, out)

    def on_unadvertise(self, peer: str, message: Unadvertise, out: Outbox) -> None:
        session = self.session(peer)
        if session is not None:
            self._sequencer.submit(commands.Unadvertise(peer, session.epoch, message.advertisement), out)

    def on_progress(self, peer: str, message: Progress, out: Outbox) -> None:
        self._check_counts(message)
        if len(message.late) not in (0, len(message.subscriptions)):
            raise ProtocolError("Progress names subscriptions and late events in different counts")
        session = self.session(peer)
        if session is not None and self._deliveries.on_progress(peer, message, out):
            command = commands.Receive(peer, session.epoch, message.subscriptions, message.received, message.late)
            self._sequencer.submit(command, out)

    def on_publish(self, peer: str, message: Publish, out: Outbox) -> None:
        session = self.session(peer)
        if session is None:
            return
        answered = min(message.confirmed, session.accepted)
        batch = check_publication(peer, message, answered, self._settings.publish_window)
        if message.direct and not direct_addresses(self._core, self._sequencer):
            self._clients.links[peer].tell_direct(())  # whatever it was told of that was lost
            self._replies.say(peer, DirectChanged(()))
        if self._overlay.admits(session, message, batch, out) and self._admission.publish(session, message, batch, out):
            out.set_timer((self.name, "block"), self._admission.until_patience_ends(out))

    # ------------------------------------------------------------------------------------------------------ outputs
    def on_publication_released(self, released: PublicationReleased, out: Outbox) -> None:
        self.on_publish(released.client, released.message, out)

    def on_publications_answerable(self, answerable: PublicationsAnswerable, out: Outbox) -> None:
        self._replies.answer_more(answerable.clients)

    def on_commands_applied(self, applied: CommandsApplied, out: Outbox) -> None:
        freed, answered = False, []
        for output in applied.outputs:
            match output:
                case Woken():
                    for subscription in output.subscriptions:
                        self._deliveries.send(subscription, out)
                case Answered():
                    self._replies.answer(output.client)
                    answered.append(output.client)
                case Reply():
                    self._replies.reply(output)
                case NotOpened():
                    attachment = self._clients.links.get(output.client)
                    opening = None if attachment is None else attachment.opening
                    if opening is not None and opening.instance == output.instance:
                        self._replies.say(output.client, output.refusal)
                case Opened():
                    self._opened(output, out)
                case Expired():
                    if out.tracing and self._sequencer.is_serving:  # of a group, one replica says so
                        note_expired(self._node, self._core, output, out)
                case Removed():
                    self._deliveries.forget(output.subscription)
                case Freed():
                    freed = True
                case MadeByApplication():
                    _note_made(output.batch, out)
                case Entered():
                    self._overlay.entered(output, out)
        self._tell_interests(out)
        if not self._sequencer.applies_at_once:
            self._admission.on_applied(answered, out)
        elif freed:
            # Here and not at the end of the turn, so that who publishes next has to stand behind those that waited,
            # however the driver cuts turns.
            self._admission.release(out)

    def _tell_interests(self, out: Outbox) -> None:
        if self._core.interests.have_changed:
            self._overlay.interests_changed(out)

    def finish(self, out: Outbox) -> None:
        """Says what the turn came to. The sequencer's own `finish` has run before."""
        after = NOW if self._sequencer.applied_is_safe else LATEST
        for peer, message in self._replies.take():
            if peer in self._clients.links:
                out.send(peer, message, after=after)
        if out.tracing and self._noted_size != len(self._core.index):
            self._noted_size = len(self._core.index)
            out.note("table_size", node=self._node, table="subscriptions", entries=self._noted_size)
        if self._deliveries.batches:
            for peer, message in self._deliveries.take():
                out.send(peer, message, Lane.USER, after)

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if key[1] == "leaderless":
            self._send_away(out)
            return
        if key[1] == "block":
            self._admission.lose_patience(out)
            if self._admission.is_holding:
                out.set_timer((self.name, "block"), max(MILLISECOND, self._admission.until_patience_ends(out)))
            return
        self._deliveries.repeat(out)
        for peer, message in self._upkeep.look_after_links(out):
            self._replies.say(peer, message)
        self._upkeep.let_time_pass(out)
        self._upkeep.keep_ticking(out)

    def measure(self) -> dict[str, int]:
        return census(self._core) | {
            "clients_connected": len(self._clients.links),
            "clients_away": len(self._clients.away),
            "publishers_waiting": self._admission.waiting,
            "events_sent_total": self._deliveries.sent_total,
            "events_repeated_total": self._deliveries.repeated_total,
        }

    def check_invariants(self) -> None:
        self._deliveries.check_invariants()
        self._admission.check_invariants()


def report_every(limits: CoreLimits) -> int:
    """After how many events a client is to say how far it is, if subscriptions keep so few that one that tells of a few
    only a little later might overflow them; else 0."""
    if min(limits.backlog_bytes, limits.backlog_bytes_per_session) < BYTES_FEW:
        return 1
    return max(1, limits.backlog_events // 4) if limits.backlog_events < EVENTS_FEW else 0


def _note_made(batch: EventBatch, out: Outbox) -> None:
    """No client published them, so that a trace hears of them here: at every replica, and again after a restart."""
    for event in batch.events if out.tracing else ():
        out.note(
            "published",
            event=event.id,
            publisher=event.publisher,
            incarnation=event.incarnation,
            sequence=event.sequence,
            topic=event.topic,
            attributes=dict(event.attributes),
            derived=True,
        )
