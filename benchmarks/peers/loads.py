"""What is measured: loads, the events that they are made of, and what a process is told of them."""

from __future__ import annotations

import msgspec

TOPIC = "bench"
SIZES = (60, 1_024)
FANS = (1, 10)
FILTER_COUNTS = (1, 10, 100, 1_000, 10_000)
SUBSCRIPTIONS_PER_CONNECTION = 1_000
IN_FLIGHT = 1_000
EVENTS_A_SECOND = 1_000  # where latency is measured
WARM_UP = 300  # first events whose latency does not count
STAMP_BYTES = 20  # digits of a time in nanoseconds, at the beginning of a peer's message

Attributes = dict[str, str | int | float]


class Load(msgspec.Struct, frozen=True):
    """One thing to measure. `kind` is throughput, in-flight, latency or filters.

    `subscriptions` are all of one subscriber process. Each event is for all of them, but with `filters`, where it is
    for exactly one: always the same one if `one_key`, else one after the other.
    """

    name: str
    kind: str
    size: int = 60
    subscriptions: int = 1
    one_key: bool = False
    form: str = ""  # which of a system's ways to publish; "" is the fastest

    @property
    def deliveries(self) -> int:
        """How often each event is delivered."""
        return 1 if self.kind == "filters" else self.subscriptions


class Job(msgspec.Struct, frozen=True):
    """What a process is told."""

    port: int
    load: Load
    events: int  # that are published

    @property
    def expected(self) -> int:
        """How many events arrive if none is lost."""
        return self.events * self.load.deliveries


def key(number: int) -> str:
    return f"k{number:05d}"


def attributes_of_size(size: int, number: int = 0) -> Attributes:
    """Attributes whose msgpack has exactly this many bytes."""
    attributes: Attributes = {"key": key(number), "price": 101.5, "text": ""}
    missing = size - len(msgspec.msgpack.encode(attributes))
    # A longer string has a longer header; at most two bytes here.
    for length in range(missing, missing - 4, -1):
        attributes["text"] = "x" * max(0, length)
        if len(msgspec.msgpack.encode(attributes)) == size:
            return attributes
    raise ValueError(f"no attributes have {size} bytes")


def message_of_size(size: int) -> bytes:
    return b"x" * size


def stamped(now: int, size: int) -> bytes:
    """A peer's message that says when it was sent."""
    return b"%0*d" % (STAMP_BYTES, now) + b"x" * (size - STAMP_BYTES)


def stamp_of(message: bytes) -> int:
    return int(message[:STAMP_BYTES])


def filter_text(number: int) -> str:
    return f"key = '{key(number)}' AND price > 100"


def keys_in_turn(load: Load, count: int) -> list[int]:
    """Which subscription each event is for: neighbours are far apart, and all come equally often."""
    if load.one_key:
        return [0] * count
    stride = 7919  # a prime that divides no count of subscriptions
    return [number * stride % load.subscriptions for number in range(count)]
