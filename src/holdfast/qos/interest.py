"""Who gets how many events from whom: the pairwise rates of Eq. 1 (D1-D1), by topics or by content.

A publisher says which topic its events have, or shows a sample of them. With a sample, a subscriber may have any
filter: the share of the sample that matches is the share of the events, and each event of it may have a lifetime of its
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import msgspec

from holdfast.errors import PredictionError
from holdfast.matching.index import FilterIndex
from holdfast.model.filter import Filter
from holdfast.qos.parts import NEVER_FAILS, Part


class SampleEvent(msgspec.Struct, frozen=True):
    """`lifetime` is in seconds; None is that of its publisher."""

    topic: str = ""
    attributes: Mapping[str, Any] = {}
    lifetime: float | None = None


class Publisher(msgspec.Struct, frozen=True):
    """At home at a broker. `rate` is its share among those of a topic; events per second, or anything proportional.
    `lifetime` is that of its events, in seconds; None is that of the model. `local` is the link to its broker: what is
    published while it is off is lost."""

    home: str
    topic: str = ""
    rate: float = 1.0
    lifetime: float | None = None
    local: Part = NEVER_FAILS
    sample: tuple[SampleEvent, ...] = ()

    def check(self) -> None:
        """PredictionError if it publishes less than nothing, or events that live for ever or end before they begin."""
        if not self.rate >= 0:
            raise PredictionError(f"a publisher at {self.home!r} has the rate {self.rate:g}, and it is 0 or more")
        if self.lifetime is not None and not 0 <= self.lifetime < inf:
            raise PredictionError(f"a publisher at {self.home!r} has a lifetime of {self.lifetime:g} s")


class Subscriber(msgspec.Struct, frozen=True):
    """One, or several with the same home and interest. `name` is for people; `local` the link to its broker."""

    home: str
    topic: str = ""
    name: str = ""
    count: int = 1
    filter: str = ""
    local: Part = NEVER_FAILS

    @property
    def interest(self) -> tuple[str, str]:
        return self.topic, self.filter


class Flow(msgspec.Struct, frozen=True):
    """Events from a broker to one subscriber: how many, and their lifetime; None is that of the model. `enters` is how
    likely they get into their broker as far as the local link goes."""

    home: str
    rate: float
    lifetime: float | None = None
    enters: float = 1.0


class Interests:
    """Of the given publishers, for the given subscribers."""

    def __init__(self, publishers: Sequence[Publisher], subscribers: Iterable[Subscriber]) -> None:
        self._by_topic: dict[str, list[Publisher]] = {}
        self._with_sample = [one for one in publishers if one.sample and one.rate > 0]
        self._without = [one for one in publishers if not one.sample and one.rate > 0]
        for one in self._without:
            self._by_topic.setdefault(one.topic, []).append(one)
        wanted = dict.fromkeys(one.interest for one in subscribers)
        self._flows = {interest: self._named(interest) for interest in wanted}
        self._add_sampled(wanted)

    def flows(self, subscriber: Subscriber) -> list[Flow]:
        return self._flows[subscriber.interest]

    def _named(self, interest: tuple[str, str]) -> list[Flow]:
        """From publishers that name their topic."""
        topic, text = interest
        if not text:
            return [_flow(one, one.rate, None) for one in self._by_topic.get(topic, [])]
        if self._without:
            raise PredictionError(
                f"a subscriber has the filter {text!r}, and the publisher at {self._without[0].home!r} shows no sample"
                " of its events: how many of them match is not known"
            )
        return []

    def _add_sampled(self, wanted: Iterable[tuple[str, str]]) -> None:
        if not self._with_sample:
            return
        index: FilterIndex[tuple[str, str]] = FilterIndex()
        for topic, text in wanted:
            index.add((topic, text), Filter(text))
        for one in self._with_sample:
            found: dict[tuple[tuple[str, str], float | None], int] = {}
            events = [(event.attributes, event.topic) for event in one.sample]
            for event, matching in zip(one.sample, index.match_batch(events), strict=True):
                for interest in matching:
                    # Without a filter, the topic is all that is asked for; with one it is so only if there is one.
                    if event.topic == interest[0] or (interest[1] and not interest[0]):
                        key = (interest, event.lifetime)
                        found[key] = found.get(key, 0) + 1
            for (interest, lifetime), count in found.items():
                self._flows[interest].append(_flow(one, one.rate * count / len(one.sample), lifetime))


def _flow(publisher: Publisher, rate: float, lifetime: float | None) -> Flow:
    lifetime = publisher.lifetime if lifetime is None else lifetime
    return Flow(publisher.home, rate, lifetime, publisher.local.availability)
