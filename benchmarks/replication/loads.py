"""What publishers offer, and when; `zaps.py` has what is in it. It is drawn with fixed seeds, alike for every group."""

from __future__ import annotations

import random

import msgspec

TOPIC = "zap"
SUBSCRIBERS = 3
EVENT_BYTES = 60  # of attributes, in saturated runs


class Job(msgspec.Struct, frozen=True):
    """What the publishing and the subscribing process are told. `rate` is of all publishers together, a second."""

    url: str
    publishers: int
    rate: float
    seconds: float
    events: int = 0  # of a saturated run; 0: the load is offered at `rate`
    zaps: str = ""  # the folder of the publications; in a saturated run "" is for small events
    first: int = 0  # publication of each publisher's
    follow: tuple[str, ...] = ()  # filters of subscribers who want what an application derives

    @property
    def publications(self) -> int:
        return round(self.rate * self.seconds)


def schedule(job: Job) -> list[list[float]]:
    """When each publisher publishes, in seconds from the beginning.

    Publishers take turns. Each publication comes somewhere inside its turn, so that some come at nearly the same time;
    their number and the time that they take are exact, or throughput would depend on the draw.
    """
    drawn = random.Random(f"{job.publishers} {job.rate} {job.seconds}")
    due = [(turn + drawn.random()) / job.rate for turn in range(job.publications)]
    return [due[publisher :: job.publishers] for publisher in range(job.publishers)]
