"""How long messages are under way between hosts: five models, as a scenario file names them, and what they become.

    {"model": "constant", "delay_us": 500}
    {"model": "uniform", "low_us": 200, "high_us": 900}
    {"model": "exponential", "minimum_us": 200, "mean_us": 300, "maximum_us": 10000}
    {"model": "matrix", "path": "planetlab-rtt-490.tsv.xz", "jitter_percent": 5}
    {"model": "transit-stub", "seed": 1}

`build` turns a model into `Delays`, whose `delay(source, target)` is the one-way delay of the next message in
nanoseconds. The first three draw a delay for each message, whoever sends it; the last two give each pair of hosts its
own. A host's way to itself takes LOOPBACK_NS under every model, and no random number.

**Same seed, same delays.** Only `Random.random` is drawn from, whose sequence Python promises to keep, and nothing
depends on hashes: the same random sequence and the same questions in the same order give the same delays anywhere. A
constant model draws nothing, a uniform, an exponential or a jittering one draws once a message. Under transit-stub the
delays are a function of the model and the two names alone, so runs with different seeds or schemes, however they order
their messages, share one network. Under matrix they depend on the order in which hosts are first seen, unless `hosts`
names them beforehand.

A model that can't be meant is refused when it is made, with ScenarioError; where it is read from JSON, msgspec makes a
ValidationError of that, which adds the place in the document. A matrix is read, and refused, by `build`.

It never queues, orders or loses a message: that is the link's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import floor, log
from pathlib import Path
from random import Random
from typing import Protocol, TypeAlias, assert_never

import msgspec

from holdfast.errors import ScenarioError, TopologyError
from holdfast.sim.round_trips import RoundTrips, read_round_trips
from holdfast.topology.shortest_paths import ShortestPaths
from holdfast.topology.transit_stub import Attachment, TransitStubShape, generate

# From a host to itself, through its own network stack.
LOOPBACK_NS = 20_000
NS_PER_US = 1_000
# An hour: more is taken for a wrong unit.
DELAY_US_MAX = 3_600_000_000
JITTER_PERCENT_MAX = 99


# ---- models, as scenarios write them


class _Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model"):
    """What all models are made with."""


class Constant(_Model, frozen=True, kw_only=True, tag="constant"):
    """Every message takes the same time."""

    delay_us: int

    def __post_init__(self) -> None:
        _check_whole(self, "delay_us", 0, DELAY_US_MAX, "microseconds")


class Uniform(_Model, frozen=True, kw_only=True, tag="uniform"):
    """Each message takes a time between two bounds, every nanosecond as likely, the bounds included."""

    low_us: int
    high_us: int

    def __post_init__(self) -> None:
        _check_whole(self, "low_us", 0, DELAY_US_MAX, "microseconds")
        _check_whole(self, "high_us", 0, DELAY_US_MAX, "microseconds")
        _check_order(self, "low_us", "high_us")


class Exponential(_Model, frozen=True, kw_only=True, tag="exponential"):
    """Each message takes the minimum and an exponential time above it, cut at the maximum.

    mean_us is the mean of the part above the minimum, before the cut. A draw beyond the maximum becomes the maximum, so
    a share of exp(-(maximum - minimum) / mean) of the messages takes exactly that, and the mean of the part above the
    minimum shrinks by the same share.
    """

    minimum_us: int
    mean_us: int
    maximum_us: int

    def __post_init__(self) -> None:
        _check_whole(self, "minimum_us", 0, DELAY_US_MAX, "microseconds")
        _check_whole(self, "mean_us", 1, DELAY_US_MAX, "microseconds")
        _check_whole(self, "maximum_us", 0, DELAY_US_MAX, "microseconds")
        _check_order(self, "minimum_us", "maximum_us")


class RoundTripMatrix(_Model, frozen=True, kw_only=True, tag="matrix"):
    """Hosts stand on the rows of a measured table of round trips; a message takes half of one (see `round_trips`).

    Hosts get rows in a random order, no row twice while rows last; then the same order begins again. Hosts that share a
    row are LOOPBACK_NS apart. With jitter_percent, each message takes up to that much less or more, uniformly.
    """

    path: str
    jitter_percent: int = 0

    def __post_init__(self) -> None:
        _check_whole(self, "jitter_percent", 0, JITTER_PERCENT_MAX, "percent")
        if not self.path or "\0" in self.path:
            raise ScenarioError(f"path is {self.path!r}", _where(self), "give the path of a table of round trips")


class TransitStub(
    TransitStubShape, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model", tag="transit-stub"
):
    """Hosts hang on random routers of a transit-stub graph; a message takes the shortest path (D2-E1).

    Both access links and the links between the two routers count. The seed makes the graph; the seed and a host's name
    say where the host hangs. The other fields, and their defaults, are those of the graph's shape.
    """

    seed: int

    def __post_init__(self) -> None:
        # A negative seed would be the same as the positive one.
        _check_whole(self, "seed", 0, 2**63 - 1, "any kind")
        try:
            TransitStubShape.__post_init__(self)
        except TopologyError as error:
            remedy = f"give another {error.parameter}" if error.parameter else "make the graph smaller"
            raise ScenarioError(error.problem, _where(self), remedy) from error


Latency: TypeAlias = Constant | Uniform | Exponential | RoundTripMatrix | TransitStub


# ---- delays, as the simulator asks for them


class Delays(Protocol):
    """What a model becomes."""

    def delay(self, source: str, target: str) -> int:
        """The one-way delay of the next message between two hosts, in nanoseconds."""


def build(latency: Latency, rng: Random, folder: Path | None = None, hosts: Iterable[str] = ()) -> Delays:
    """The delays that a model describes.

    Relative paths begin at folder, or else at the current one. A matrix gives rows to these hosts first, in their
    order, and to others as they are met; the other models need no hosts.
    """
    match latency:
        case Constant():
            return _ConstantDelays(latency.delay_us * NS_PER_US)
        case Uniform():
            return _UniformDelays(latency.low_us * NS_PER_US, latency.high_us * NS_PER_US, rng)
        case Exponential():
            return _ExponentialDelays(latency, rng)
        case RoundTripMatrix():
            rows = _Rows(read_round_trips((folder or Path()) / latency.path), rng, hosts)
            pairs = _PairDelays(rows.one_way_ns)
            return _JitteredDelays(pairs, latency.jitter_percent, rng) if latency.jitter_percent else pairs
        case TransitStub():
            return _PairDelays(_Routers(latency).one_way_ns)
        case _:
            assert_never(latency)


class _ConstantDelays:
    __slots__ = ("_delay_ns",)

    def __init__(self, delay_ns: int) -> None:
        self._delay_ns = delay_ns

    def delay(self, source: str, target: str) -> int:
        return LOOPBACK_NS if source == target else self._delay_ns


class _UniformDelays:
    __slots__ = ("_low_ns", "_random", "_values")

    def __init__(self, low_ns: int, high_ns: int, rng: Random) -> None:
        self._low_ns = low_ns
        # Asked once a message: a product of two doubles is quicker than one with an int, and floor is than int().
        self._values = float(high_ns - low_ns + 1)
        self._random = rng.random

    def delay(self, source: str, target: str) -> int:
        if source == target:
            return LOOPBACK_NS
        # random() is below 1, and the product rounds to no more than the largest double below the number of values.
        return self._low_ns + floor(self._random() * self._values)


class _ExponentialDelays:
    __slots__ = ("_maximum_ns", "_minimum_ns", "_negative_mean_ns", "_random")

    def __init__(self, model: Exponential, rng: Random) -> None:
        self._minimum_ns = model.minimum_us * NS_PER_US
        self._negative_mean_ns = -float(model.mean_us * NS_PER_US)
        self._maximum_ns = model.maximum_us * NS_PER_US
        self._random = rng.random

    def delay(self, source: str, target: str) -> int:
        if source == target:
            return LOOPBACK_NS
        # 1 - random() is above 0, where random() may be 0.
        delay_ns = self._minimum_ns + floor(log(1.0 - self._random()) * self._negative_mean_ns)
        return delay_ns if delay_ns < self._maximum_ns else self._maximum_ns


class _PairDelays:
    """Asks for the delay of each pair once and remembers it."""

    __slots__ = ("_known", "_one_way_ns")

    def __init__(self, one_way_ns: Callable[[str, str], int]) -> None:
        self._known: dict[str, dict[str, int]] = {}
        self._one_way_ns = one_way_ns

    def delay(self, source: str, target: str) -> int:
        try:
            return self._known[source][target]
        except KeyError:
            delay_ns = LOOPBACK_NS if source == target else self._one_way_ns(source, target)
            self._known.setdefault(source, {})[target] = delay_ns
            return delay_ns


class _JitteredDelays:
    __slots__ = ("_pairs", "_random", "_share")

    def __init__(self, pairs: _PairDelays, percent: int, rng: Random) -> None:
        self._pairs = pairs
        self._share = percent / 100
        self._random = rng.random

    def delay(self, source: str, target: str) -> int:
        delay_ns = self._pairs.delay(source, target)
        if source == target:
            return delay_ns
        # Cut towards zero: less than the whole delay is taken off, even if that is a nanosecond.
        return delay_ns + int(delay_ns * self._share * (2.0 * self._random() - 1.0))


# ---- where hosts stand


class _Rows:
    """Gives hosts rows of a table of round trips."""

    __slots__ = ("_order", "_row_of", "_trips")

    def __init__(self, trips: RoundTrips, rng: Random, hosts: Iterable[str]) -> None:
        self._trips = trips
        self._order = _shuffled(trips.hosts, rng)
        self._row_of: dict[str, int] = {}
        for host in hosts:
            self._row(host)

    def one_way_ns(self, source: str, target: str) -> int:
        source_row, target_row = self._row(source), self._row(target)
        return LOOPBACK_NS if source_row == target_row else self._trips.delay_ns(source_row, target_row)

    def _row(self, host: str) -> int:
        row = self._row_of.get(host)
        if row is None:
            row = self._row_of[host] = self._order[len(self._row_of) % self._trips.hosts]
        return row


class _Routers:
    """Hangs hosts on routers of a transit-stub graph."""

    __slots__ = ("_graph", "_paths", "_place_of", "_seed")

    def __init__(self, model: TransitStub) -> None:
        self._seed = model.seed
        self._graph = generate(model, Random(model.seed))
        self._paths = ShortestPaths(self._graph.routers, self._graph.links)
        self._place_of: dict[str, Attachment] = {}

    def one_way_ns(self, source: str, target: str) -> int:
        one, other = self._place(source), self._place(target)
        return one.delay_ns + self._paths.delay(one.router, other.router) + other.delay_ns

    def _place(self, host: str) -> Attachment:
        place = self._place_of.get(host)
        if place is None:
            # A text seeds Random by its SHA-512, hence the same under any PYTHONHASHSEED. Each host's own sequence
            # makes its place independent of who was met before it.
            place = self._place_of[host] = self._graph.attach(Random(f"{self._seed}/{host}"))
        return place


def _shuffled(count: int, rng: Random) -> list[int]:
    """A random order of 0 … count - 1; Random.shuffle's sequence may change between versions of Python."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


# ---- checks


def _where(model: msgspec.Struct) -> str:
    return f"the latency model {model.__struct_config__.tag!r}"


def _check_whole(model: msgspec.Struct, name: str, low: int, high: int, unit: str) -> None:
    value = getattr(model, name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ScenarioError(f"{name} is {value!r}", _where(model), f"give a whole number from {low} to {high} ({unit})")


def _check_order(model: msgspec.Struct, low: str, high: str) -> None:
    if getattr(model, low) > getattr(model, high):
        problem = f"{low} is {getattr(model, low)}, above {high}, which is {getattr(model, high)}"
        raise ScenarioError(problem, _where(model), f"give a {low} of at most {high}")
