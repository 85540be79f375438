"""Transit-stub router graphs in the manner of GT-ITM: the network below the overlay in D2-E1.

Transit domains are joined to each other; every transit router carries stub domains, each hanging on it by one link:

    domain ─ domain          for each pair with domain_link_probability, between random routers of the two
      router ─ router        for each pair of a transit domain, with transit_link_probability
        └ stub domain        a link between the transit router and a random router of the stub domain
            router ─ router  for each pair of a stub domain, with stub_link_probability

Where chance leaves the domains, or the routers of one domain, in several parts, random links join the parts. (GT-ITM
draws again until all is connected; joining ends for every probability, and adds 9 links to the default graph.) So each
domain is connected, and the whole graph is.

**How many links.** D2-E1 has 2,500 routers and 10,660 links, and says neither how dense its domains are nor what it
counts. Two-way links between these domains, all of them complete, are 190 + 200 + 300 + 8,400 = 9,090 at most; there
would have to be at least 1,570 extra links beside them. We read the number as that of arcs, one for each direction of a
link, which is how the GraphBase format that GT-ITM writes stores an edge. That is an inference, not the paper's word.
The default probabilities 0.6, 0.6 and 0.57 give 114 + 120 + 300 + 4,788 + 9 = 5,331 two-way links on average, or 10,662
arcs; the standard deviation is 0.9 %. A stub_link_probability of 0.42 gives 4,120 and 8,250. Who reads the number as
that of two-way links takes stub_link_probability=1.0 and extra_stub_stub_links=1_724.

**Delays.** A link's delay is what one message takes in one direction, the same in both: a whole number of nanoseconds,
uniform between two bounds. D2-E1 gives the access links' (10–90 ms, from a host to its router), and none of the
others: theirs, 20, 5 and 2 ms on average for transit, transit-stub and stub links, are our choice.

Only `Random.random` is drawn from, whose sequence Python promises to keep: a seed's graph is the same everywhere.
Nothing here knows brokers, names or time.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

NS_PER_MS = 1_000_000
# Beyond these a parameter is a slip, and the graph would take minutes.
ROUTERS_MAX = 1_000_000
PAIRS_MAX = 10_000_000
MS_MAX = 3_600_000


class TransitStubShape(msgspec.Struct, frozen=True, kw_only=True):
    """How large a transit-stub graph is, and how dense and slow its links are. The defaults are D2-E1."""

    transit_domains: int = 20
    routers_per_transit_domain: int = 5
    stub_domains_per_transit_router: int = 3
    routers_per_stub_domain: int = 8
    domain_link_probability: float = 0.6
    transit_link_probability: float = 0.6
    stub_link_probability: float = 0.57
    extra_transit_stub_links: int = 0
    extra_stub_stub_links: int = 0
    transit_low_ms: int = 10
    transit_high_ms: int = 30
    transit_stub_low_ms: int = 3
    transit_stub_high_ms: int = 7
    stub_low_ms: int = 1
    stub_high_ms: int = 3
    access_low_ms: int = 10
    access_high_ms: int = 90

    def __post_init__(self) -> None:
        for name in ("transit_domains", "routers_per_transit_domain", "routers_per_stub_domain"):
            self._check_whole(name, 1, ROUTERS_MAX)
        self._check_whole("stub_domains_per_transit_router", 0, ROUTERS_MAX)
        for name in ("domain_link_probability", "transit_link_probability", "stub_link_probability"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
                raise TopologyError(f"{name} is a probability, 0 to 1, not {value!r}", name)
        for kind in ("transit", "transit_stub", "stub", "access"):
            low, high = f"{kind}_low_ms", f"{kind}_high_ms"
            self._check_whole(low, 0, MS_MAX)
            self._check_whole(high, 0, MS_MAX)
            if getattr(self, low) > getattr(self, high):
                problem = f"{low} is {getattr(self, low)}, above {high}, which is {getattr(self, high)}"
                raise TopologyError(problem, low)
        self._check_size()

    @property
    def transit_routers(self) -> int:
        """How many routers all transit domains have together."""
        return self.transit_domains * self.routers_per_transit_domain

    @property
    def stub_domains(self) -> int:
        """How many stub domains there are."""
        return self.transit_routers * self.stub_domains_per_transit_router

    @property
    def routers(self) -> int:
        """How many routers there are: 2,500 by default."""
        return self.transit_routers + self.stub_domains * self.routers_per_stub_domain

    def _check_whole(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise TopologyError(f"{name} is a whole number from {low} to {high}, not {value!r}", name)

    def _check_size(self) -> None:
        if self.routers > ROUTERS_MAX:
            raise TopologyError(f"the graph would have {self.routers} routers; at most {ROUTERS_MAX} are possible")
        pairs = (
            _pairs(self.transit_domains)
            + self.transit_domains * _pairs(self.routers_per_transit_domain)
            + self.stub_domains * _pairs(self.routers_per_stub_domain)
        )
        if pairs > PAIRS_MAX:
            raise TopologyError(f"{pairs} pairs of routers share a domain; at most {PAIRS_MAX} are possible")
        # Extra links are drawn until they are new. While half of the places stay free, that takes two tries.
        in_stubs = self.stub_domains * self.routers_per_stub_domain
        across = self.transit_routers * in_stubs - self.stub_domains
        between = _pairs(self.stub_domains) * self.routers_per_stub_domain**2
        self._check_whole("extra_transit_stub_links", 0, min(across // 2, PAIRS_MAX))
        self._check_whole("extra_stub_stub_links", 0, min(between // 2, PAIRS_MAX))


class Link(NamedTuple):
    """A two-way link between two routers."""

    one: int
    other: int
    delay_ns: int


class Attachment(NamedTuple):
    """Where a host hangs on the network, and the delay of its access link."""

    router: int
    delay_ns: int


class TransitStubGraph(msgspec.Struct, frozen=True, kw_only=True):
    """Routers 0 … routers - 1, those of transit domains first; each domain is a range of them."""

    shape: TransitStubShape
    transit_domains: tuple[range, ...]
    stub_domains: tuple[range, ...]
    links: tuple[Link, ...]

    @property
    def routers(self) -> int:
        """How many routers there are."""
        return self.shape.routers

    @property
    def arcs(self) -> int:
        """How many one-way links there are, two for each link: what D2-E1 is taken to count."""
        return 2 * len(self.links)

    def attach(self, rng: Random) -> Attachment:
        """A place for one host: any router, each as likely, and an access link. Hosts may share a router."""
        shape = self.shape
        return Attachment(_below(self.routers, rng), _delay_ns(shape.access_low_ms, shape.access_high_ms, rng))


def generate(shape: TransitStubShape, rng: Random) -> TransitStubGraph:
    """A random graph of that shape; the same for the same sequence of random numbers."""
    transit = _ranges(0, shape.transit_domains, shape.routers_per_transit_domain)
    stubs = _ranges(shape.transit_routers, shape.stub_domains, shape.routers_per_stub_domain)

    # Dictionaries as sets that keep their order: (smaller router, larger router) → None.
    core: dict[tuple[int, int], None] = {}
    for one, other in _connected(range(len(transit)), shape.domain_link_probability, rng):
        core[_pick(transit[one], rng), _pick(transit[other], rng)] = None
    for domain in transit:
        core.update(dict.fromkeys(_connected(domain, shape.transit_link_probability, rng)))

    uplinks: dict[tuple[int, int], None] = {}
    inside: dict[tuple[int, int], None] = {}
    for number, stub in enumerate(stubs):
        uplinks[number // shape.stub_domains_per_transit_router, _pick(stub, rng)] = None
        inside.update(dict.fromkeys(_connected(stub, shape.stub_link_probability, rng)))
    _add_extra_links(shape, stubs, uplinks, inside, rng)

    links = [
        Link(one, other, _delay_ns(low_ms, high_ms, rng))
        for pairs, low_ms, high_ms in (
            (core, shape.transit_low_ms, shape.transit_high_ms),
            (uplinks, shape.transit_stub_low_ms, shape.transit_stub_high_ms),
            (inside, shape.stub_low_ms, shape.stub_high_ms),
        )
        for one, other in pairs
    ]
    return TransitStubGraph(shape=shape, transit_domains=transit, stub_domains=stubs, links=tuple(links))


def _add_extra_links(
    shape: TransitStubShape,
    stubs: Sequence[range],
    uplinks: dict[tuple[int, int], None],
    inside: dict[tuple[int, int], None],
    rng: Random,
) -> None:
    wanted = len(uplinks) + shape.extra_transit_stub_links
    while len(uplinks) < wanted:
        uplinks[_below(shape.transit_routers, rng), _pick(stubs[_below(len(stubs), rng)], rng)] = None
    wanted = len(inside) + shape.extra_stub_stub_links
    while len(inside) < wanted:
        one, other = sorted((_below(len(stubs), rng), _below(len(stubs), rng)))
        if one != other:
            inside[_pick(stubs[one], rng), _pick(stubs[other], rng)] = None


def _connected(nodes: range, probability: float, rng: Random) -> list[tuple[int, int]]:
    """Each pair with the probability, and random links between the parts that this leaves apart."""
    links = [pair for pair in combinations(nodes, 2) if rng.random() < probability]
    part_of = {node: [node] for node in nodes}
    for one, other in links:
        _merge(part_of, one, other)
    # The part of the first node takes in the others, in the order of their first nodes.
    for node in nodes:
        first = part_of[nodes[0]]
        if part_of[node] is not first:
            one, other = _pick(first, rng), _pick(part_of[node], rng)
            links.append((min(one, other), max(one, other)))
            _merge(part_of, one, other)
    return links


def _merge(part_of: dict[int, list[int]], one: int, other: int) -> None:
    larger, smaller = part_of[one], part_of[other]
    if larger is smaller:
        return
    if len(larger) < len(smaller):
        larger, smaller = smaller, larger
    larger += smaller
    for node in smaller:
        part_of[node] = larger


def _ranges(start: int, count: int, size: int) -> tuple[range, ...]:
    return tuple(range(start + i * size, start + (i + 1) * size) for i in range(count))


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _pick(items: Sequence[int], rng: Random) -> int:
    return items[_below(len(items), rng)]


def _below(limit: int, rng: Random) -> int:
    return int(rng.random() * limit)


def _delay_ns(low_ms: int, high_ms: int, rng: Random) -> int:
    low_ns = low_ms * NS_PER_MS
    return low_ns + _below(high_ms * NS_PER_MS - low_ns + 1, rng)
