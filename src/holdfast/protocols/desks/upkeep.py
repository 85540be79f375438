"""What a broker does for its sessions now and then: closes silent links, says some things again, lets time pass."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.attachments import Attachments
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.publications import alternate_addresses, direct_addresses
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.sessions.messages import AlternatesChanged, DirectChanged, SubscriptionEnded


class Upkeep:
    """Goes on while a client is there, or is expected back."""

    def __init__(
        self, key: TimerKey, core: BrokerCore, sequencer: Sequencer, clients: Attachments, settings: DeskSettings
    ) -> None:
        self._key = key
        self._core = core
        self._sequencer = sequencer
        self._clients = clients
        self._settings = settings
        self._ticking = False

    def keep_ticking(self, out: Outbox) -> None:
        if not self._ticking and (self._clients.links or self._clients.away):
            self._ticking = True
            out.set_timer(self._key, self._settings.tick)

    def look_after_links(self, out: Outbox) -> Iterator[tuple[str, Message]]:
        """Closes those that are silent. To others: which subscriptions ended, again; where else to publish, anew."""
        self._ticking = False
        direct = direct_addresses(self._core, self._sequencer)
        alternates = alternate_addresses(self._sequencer, self._settings)
        for peer, attachment in self._clients.close_silent(out).items():
            if not attachment.epoch:
                continue
            if attachment.direct != direct:
                attachment.tell_direct(direct)
                yield peer, DirectChanged(direct)
            if attachment.alternates != alternates:
                attachment.tell_alternates(alternates)
                yield peer, AlternatesChanged(alternates)
            session = self._core.register.session(peer, attachment.epoch)
            for number, reason in () if session is None else session.ended.items():
                yield peer, SubscriptionEnded(number, reason)

    def let_time_pass(self, out: Outbox) -> None:
        """Time passes in the core by commands only: one is due when the oldest event of some subscription expired."""
        self.drop_those_away(out)
        before = out.wall - self._settings.expire_after
        if self._sequencer.is_serving and any(
            subscription.has_expired(before) for subscription in self._core.register.perishing
        ):
            self._sequencer.submit(commands.ExpireEvents("", before), out)

    def drop_those_away(self, out: Outbox) -> None:
        for client in self._clients.give_up_late(out):
            session = self._core.sessions.get(client)
            if session is not None:
                out.note("control", what="client-away", detail={"client": client})
                self._sequencer.submit(commands.DropSubscriptions(client, session.epoch), out)
