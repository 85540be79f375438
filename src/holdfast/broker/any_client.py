"""The client of any scheme: it becomes one of the scheme of the first broker that it reaches, over that very link.

Until then it keeps what it is asked. From then on it hands everything to the scheme's own node, but for links that this
can't use: those of a broker that is of another scheme, which end the client, and those of peers that its scheme's
clients take no links from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.broker.client_assembly import make_client
from holdfast.broker.registry import SCHEMES, Schemes
from holdfast.broker.scheme_client import SchemeClient
from holdfast.codec.catalogue import Catalogue
from holdfast.errors import UnknownScheme
from holdfast.kernel.inputs import ConnectFailed, Input, LinkUp, Requested, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.node import Node, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.first_contact import TIMERS, FirstContact

if TYPE_CHECKING:
    from random import Random

SHOWN_CHARACTERS_MAX = 64  # of what a peer calls its scheme

# What one becomes that is closed before it has reached anyone: of no scheme.
_CLOSED = SchemeClient(make_client, CLIENT_CATALOGUE)


def spoken_in(scheme: str) -> Catalogue:
    """What a client speaks with those who are of a scheme; with those of an unknown one, what all clients do."""
    return SCHEMES.client(scheme).catalogue if scheme in SCHEMES else CLIENT_CATALOGUE


class AnyClient:
    """A client's node."""

    def __init__(
        self, settings: ClientSettings, rng: Random, streams: StoredStreams, schemes: Schemes = SCHEMES
    ) -> None:
        self._settings = settings
        self._rng = rng
        self._streams = streams
        self._schemes = schemes
        self._contact = FirstContact(settings, rng)
        self._kept: list[Input] = []  # Started and what was asked since, for the node that there will be
        self._kept_events = 0  # of these, what is to be published
        self._node: Node | None = None  # the scheme's
        self._client = _CLOSED  # what it is
        self._is_over = False  # a broker of another scheme was there

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        node = self._node
        if node is None:
            self._look_around(inputs, out)
            return
        for event in inputs:
            if type(event) is LinkUp or type(event) is TimerFired:
                inputs = self._sift(inputs, out)
                break
        node.handle(inputs, out)

    # ------------------------------------------------------------------------------------------------- first contact
    def _look_around(self, inputs: list[Input], out: Outbox) -> None:
        for place, event in enumerate(inputs, 1):
            match event:
                case Started():
                    self._kept.append(event)
                    self._contact.dial(out)
                case ConnectFailed():
                    self._contact.on_connect_failed(event, out)
                case TimerFired():
                    self._contact.on_timer(event.key, out)
                case Requested(command=requests.PublishEvents()):
                    self._keep(event.request, event.command, event, out)
                case Requested():
                    self._kept.append(event)
                    if type(event.command) is requests.Close:
                        self._become(_CLOSED, self._contact.address, inputs[place:], out)
                        return
                case LinkUp():
                    client = self._client_for(event, out)
                    if client is not None:
                        out.complete(requests.UNSOLICITED, requests.SchemeFound(event.scheme))
                        self._become(client, event.address, [event, *inputs[place:]], out)
                        return

    def _keep(self, request: int, command: requests.PublishEvents, event: Requested, out: Outbox) -> None:
        """What the scheme's publisher would refuse without a broker, is refused here."""
        waiting_max, count = self._settings.waiting_max, len(command.events)
        if not command.retry and count:
            out.complete(request, requests.refused_whole(command, requests.NOT_CONNECTED))
        elif self._kept_events + count > waiting_max:
            out.complete(request, requests.refused_whole(command, requests.too_many(waiting_max)))
        else:
            self._kept.append(event)
            self._kept_events += count

    def _client_for(self, up: LinkUp, out: Outbox) -> SchemeClient | None:
        """What a link's broker wants as its client. None, and the link is closed, if that can't be told."""
        if not up.initiated:
            out.disconnect(up.link, "this client has not reached a broker yet")
        elif up.role is not Role.BROKER:
            self._contact.refuse(up, f"{up.peer} is no broker", requests.NO_BROKER, out)
        else:
            try:
                return self._schemes.client(up.scheme)
            except UnknownScheme:
                self._contact.refuse(up, self._unknown(up), requests.UNKNOWN_SCHEME, out)
        return None

    def _unknown(self, up: LinkUp) -> str:
        if not up.scheme:
            return f"{up.peer} names no scheme: it is of an earlier version"
        known = ", ".join(self._schemes.kinds)
        return f"{up.peer} is of the scheme {_shown(up.scheme)}, which is not known here; known are {known}"

    def _become(self, client: SchemeClient, address: str, inputs: list[Input], out: Outbox) -> None:
        self._contact.end(out)
        first = self._settings.addresses.index(address)
        addresses = (*self._settings.addresses[first:], *self._settings.addresses[:first])
        settings = replace(self._settings, addresses=addresses, contact=address)
        self._client, self._node = client, client.make(settings, self._rng, self._streams)
        kept, self._kept = self._kept, []
        self._node.handle([*kept, *self._sift(inputs, out)], out)

    # -------------------------------------------------------------------------------------------------------- later
    def _sift(self, inputs: list[Input], out: Outbox) -> list[Input]:
        """What of all this is for the scheme's node."""
        sifted: list[Input] = []
        for event in inputs:
            if type(event) is LinkUp:
                sifted += self._judge(event, out)
            elif type(event) is not TimerFired or event.key[0] != TIMERS:
                sifted.append(event)
        return sifted

    def _judge(self, up: LinkUp, out: Outbox) -> list[Input]:
        expected = self._client.catalogue.scheme
        if not up.initiated:
            if up.role in self._client.listens:
                return [up]
            out.disconnect(up.link, f"clients of the scheme {expected!r} take no links from {up.role.value}s")
            return []
        if up.scheme == expected or not expected:
            return [up]
        reason = f"{up.peer} is of the scheme {_shown(up.scheme)}, and not of {expected!r}"
        out.disconnect(up.link, reason)
        if up.role is not Role.BROKER or up.scheme not in self._schemes or self._contact.gave_up(up.address):
            # Passed over, as at the beginning: a replica of a group may be of an earlier version, or of a later one.
            # What was dialled before there was a session, and comes too late, is not wanted whatever it is.
            return [ConnectFailed(up.peer, up.address, reason, requests.UNKNOWN_SCHEME)]
        if self._is_over:
            return []
        self._is_over = True
        changed = requests.SchemeChanged(up.address, up.scheme[:SHOWN_CHARACTERS_MAX], expected)
        out.complete(requests.UNSOLICITED, changed)
        return [Requested(requests.UNSOLICITED, requests.Close())]

    # ------------------------------------------------------------------------------------------------------ drivers
    def check_invariants(self) -> None:
        if self._node is not None:
            require(not self._kept, "what was kept is handed over", count=len(self._kept))
            self._node.check_invariants()

    def measure(self) -> dict[str, int]:
        measure_node: Callable[[], dict[str, int]] = getattr(self._node, "measure", dict)
        return measure_node()

    def measure_each(self) -> dict[str, dict[str, int]]:
        measure_node: Callable[[], dict[str, dict[str, int]]] = getattr(self._node, "measure_each", dict)
        return measure_node()


def _shown(scheme: str) -> str:
    return repr(scheme[:SHOWN_CHARACTERS_MAX])
