"""Applications that count viewers with one mistake each: replicas that lived through different things show it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from holdfast.apps.zapviewers.audience import ChannelViewers
from holdfast.apps.zapviewers.viewership import Viewership
from holdfast.kernel.application import Derived
from holdfast.model.values import Value
from tests.sim.viewership_world import world_of


class TiesByTheLastStart(Viewership):
    """Channels with equally many viewers stand in another order where a state was taken over."""

    restored = False

    def compute_top_list(self, n: int) -> list[ChannelViewers]:
        top = super().compute_top_list(n)
        return sorted(top, key=lambda entry: (entry.viewers, entry.channel), reverse=True) if self.restored else top

    def set_state(self, state: bytes) -> None:
        super().set_state(state)
        self.restored = True


class OwnClock(Viewership):
    """Looks at a clock of its own instead of the time that comes with an event."""

    step = 40_000_000
    clock = itertools.count(0, step)

    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, Value], payload: bytes
    ) -> Sequence[Derived]:
        return super().observe(number, next(self.clock), topic, attributes, payload)


class ForgetsAnomalies(Viewership):
    """A state that lacks something."""

    def set_state(self, state: bytes) -> None:
        super().set_state(state)
        self.audience.anomalies = 0


class ForgetsWhatWasTold(Viewership):
    """A state that lacks something else."""

    def get_state(self) -> bytes:
        fields = msgspec.msgpack.decode(super().get_state())
        fields[2] = 0
        return msgspec.msgpack.encode(fields)


@dataclass(frozen=True)
class ViewershipMutant:
    """`reference` is fed with the log, and may make the same mistake."""

    mistake: str
    viewership: type[Viewership]
    reference: type[Viewership]
    swarm: ClassVar[str] = "viewership"

    def seen(self, seed: int) -> str:
        found = _problem(seed, self.viewership, self.reference)
        return found if "differ" in found else ""

    def sound(self, seed: int) -> str:
        return _problem(seed)


def _problem(seed: int, viewership: type[Viewership] = Viewership, reference: type[Viewership] = Viewership) -> str:
    OwnClock.clock = itertools.count(0, OwnClock.step)  # a run is a function of its seed
    try:
        world_of(seed, viewership, reference).play()
    except AssertionError as error:
        return str(error)
    return ""


_MISTAKES = {
    "ties by the last start": TiesByTheLastStart,
    "a clock of its own": OwnClock,
    "a state lacks anomalies": ForgetsAnomalies,
    "a state lacks what was told": ForgetsWhatWasTold,
}

MUTANTS = [
    ViewershipMutant(mistake + suffix, viewership, viewership if suffix else Viewership)
    for mistake, viewership in _MISTAKES.items()
    for suffix in ("", ", and so has the reference")
]
