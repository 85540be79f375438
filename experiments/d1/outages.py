"""When a broker or a link is off: exponential on and off times in turn, from a stationary start (D1-B9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random


class Component(NamedTuple):
    """Something that fails. The period is a mean on time and a mean off time together."""

    name: str
    availability: float
    period_s: float

    @property
    def mean_on_s(self) -> float:
        return self.availability * self.period_s

    @property
    def mean_off_s(self) -> float:
        return (1 - self.availability) * self.period_s


class Outage(NamedTuple):
    """In milliseconds from the beginning."""

    begin: int
    end: int


def outages(component: Component, length_s: float, rng: Random) -> list[Outage]:
    """All of them, in order; the last may end with the length, and lasts longer in truth.

    At the beginning the component is off with the probability that it is off at any time. The rest of that outage is as
    long as a whole one on average: exponential times have no memory.
    """
    found: list[Outage] = []
    time, on = 0.0, rng.random() < component.availability
    while time < length_s:
        until = time + rng.expovariate(1 / (component.mean_on_s if on else component.mean_off_s))
        if not on:
            # Of a millisecond at least, and not at once behind the one before.
            begin = max(round(time * 1_000), found[-1].end + 1 if found else 0)
            end = max(round(min(until, length_s) * 1_000), begin + 1)
            if begin < length_s * 1_000:
                found.append(Outage(begin, end))
        time, on = until, not on
    return found
