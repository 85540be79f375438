"""What publishers offer: when, and what. Everything is drawn with fixed seeds, the same for every group."""

from __future__ import annotations

import random

import msgspec

TOPIC = "zap"
LINES_MAX = 200
LINE_BYTES_MAX = 59
SUBSCRIBERS = 3
EVENT_BYTES = 60  # of attributes, in saturated runs
CHANNELS = ("NRK1", "NRK2", "TV2", "TV2 Zebra", "TVNorge", "MAX", "BBC World", "CNN", "Eurosport", "Discovery")


class Job(msgspec.Struct, frozen=True):
    """What the publishing and the subscribing process are told. `rate` is of all publishers together, a second."""

    url: str
    publishers: int
    rate: float
    seconds: float
    events: int = 0  # of a saturated run; 0: the load is offered at `rate`

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


def payloads(publisher: int, count: int) -> list[bytes]:
    """Changes of channel, as set-top boxes report them (D4-A11): date, time, address, to and from which channel."""
    drawn = random.Random(publisher)
    return [b"\n".join(_line(drawn) for _ in range(drawn.randint(1, LINES_MAX))) for _ in range(count)]


def _line(drawn: random.Random) -> bytes:
    box = drawn.randrange(180_000)
    address = f"10.{box >> 16}.{box >> 8 & 255}.{box & 255}"
    to, since = drawn.sample(CHANNELS, 2)
    moment = f"20:{drawn.randrange(60):02}:{drawn.randrange(60):02}"
    return f"2026/11/15, {moment}, {address}, {to}, {since}".encode()
