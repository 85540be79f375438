"""A site as a model: its brokers and links as parts, its publishers and subscribers.

Of a site that names no publishers there is one at each broker, with events of every topic that is subscribed to; of one
that names no subscribers, one at each broker for each topic.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.broker.quality import MeanTimes
from holdfast.broker.site import Site
from holdfast.errors import PredictionError
from holdfast.qos.graph import PartGraph
from holdfast.qos.parts import NEVER_FAILS, Part, part_of_means
from holdfast.qos.prediction import Model, Publisher, Subscriber
from holdfast.qos.waiting import Wait, wait_for


class SiteModel(msgspec.Struct, frozen=True):
    """What is asked about a network."""

    model: Model
    publishers: list[Publisher]
    subscribers: list[Subscriber]


def _part(times: MeanTimes | None) -> Part:
    return NEVER_FAILS if times is None else part_of_means(times.on_s, times.off_s)


def model_of(site: Site, lifetime_s: float | None = None) -> SiteModel:
    """Of a network, or of one broker."""
    told = site.quality
    if not told.brokers and not told.links:
        raise PredictionError(
            "the site file does not say how its brokers and links fail: give them mtbf and mttr, or availability and"
            " period, or a [[class]] that has them and [prediction] brokers = …, links = …"
        )
    graph = PartGraph(
        {entry.id: _part(told.brokers.get(entry.id)) for entry in site.brokers},
        {ends: _part(told.links.get(ends)) for ends in site.links},
    )
    ids = [entry.id for entry in site.brokers]
    said = [*(one.topic for one in told.publishers), *(one.topic for one in told.subscribers)]
    topics = dict.fromkeys(said) or {"": None}
    publishers = [Publisher(one.home, one.topic, one.rate) for one in told.publishers]
    publishers = publishers or [Publisher(home, topic) for topic in topics for home in ids]
    subscribers = [Subscriber(one.home, one.topic, one.name, one.count) for one in told.subscribers]
    subscribers = subscribers or [Subscriber(home, topic) for topic in topics for home in ids]
    return SiteModel(Model(graph, told.lifetime_s if lifetime_s is None else lifetime_s), publishers, subscribers)


def group_wait(site: Site) -> Wait:
    """How long a publication waits until a majority of a group's replicas is on: it is accepted then."""
    members = [entry for entry in site.brokers if not entry.spare]
    if not site.quality.brokers:
        raise PredictionError("the site file does not say how its replicas fail: give them mtbf and mttr, or a class")

    def majority(on: NDArray[np.bool_]) -> NDArray[np.bool_]:
        result: NDArray[np.bool_] = on.sum(axis=1) > len(members) // 2
        return result

    return wait_for([_part(site.quality.brokers.get(entry.id)) for entry in members], enough=majority)
