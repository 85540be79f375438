"""A failure detector with a clock of its own, whose timer fires when its time comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.kernel.inputs import Input, TimerFired
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Effect, Outbox, RecordingOutbox, SetTimer
from holdfast.kernel.parts import Assembly, Part
from holdfast.protocols.failure.detector import FailureDetector
from holdfast.protocols.failure.notices import NeighbourSuspected, NeighbourTrusted
from holdfast.protocols.failure.settings import DetectorSettings


class Removing(Part):
    """When one neighbour is suspected, another one is removed."""

    name: ClassVar[str] = "removing"
    notices: ClassVar[tuple[type[Notice], ...]] = (NeighbourSuspected,)

    def __init__(self, detector: FailureDetector, removes: Mapping[str, str]) -> None:
        self._detector = detector
        self._removes = removes

    def on_neighbour_suspected(self, suspected: NeighbourSuspected, out: Outbox) -> None:
        if suspected.peer in self._removes:
            self._detector.remove(self._removes[suspected.peer])


class Watching:
    """`calls` is what the detector told, in order."""

    def __init__(
        self, settings: DetectorSettings, neighbours: Sequence[str], removes: Mapping[str, str] | None = None
    ) -> None:
        self.detector = FailureDetector(settings, neighbours)
        self.out = RecordingOutbox()
        self._node = Assembly([self.detector, Removing(self.detector, removes or {})])
        self._due = 0

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [_shown(notice) for notice in self.out.notices]

    def give(self, *inputs: Input) -> list[Effect]:
        """What comes of them."""
        self._node.handle(list(inputs), self.out)
        self._node.check_invariants()
        return self._effects()

    def _effects(self) -> list[Effect]:
        effects = self.out.take_effects()
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._due = self.out.now + effect.after
        return effects

    def add(self, peer: str) -> list[Effect]:
        self.detector.add(peer, self.out)
        self._node.check_invariants()
        return self._effects()

    def hear(self, peer: str) -> list[Effect]:
        self.detector.on_heard(peer, self.out)
        return self.out.take_effects()

    def fire(self) -> list[Effect]:
        """Goes to when the timer fires, and fires it."""
        self.out.now = self._due
        return self.give(TimerFired(("detector", "wake")))

    def run(self, until: int) -> list[Effect]:
        """Lets time pass, with the timer firing when it is due."""
        effects: list[Effect] = []
        while self._due <= until:
            effects += self.fire()
        self.out.now = until
        return effects

    def pass_time(self, time: int) -> None:
        """Time in which the timer does not fire."""
        self.out.now += time


def _shown(notice: Notice) -> tuple[str, str]:
    match notice:
        case NeighbourSuspected():
            assert notice.reason
            return ("suspected", notice.peer)
        case NeighbourTrusted():
            return ("trusted", notice.peer)
    raise AssertionError(notice)
