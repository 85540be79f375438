"""The part of a client that says what the client will publish, to every broker that it comes to."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import ClassVar

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.messages import (
    Advertise,
    Advertised,
    AdvertiseRefused,
    Unadvertise,
    Unadvertised,
)


class AdvertisementPhase(enum.Enum):
    MAKING = "making"  # not known to the broker of the moment, as far as we know
    LIVE = "live"
    ENDING = "ending"


class _Advertisement:
    __slots__ = ("enders", "filter", "maker", "number", "phase")

    def __init__(self, number: int, maker: int, filter: str) -> None:
        self.number = number
        self.filter = filter
        self.phase = AdvertisementPhase.MAKING
        self.maker: int | None = maker  # the request that waits for it; None once it was answered
        self.enders: list[int] = []

    def enter(self, phase: AdvertisementPhase) -> None:
        self.phase = phase

    def take_maker(self) -> int | None:
        """The request that waits for it, which is answered now."""
        maker, self.maker = self.maker, None
        return maker


class Advertiser(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "advertiser"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Advertised, AdvertiseRefused, Unadvertised), frozenset({Role.BROKER})
    )
    asked: ClassVar[tuple[type, ...]] = (requests.MakeAdvertisement, requests.EndAdvertisement)

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._advertisements: dict[int, _Advertisement] = {}
        self._last_number = 0
        self._restoring = 0  # how many, confirmed by an earlier broker, this one has not confirmed yet

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing."""
        return any(a.phase is not AdvertisementPhase.LIVE for a in self._advertisements.values())

    @property
    def is_restored(self) -> bool:
        """Whether the broker knows again what an earlier one knew. Until then it could refuse what was advertised."""
        return not self._restoring

    def _find(self, peer: str, number: int, phase: AdvertisementPhase) -> _Advertisement | None:
        found = self._advertisements.get(number) if self._conversation.is_open_with(peer) else None
        return found if found is not None and found.phase is phase else None

    # ----------------------------------------------------------------------------------------------------- requests
    def on_make_advertisement(self, request: int, command: requests.MakeAdvertisement, out: Outbox) -> None:
        if self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.AdvertisementRefused(None, "the client is closed"))
            return
        self._last_number += 1
        advertisement = _Advertisement(self._last_number, request, command.filter)
        self._advertisements[advertisement.number] = advertisement
        if self._conversation.is_open:
            self._conversation.ask(Advertise(advertisement.number, command.filter), out)

    def on_end_advertisement(self, request: int, command: requests.EndAdvertisement, out: Outbox) -> None:
        number = command.advertisement
        advertisement = self._advertisements.get(number)
        if advertisement is None or self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.AdvertisementOver(number))
            return
        advertisement.enders.append(request)
        if advertisement.phase is AdvertisementPhase.MAKING:
            self._answered(advertisement)
            if (maker := advertisement.take_maker()) is not None:
                out.complete(maker, requests.AdvertisementRefused(None, "ended before it was confirmed"))
        advertisement.enter(AdvertisementPhase.ENDING)
        if self._conversation.is_open:
            self._conversation.ask(Unadvertise(number), out)

    def _answered(self, advertisement: _Advertisement) -> None:
        if advertisement.maker is None:
            self._restoring -= 1

    # ------------------------------------------------------------------------------------------------------ answers
    def on_advertised(self, peer: str, message: Advertised, out: Outbox) -> None:
        advertisement = self._find(peer, message.advertisement, AdvertisementPhase.MAKING)
        if advertisement is None:
            return
        self._conversation.progressed(out)
        self._answered(advertisement)
        advertisement.enter(AdvertisementPhase.LIVE)
        if (maker := advertisement.take_maker()) is not None:
            out.complete(maker, requests.AdvertisementMade(advertisement.number))

    def on_advertise_refused(self, peer: str, refused: AdvertiseRefused, out: Outbox) -> None:
        advertisement = self._find(peer, refused.advertisement, AdvertisementPhase.MAKING)
        if advertisement is None:
            return
        self._answered(advertisement)
        del self._advertisements[advertisement.number]
        if advertisement.maker is not None:
            result = requests.AdvertisementRefused(
                refused.reason, refused.problem, refused.offset, refused.expected, refused.limit, refused.allowed
            )
            out.complete(advertisement.maker, result)
        else:
            lost = requests.AdvertisementLost(advertisement.number, refused.problem)
            out.complete(requests.UNSOLICITED, lost)

    def on_unadvertised(self, peer: str, message: Unadvertised, out: Outbox) -> None:
        advertisement = self._find(peer, message.advertisement, AdvertisementPhase.ENDING)
        if advertisement is not None:
            self._conversation.progressed(out)
            del self._advertisements[advertisement.number]
            self._over(advertisement, out)

    def _over(self, advertisement: _Advertisement, out: Outbox) -> None:
        for request in advertisement.enders:
            out.complete(request, requests.AdvertisementOver(advertisement.number))

    # ----------------------------------------------------------------------------------------- called by the client
    def opened(self, out: Outbox) -> None:
        """A session is open. Everything is said again: the broker may have given up on us, and says so only of
        subscriptions."""
        self._restoring = 0
        for advertisement in self._advertisements.values():
            if advertisement.phase is not AdvertisementPhase.ENDING:
                advertisement.enter(AdvertisementPhase.MAKING)
                self._restoring += advertisement.maker is None
        self.repeat(out)

    def repeat(self, out: Outbox) -> None:
        """Says again what was not answered."""
        for advertisement in self._advertisements.values():
            if advertisement.phase is AdvertisementPhase.MAKING:
                self._conversation.ask(Advertise(advertisement.number, advertisement.filter), out)
            elif advertisement.phase is AdvertisementPhase.ENDING:
                self._conversation.ask(Unadvertise(advertisement.number), out)

    def end_all(self, reason: str, out: Outbox) -> None:
        for advertisement in self._advertisements.values():
            if advertisement.maker is not None:
                out.complete(advertisement.maker, requests.AdvertisementRefused(None, reason))
            self._over(advertisement, out)
        self._advertisements = {}
        self._restoring = 0

    def check_invariants(self) -> None:
        restoring = sum(a.phase is AdvertisementPhase.MAKING and a.maker is None for a in self._advertisements.values())
        if self._conversation.is_open:
            require(restoring == self._restoring, "what is being restored is counted", count=self._restoring)
