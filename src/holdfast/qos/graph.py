"""Brokers and links with their parts: paths in them, and how likely it is that all of a path is on.

Some may fail together (D1-F4): the brokers of a rack with its power, links that share a cable. What they share is a
part of its own (`Together`), and each of them is on while it is on itself and all that it shares is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product

import msgspec

from holdfast.errors import PredictionError
from holdfast.qos.parts import NEVER_FAILS, Part
from holdfast.topology.graph import BrokerGraph

Ends = tuple[str, str]  # of a link
Path = tuple[str, ...]  # brokers, from the publisher's home to the subscriber's
CASES_MAX = 1 << 10  # of what is shared, on or off, that are looked at one by one where events take detours


class Together(msgspec.Struct, frozen=True):
    """Shared by some brokers and links, which are off while it is off."""

    name: str
    part: Part
    brokers: tuple[str, ...] = ()
    links: tuple[Ends, ...] = ()


class Case(msgspec.Struct, frozen=True):
    """Some of what is shared is off, and the rest on: how likely that is, and what is off because of it."""

    probability: float
    brokers: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()


class PartGraph:
    """A network's graph. `links` are by their two ends, in either order."""

    def __init__(
        self, brokers: Mapping[str, Part], links: Mapping[Ends, Part], together: Sequence[Together] = ()
    ) -> None:
        self.brokers = dict(brokers)
        self.plain = BrokerGraph(list(brokers), list(links))
        self.together = {one.name: one for one in together if not one.part.never_fails}
        self._links = {ends: part for (a, b), part in links.items() for ends in ((a, b), (b, a))}
        self._on = {name: part.availability for name, part in brokers.items()}
        self._links_on = {ends: part.availability for ends, part in self._links.items()}
        self._shares: dict[str | frozenset[str], frozenset[str]] = {}
        for one in self.together.values():
            self._check(one)
            whats: list[str | frozenset[str]] = [*one.brokers, *map(frozenset, one.links)]
            for what in whats:
                self._shares[what] = self.shares(what) | {one.name}

    def _check(self, one: Together) -> None:
        for broker in one.brokers:
            self.check(broker)
        for ends in one.links:
            if ends not in self._links:
                raise PredictionError(f"there is no link {ends[0]} – {ends[1]}, which {one.name!r} is shared by")

    def link(self, one: str, other: str) -> Part:
        return self._links[one, other]

    @property
    def links(self) -> dict[Ends, Part]:
        return {ends: self.link(*ends) for ends in self.plain.links}

    def check(self, broker: str) -> None:
        if broker not in self.brokers:
            raise PredictionError(f"there is no broker {broker!r}")

    # --------------------------------------------------------------------------------------------- what parts share
    def shares(self, what: str | frozenset[str]) -> frozenset[str]:
        """The names of what a broker shares, or a link, by both of its ends."""
        return self._shares.get(what, frozenset())

    def shared_on(self, names: Iterable[str]) -> float:
        """How likely it is that all of that is on."""
        likely = 1.0
        for name in names:
            likely *= self.together[name].part.availability
        return likely

    def cases(self) -> Iterator[Case]:
        """All that can be the matter with what is shared. One, if nothing is."""
        shared = list(self.together.values())
        if 1 << len(shared) > CASES_MAX:
            raise PredictionError(
                f"{len(shared)} things are shared by parts that fail together; with detours, up to"
                f" {CASES_MAX.bit_length() - 1} can be (CASES_MAX)"
            )
        for states in product((True, False), repeat=len(shared)):
            probability = 1.0
            brokers: set[str] = set()
            links: set[frozenset[str]] = set()
            for one, on in zip(shared, states, strict=True):
                probability *= one.part.availability if on else 1 - one.part.availability
                if not on:
                    brokers.update(one.brokers)
                    links.update(map(frozenset, one.links))
            yield Case(probability, frozenset(brokers), frozenset(links))

    # ------------------------------------------------------------------------------------------------- availability
    def broker_is_on(self, broker: str) -> float:
        """How likely it is that a broker is on, with all that it shares."""
        return self._on[broker] * self.shared_on(self.shares(broker))

    def path_availability(self, path: Sequence[str]) -> float:
        """How likely it is that all brokers and links of a path are on (Eq. 3, D1-D3)."""
        likely = self._on[path[0]]
        for here, following in pairwise(path):
            likely *= self._links_on[here, following] * self._on[following]
        if self.together:
            shared = self.shares(path[0])
            for ends in pairwise(path):
                shared |= self.shares(frozenset(ends)) | self.shares(ends[1])
            likely *= self.shared_on(shared)
        return likely

    def own_availability(self, path: Sequence[str], case: Case) -> float:
        """The same where it is known what of the shared is off."""
        if not case.brokers.isdisjoint(path) or any(frozenset(ends) in case.links for ends in pairwise(path)):
            return 0.0
        likely = self._on[path[0]]
        for here, following in pairwise(path):
            likely *= self._links_on[here, following] * self._on[following]
        return likely

    # --------------------------------------------------------------------------------------------------- what if
    def mended(self, what: str | Ends | Together) -> PartGraph:
        """The same if a broker, a link or something shared never failed."""
        together = [one for one in self.together.values() if one != what]
        brokers = self.brokers | ({what: NEVER_FAILS} if isinstance(what, str) else {})
        links = self.links | ({what: NEVER_FAILS} if isinstance(what, tuple) else {})
        return PartGraph(brokers, links, together)
