"""One run of the brokers, and the ideal replay of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from experiments.d1.measure import run
from experiments.d1.oracle import Oracle
from experiments.d1.outages import Outage
from experiments.d1.world import Setup
from holdfast.qos.parts import NEVER_FAILS, Part, part_of_availability


class Point(msgspec.Struct, frozen=True):
    """Of `count` subscribers of one run with the same topic and home: the share of events that came on time, and that
    could have."""

    source: str  # the publisher's home
    target: str  # the subscribers'
    topic: str
    count: int
    measured: float
    replayed: float


class Realised(msgspec.Struct, frozen=True):
    """How a part was in a run, or in several."""

    length_s: float
    off_s: float = 0.0
    repairs: int = 0  # outages that came to their end: the last may have gone on

    def __add__(self, other: Realised) -> Realised:
        return Realised(self.length_s + other.length_s, self.off_s + other.off_s, self.repairs + other.repairs)

    @property
    def part(self) -> Part:
        """With its availability and the likeliest mean outage."""
        if not self.off_s:
            return NEVER_FAILS
        # One that was never on counts as on for a millisecond: a model has no others.
        availability = max(1 - self.off_s / self.length_s, 0.001 / self.length_s)
        return part_of_availability(availability, self.off_s / max(self.repairs, 1) / (1 - availability))


class Compared(msgspec.Struct, frozen=True):
    """`brokers` are by name, `links` by both ends."""

    setup: Setup
    points: list[Point]
    availabilities: dict[str, float]  # as they were asked for
    brokers: dict[str, Realised]
    links: dict[str, Realised]
    seconds: float


def realised(outages: Sequence[Outage], length_s: float) -> Realised:
    """Of outages in milliseconds."""
    off = sum(outage.end - outage.begin for outage in outages) / 1_000
    return Realised(length_s, off, sum(outage.end < length_s * 1_000 for outage in outages))


def compare(setup: Setup) -> Compared:
    result = run(setup)
    world = result.world
    oracle = Oracle(setup, world)
    alike = Counter((one.topic, one.home) for one in result.subscribers)
    points = {}
    for one in result.subscribers:
        if one.reliability is not None and (one.topic, one.home) not in points:
            points[one.topic, one.home] = Point(
                source=world.homes[one.topic],
                target=one.home,
                topic=one.topic,
                count=alike[one.topic, one.home],
                measured=one.reliability,
                replayed=oracle.share(setup.level, one.name),
            )
    return Compared(
        setup=setup,
        points=list(points.values()),
        availabilities=world.availabilities,
        brokers={name: realised(found, setup.length_s) for name, found in world.broker_outages.items()},
        links={name: realised(found, setup.length_s) for name, found in world.link_outages.items()},
        seconds=result.seconds,
    )
