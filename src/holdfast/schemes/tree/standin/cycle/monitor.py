"""A broker watches its neighbours: D0-A8.

It decides from measurements of its own: whether its failure detector suspects a neighbour, and what its queue for that
one is like. Nobody is asked how it is. While the network changes, queues are held back for reasons of their own, and
say nothing of who they are for.
"""

from __future__ import annotations

from typing import ClassVar, Final

from holdfast.kernel.inputs import Started, TimerKey
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import ServiceLevels
from holdfast.schemes.tree.standin.cycle.levels import Complaint, Judge
from holdfast.schemes.tree.standin.cycle.measuring import Gauge, Measured
from holdfast.schemes.tree.standin.cycle.notices import Looked

LOOKS: Final = 4  # within the shortest time that counts
LOOK_EVERY_MIN: Final = SECOND // 10
STOOD_STILL: Final = SECOND // 4  # a look that is so late
LOOK_EVERY_MAX: Final = SECOND // 2


class Monitor(Part):
    """Tells when it has looked."""

    name: ClassVar[str] = "monitor"
    notices: ClassVar[tuple[type[Notice], ...]] = (MapChanged,)
    due = False

    def __init__(
        self,
        levels: ServiceLevels,
        roster: Roster,
        detector: FailureDetector,
        acquaintances: Acquaintances,
        forwarding: Forwarding,
    ) -> None:
        self._levels = levels
        times = [time for time in (levels.unreachable, levels.oldest, levels.sustained) if time]
        self._look_every = min(max(min(times) // LOOKS, LOOK_EVERY_MIN), LOOK_EVERY_MAX)
        self._roster = roster
        self._detector = detector
        self._acquaintances = acquaintances
        self._forwarding = forwarding
        self._judges: dict[str, Judge] = {}
        self._gauges: dict[str, Gauge] = {}
        self._graced: dict[str, None] = {}  # neighbours from when the broker started, that were not there yet
        self.complaints: dict[str, Complaint] = {}
        self._complained = 0
        self._look_at_next = 0

    def on_started(self, started: Started, out: Outbox) -> None:
        self._graced = dict.fromkeys(self._roster.linked)
        self._look_later(out)

    def _look_later(self, out: Outbox) -> None:
        self._look_at_next = out.now + self._look_every
        out.set_timer((self.name, "look"), self._look_every)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """Who stays a neighbour is given the time that it takes; who is none any more is forgotten."""
        near = self._roster.linked
        for peer in [peer for peer in self._judges if peer not in near]:
            del self._judges[peer]
            self._gauges.pop(peer, None)
            self.complaints.pop(peer, None)

    def _excuse(self, out: Outbox) -> None:
        """A look that is this late: this broker stood still, and what it did not send, nobody could take."""
        late = out.now - self._look_at_next
        if late >= STOOD_STILL:
            for gauge in self._gauges.values():
                gauge.excuse(late)
            for judge in self._judges.values():
                judge.excuse(late)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._excuse(out)
        self._look_later(out)
        for peer in self._roster.linked:
            self._look_at(peer, out)
        out.tell(Looked())

    def _look_at(self, peer: str, out: Outbox) -> None:
        judge = self._judges.setdefault(peer, Judge(self._levels))
        is_away = peer not in self._acquaintances or self._detector.trust(peer) is Trust.SUSPECTED
        if not is_away:
            self._graced.pop(peer, None)
        grace = self._levels.start if peer in self._graced else 0
        complaint = judge.judge(is_away, grace, self._measured(peer, out), out.now)
        before = self.complaints.pop(peer, None)
        if complaint is not None:
            self.complaints[peer] = complaint
        if complaint is not None and (before is None or before.cause is not complaint.cause):
            self._complained += 1
            out.report("complaint", Level.WARNING, about=peer, cause=complaint.cause.value, what=complaint.text)
        elif before is not None and complaint is None:
            out.report("complaint-over", Level.INFO, about=peer)

    def _measured(self, peer: str, out: Outbox) -> Measured | None:
        feed = self._forwarding.feeds.get(peer)
        if feed is None or self._roster.map.steps or feed.is_suspended:
            self._gauges.pop(peer, None)  # what waits now waits for the change
            return None
        return self._gauges.setdefault(peer, Gauge()).look(feed, out.now)

    # ---------------------------------------------------------------------------------------------------- operators
    def facts(self) -> dict[str, str]:
        if not self.complaints:
            return {}
        return {"complaints": "; ".join(f"{peer}: {said.text}" for peer, said in self.complaints.items())}

    def measure(self) -> dict[str, int]:
        return {"complaints": len(self.complaints), "complaints_total": self._complained}

    def measure_each(self) -> dict[str, dict[str, int]]:
        now = {peer: gauge.now for peer, gauge in self._gauges.items()}
        return {
            "neighbour_waiting_events": {peer: measured.waiting for peer, measured in now.items()},
            "neighbour_oldest_ms": {peer: measured.oldest // 1_000_000 for peer, measured in now.items()},
            "neighbour_rate": {peer: int(measured.rate) for peer, measured in now.items() if measured.rate >= 0},
        }
