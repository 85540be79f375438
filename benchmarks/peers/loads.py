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
CLIENTS = 1_000  # of one connection each
AHEAD = 100  # events for one client each that are under way at a time
WARM_UP = 300  # first events whose latency does not count
STAMP_BYTES = 20  # digits of a time in nanoseconds, at the beginning of a peer's message

Attributes = dict[str, str | int | float]


class Load(msgspec.Struct, frozen=True):
    """One thing to measure. `kind` is throughput, in-flight, latency, filters or clients.

    `subscriptions` are all of one subscriber process. Each event is for all of them, but with `filters` and
    `in_turn`, where it is for exactly one: always the same one if `one_key`, else one after the other.

    With `clients` each subscription is a client's of its own, with one connection, on asyncio's own event loop, and
    events come alone: the publisher is never more than `ahead` events before what has arrived.
    """

    name: str
    kind: str
    size: int = 60
    subscriptions: int = 1
    one_key: bool = False
    in_turn: bool = False
    form: str = ""  # which of a system's ways to publish; "" is the fastest

    @property
    def deliveries(self) -> int:
        """How often each event is delivered."""
        return 1 if self.kind == "filters" or self.in_turn else self.subscriptions

    @property
    def ahead(self) -> int:
        """How many events may be under way; 0: any number."""
        return 0 if self.kind != "clients" else AHEAD if self.in_turn else 1


class Job(msgspec.Struct, frozen=True):
    """What a process is told."""

    port: int
    load: Load
    events: int  # that are published
    pace: int = -1  # descriptor of a pipe: by it the subscriber lets the publisher go on, if the load paces it

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


def topic_of(number: int) -> str:
    """A topic for one of many clients; none begins another."""
    return f"{TOPIC}.{key(number)}"


def topics(load: Load) -> list[str]:
    """The topic of each subscription."""
    return [topic_of(number) if load.in_turn else TOPIC for number in range(load.subscriptions)]


def keys_in_turn(load: Load, count: int) -> list[int]:
    """Which subscription each event is for: neighbours are far apart, and all come equally often."""
    if load.one_key:
        return [0] * count
    stride = 7919  # a prime that divides no count of subscriptions
    return [number * stride % load.subscriptions for number in range(count)]
