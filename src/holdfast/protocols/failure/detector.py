"""Which neighbours are there, as far as this broker can tell: a part of its own, which every level may ask.

Suspicion may be wrong: a neighbour may be slow, or the link to it. It is taken back as soon as something is heard, and
the longer pause is remembered. A connection that broke is no proof either, but a hint that is better than waiting.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import NOW, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.failure.messages import Alive
from holdfast.protocols.failure.notices import NeighbourSuspected, NeighbourTrusted
from holdfast.protocols.failure.pauses import Pauses
from holdfast.protocols.failure.settings import DetectorSettings

BROKERS: Final = frozenset({Role.BROKER})
REASON_CHARACTERS_MAX: Final = 200  # of why a connection broke, for operators


class Trust(enum.Enum):
    """What is thought of a neighbour."""

    UNKNOWN = "unknown"  # since it is watched there was no link to it, and not yet time enough for one
    TRUSTED = "trusted"
    SUSPECTED = "suspected"


class _Neighbour:
    __slots__ = ("link", "pauses", "trust")

    def __init__(self, settings: DetectorSettings) -> None:
        self.trust = Trust.UNKNOWN
        self.link: int | None = None  # the one that is up
        self.pauses = Pauses(settings)

    def connect(self, link: int, now: int) -> None:
        self.link = link
        self.pauses.begin(now)

    def disconnect(self) -> None:
        self.link = None

    def judge(self, trust: Trust) -> None:
        self.trust = trust


class FailureDetector(Part):
    """Tells when its mind about a neighbour changes. Neighbours may come and go while it runs."""

    name: ClassVar[str] = "detector"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Alive: BROKERS}

    def __init__(self, settings: DetectorSettings, neighbours: Sequence[str]) -> None:
        self._settings = settings
        self._neighbours = {peer: _Neighbour(settings) for peer in neighbours}
        self._strangers: dict[str, int] = {}  # brokers with a link that are not watched → which
        self._beat_at = 0  # when the next heartbeats are due
        self._wake_at = 0  # when the timer is to fire, or was and did not
        self._heartbeats = self._suspicions = self._closed = 0

    def trusts(self, peer: str) -> bool:
        """Whether the neighbour is there, as far as is known."""
        return self.trust(peer) is Trust.TRUSTED

    def trust(self, peer: str) -> Trust:
        """UNKNOWN, too, if it is no neighbour."""
        neighbour = self._neighbours.get(peer)
        return Trust.UNKNOWN if neighbour is None else neighbour.trust

    def patience(self, peer: str) -> int:
        """How long the neighbour may be silent now."""
        return self._neighbours[peer].pauses.patience

    # -------------------------------------------------------------------------------------------------- neighbours
    def add(self, peer: str, out: Outbox) -> None:
        """The broker is a neighbour from now on; if it has a link already, it is trusted."""
        if peer in self._neighbours:
            return
        neighbour = self._neighbours[peer] = _Neighbour(self._settings)
        neighbour.pauses.begin(out.now)
        link = self._strangers.pop(peer, None)
        if link is not None:
            neighbour.connect(link, out.now)
            self._trust(peer, neighbour, out)
        if out.now + self._limit(neighbour) < self._wake_at:
            self._set_timer(out)

    def remove(self, peer: str) -> None:
        """The broker is no neighbour any more: nothing is told of it, or said to it."""
        neighbour = self._neighbours.pop(peer, None)
        if neighbour is not None and neighbour.link is not None:
            self._strangers[peer] = neighbour.link

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        for neighbour in self._neighbours.values():
            neighbour.pauses.begin(out.now)
        self._beat_at = out.now + self._settings.heartbeat
        self._set_timer(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        neighbour = self._neighbours.get(up.peer)
        if neighbour is None:
            self._strangers[up.peer] = up.link
            return
        neighbour.connect(up.link, out.now)
        self._trust(up.peer, neighbour, out)  # it has just answered a handshake

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        neighbour = self._neighbours.get(down.peer)
        if neighbour is not None and neighbour.link == down.link:  # or a newer link has taken its place
            neighbour.disconnect()
            self._suspect(down.peer, neighbour, down.reason, out)
        elif self._strangers.get(down.peer) == down.link:
            del self._strangers[down.peer]

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        neighbour = self._neighbours.get(failed.peer)
        if neighbour is not None and neighbour.link is None:  # of two that dial each other one may fail
            self._suspect(failed.peer, neighbour, failed.reason, out)

    def on_heard(self, peer: str, out: Outbox) -> None:
        neighbour = self._neighbours.get(peer)
        if neighbour is not None and neighbour.link is not None:
            self._excuse(out)
            neighbour.pauses.hear(out.now)
            self._trust(peer, neighbour, out)

    def on_alive(self, peer: str, message: Alive, out: Outbox) -> None:
        """Being heard was all that it was for."""

    # -------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._excuse(out)
        for peer, neighbour in list(self._neighbours.items()):
            if peer in self._neighbours:  # or what was told of another one has removed it
                self._look_at(peer, neighbour, out)
        if out.now >= self._beat_at:
            self._beat(out)
        self._set_timer(out)

    def _excuse(self, out: Outbox) -> None:
        """A timer that is this late: it is this broker that stood still, and what was said meanwhile is yet unread."""
        late = out.now - self._wake_at
        if late >= self._settings.heartbeat:
            for neighbour in self._neighbours.values():
                neighbour.pauses.excuse(late, out.now)
            self._wake_at = out.now

    def _beat(self, out: Outbox) -> None:
        for peer, neighbour in self._neighbours.items():
            if neighbour.link is not None:
                out.send(peer, Alive(), after=NOW)
                self._heartbeats += 1
        self._beat_at = out.now + self._settings.heartbeat

    def _look_at(self, peer: str, neighbour: _Neighbour, out: Outbox) -> None:
        silence = out.now - neighbour.pauses.heard_at
        if silence >= self._limit(neighbour) and neighbour.trust is not Trust.SUSPECTED:
            self._suspect(peer, neighbour, f"silent for {silence} ns", out)
        if neighbour.link is not None and silence >= self._settings.suspect_after_max:
            # A connection can be dead without breaking. Only a new one can tell.
            out.disconnect(neighbour.link, f"{peer} was silent for {silence} ns")
            neighbour.disconnect()
            self._closed += 1

    def _limit(self, neighbour: _Neighbour) -> int:
        """The silence after which the next is to be done about a neighbour."""
        if neighbour.trust is Trust.TRUSTED:
            return neighbour.pauses.patience
        return self._settings.suspect_after_max

    def _set_timer(self, out: Outbox) -> None:
        """One for all. Who is heard meanwhile makes it fire for nothing, which is cheaper than to set it anew."""
        wake = self._beat_at
        for neighbour in self._neighbours.values():
            if neighbour.link is not None or neighbour.trust is Trust.UNKNOWN:
                wake = min(wake, neighbour.pauses.heard_at + self._limit(neighbour))
        self._wake_at = wake
        out.set_timer((self.name, "wake"), wake - out.now)

    # ------------------------------------------------------------------------------------------------------- trust
    def _suspect(self, peer: str, neighbour: _Neighbour, reason: str, out: Outbox) -> None:
        if neighbour.trust is Trust.SUSPECTED:
            return
        met = neighbour.trust is not Trust.UNKNOWN
        neighbour.judge(Trust.SUSPECTED)
        self._suspicions += 1
        reason = reason[:REASON_CHARACTERS_MAX]
        # When a whole network starts, some are there before others: no one has failed.
        what, level = ("neighbour-suspected", Level.WARNING) if met else ("neighbour-not-there", Level.INFO)
        out.report(what, level, neighbour=peer, reason=reason)
        out.tell(NeighbourSuspected(peer, reason))

    def _trust(self, peer: str, neighbour: _Neighbour, out: Outbox) -> None:
        if neighbour.trust is Trust.TRUSTED:
            return
        neighbour.judge(Trust.TRUSTED)
        out.report("neighbour-trusted", Level.INFO, neighbour=peer)
        out.tell(NeighbourTrusted(peer))

    # ---------------------------------------------------------------------------------------------------- operators
    def measure(self) -> dict[str, int]:
        suspected = [near for near in self._neighbours.values() if near.trust is Trust.SUSPECTED]
        return {
            "neighbours": len(self._neighbours),
            "neighbours_suspected": len(suspected),
            "neighbours_suspected_total": self._suspicions,
            "neighbours_silent_closed_total": self._closed,
            "heartbeats_sent_total": self._heartbeats,
        }

    def check_invariants(self) -> None:
        for peer, neighbour in self._neighbours.items():
            if neighbour.link is None and neighbour.trust is Trust.TRUSTED:
                broken("who is trusted has a link", peer=peer)
