"""Brokers and links with their parts: paths in them, and how likely it is that all of a path is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from holdfast.errors import PredictionError
from holdfast.qos.parts import Part
from holdfast.topology.overlay import Overlay

Path = tuple[str, ...]  # brokers, from the publisher's home to the subscriber's


class PartGraph:
    """A network's graph. `links` are by their two ends, in either order."""

    def __init__(self, brokers: Mapping[str, Part], links: Mapping[tuple[str, str], Part]) -> None:
        self.brokers = dict(brokers)
        self.overlay = Overlay(list(brokers), list(links))
        self._links = {ends: part for (a, b), part in links.items() for ends in ((a, b), (b, a))}
        self._on = {name: part.availability for name, part in brokers.items()}
        self._links_on = {ends: part.availability for ends, part in self._links.items()}

    def link(self, one: str, other: str) -> Part:
        return self._links[one, other]

    @property
    def links(self) -> dict[tuple[str, str], Part]:
        return {ends: self.link(*ends) for ends in self.overlay.links}

    def check(self, broker: str) -> None:
        if broker not in self.brokers:
            raise PredictionError(f"there is no broker {broker!r}")

    def path_availability(self, path: Sequence[str]) -> float:
        """How likely it is that all brokers and links of a path are on (Eq. 3, D1-D3)."""
        likely = self._on[path[0]]
        for here, following in pairwise(path):
            likely *= self._links_on[here, following] * self._on[following]
        return likely

    def replaced(self, name: str | tuple[str, str], part: Part) -> PartGraph:
        """The same with another part in the place of one: a broker's, by name, or a link's, by its ends."""
        if isinstance(name, str):
            return PartGraph(self.brokers | {name: part}, self.links)
        return PartGraph(self.brokers, self.links | {name: part})
