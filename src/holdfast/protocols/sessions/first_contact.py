"""How a client that knows no more than addresses gets to its first broker: it dials them in turn, until a link is up.

Any link that comes of it will do, also a late one. What is made of the client then is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.kernel.inputs import ConnectFailed, LinkUp, TimerKey
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.addresses import Addresses
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.patience import Patience

if TYPE_CHECKING:
    from random import Random

TIMERS: Final = "contact"  # begins the keys of its timers
PAUSE: Final = (TIMERS, "pause")
DIALLED: Final = (TIMERS, "dialled")


class FirstContact:
    """Of one life of a client."""

    def __init__(self, settings: ClientSettings, rng: Random) -> None:
        self._addresses = Addresses(settings.addresses, settings.pause_min, settings.pause_max, rng)
        self._patience = Patience(settings)
        self._patience.choose_among(self._addresses.are_several)
        self._is_dialling = False  # and not pausing
        self._given_up: set[str] = set()  # addresses whose attempt took too long, and may still come to something

    @property
    def address(self) -> str:
        """What is dialled, or will be next."""
        return self._addresses.current

    def dial(self, out: Outbox) -> None:
        self._is_dialling = True
        out.connect("", self.address)
        out.set_timer(DIALLED, self._patience.opening_max)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if self._is_dialling and failed.address == self.address:
            self._failed(failed.reason, failed.refusal, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if key == PAUSE:
            self.dial(out)
        elif key == DIALLED:
            if self._is_dialling:
                self._patience.was_not_opened()
                self._given_up.add(self.address)
                self._failed("no answer in time", "", out)
        else:
            broken("a timer of the first contact has a known name", key=key)

    def refuse(self, up: LinkUp, reason: str, refusal: str, out: Outbox) -> None:
        """A link that a client can't go on with."""
        out.disconnect(up.link, reason)
        if self._is_dialling and up.address == self.address:
            self._failed(reason, refusal, out)

    def gave_up(self, address: str) -> bool:
        """Whether a link may come of an attempt that was given up; asked once, when it has come."""
        was_given_up = address in self._given_up
        self._given_up.discard(address)
        return was_given_up

    def end(self, out: Outbox) -> None:
        """There is a link to go on with, or nobody wants one any more."""
        out.cancel_timer(PAUSE)
        out.cancel_timer(DIALLED)

    def _failed(self, reason: str, refusal: str, out: Outbox) -> None:
        out.complete(requests.UNSOLICITED, requests.NotReached(self.address, reason, refusal))
        out.cancel_timer(DIALLED)
        self._is_dialling = False
        out.set_timer(PAUSE, self._addresses.failed())
