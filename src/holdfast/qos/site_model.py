"""A site as a model: its brokers and links as parts, its publishers and subscribers.

Of a site that names no publishers there is one at each broker, with events of every topic that is subscribed to; of one
that names no subscribers, one at each broker for each topic.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.broker.quality import Failing, MeanTimes
from holdfast.broker.site import Site
from holdfast.errors import PredictionError
from holdfast.qos.fitting import part_fitted
from holdfast.qos.graph import PartGraph, Together
from holdfast.qos.interest import Publisher, Subscriber
from holdfast.qos.observations import observed_from, sample_from
from holdfast.qos.parts import NEVER_FAILS, Part, part_of_means
from holdfast.qos.prediction import Model
from holdfast.qos.waiting import Wait, wait_for

ReadText = Callable[[str], str]


def _no_files(name: str) -> str:
    raise PredictionError(f"the site file names {name!r}, and nobody reads files here")


class SiteModel(msgspec.Struct, frozen=True):
    """What is asked about a network."""

    model: Model
    publishers: list[Publisher]
    subscribers: list[Subscriber]


class _Parts:
    """Made once for each way to fail: fitting takes seconds, and a class has many parts."""

    def __init__(self, read: ReadText) -> None:
        self._read = read
        self._fitted: dict[str, Part] = {}

    def part(self, times: Failing | None) -> Part:
        if times is None:
            return NEVER_FAILS
        if isinstance(times, MeanTimes):
            return part_of_means(times.on_s, times.off_s)
        if times.file not in self._fitted:
            self._fitted[times.file] = part_fitted(*observed_from(self._read(times.file), times.file))
        return self._fitted[times.file]


def model_of(site: Site, lifetime_s: float | None = None, read: ReadText = _no_files) -> SiteModel:
    """Of a network, or of one broker. `read` gives the text of a file that the site file names."""
    told = site.quality
    if not told.brokers and not told.links and not told.together:
        raise PredictionError(
            "the site file does not say how its brokers and links fail: give them mtbf and mttr, or availability and"
            " period, or a [[class]] that has them and [prediction] brokers = …, links = …"
        )
    part = _Parts(read).part
    graph = PartGraph(
        {entry.id: part(told.brokers.get(entry.id)) for entry in site.members},
        {ends: part(told.links.get(ends)) for ends in site.links},
        [Together(one.name, part(one.times), one.brokers, one.links) for one in told.together],
    )
    named = dict.fromkeys(one.sample for one in told.publishers if one.sample)
    samples = {name: sample_from(read(name), name) for name in named}
    ids = [entry.id for entry in site.members]
    said = [one.topic for one in told.publishers if not one.sample] + [one.topic for one in told.subscribers]
    said += [event.topic for sample in samples.values() for event in sample]
    topics = dict.fromkeys(said) or {"": None}
    publishers = [
        Publisher(one.home, one.topic, one.rate, one.lifetime_s, part(one.local), samples.get(one.sample, ()))
        for one in told.publishers
    ]
    publishers = publishers or [Publisher(home, topic) for topic in topics for home in ids]
    subscribers = [
        Subscriber(one.home, one.topic, one.name, one.count, one.filter, part(one.local)) for one in told.subscribers
    ]
    subscribers = subscribers or [Subscriber(home, topic) for topic in topics for home in ids]
    return SiteModel(Model(graph, told.lifetime_s if lifetime_s is None else lifetime_s), publishers, subscribers)


def group_wait(site: Site, read: ReadText = _no_files) -> Wait:
    """How long a publication waits until a majority of a group's replicas is on: it is accepted then."""
    members = site.members
    if not site.quality.brokers and not site.quality.together:
        raise PredictionError("the site file does not say how its replicas fail: give them mtbf and mttr, or a class")

    shared = site.quality.together
    places = {entry.id: place for place, entry in enumerate(members)}

    def majority(on: NDArray[np.bool_]) -> NDArray[np.bool_]:
        up = on[:, : len(members)].copy()
        for number, one in enumerate(shared, len(members)):
            for broker in one.brokers:
                if broker in places:
                    up[:, places[broker]] &= on[:, number]
        result: NDArray[np.bool_] = up.sum(axis=1) > len(members) // 2
        return result

    part = _Parts(read).part
    replicas = [part(site.quality.brokers.get(entry.id)) for entry in members]
    return wait_for([*replicas, *(part(one.times) for one in shared)], enough=majority)
