"""What a site file says of how its brokers and links fail, and who publishes for whom: for predictions (docs/qos.md).

    [[class]]                         # brokers or links of one kind
    name = "low-end"
    mtbf = "7d"                       # the mean time that a part is on …
    mttr = "4h"                       # … and off, until it is repaired; or
    availability = 0.95               # the share of time that it is on, and …
    period = "7d"                     # … both mean times together; or
    observed = "times.csv"            # a file with on and off times, to which distributions are fitted
    [[broker]]                        # or [[link]]: with those keys, or
    class = "low-end"
    [prediction]                      # all optional
    brokers = "low-end"               # the class of brokers that say nothing themselves; without one they never fail
    links = "wan"                     # and of links
    lifetime = "1h"                   # an event that comes later is late
    [[together]]                      # brokers and links that share something which fails, with the keys of a part
    name = "rack 2"
    brokers = ["b3", "b4"]
    links = [["b3", "b4"]]
    class = "power"
    [[publisher]]                     # without any, one at every broker
    home = "b1"
    topic = "stock"                   # of all of its events, or
    sample = "events.jsonl"           # a file with some of them, as `holdfast publish` reads it
    rate = 2.0                        # events in a second, or anything proportional to it
    lifetime = "10min"                # of its events
    local = "wan"                     # the class of its link to its broker; without one that never fails
    [[subscriber]]                    # without any, one at every broker for each topic
    home = "b3"
    topic = "stock"
    filter = "price > 100"            # if publishers have samples
    count = 100                       # so many of them
    name = "risk desk"                # for people
    local = "wan"

Nothing here changes what brokers do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

TABLES: Final[Mapping[str, type]] = {
    "class": list,
    "prediction": dict,
    "together": list,
    "publisher": list,
    "subscriber": list,
}
OF_PARTS: Final[Mapping[str, type]] = {
    "mtbf": str,
    "mttr": str,
    "availability": float,
    "period": str,
    "observed": str,
    "class": str,
}
WAYS: Final = "mtbf and mttr, or availability and period, or observed"
UNITS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
LIFETIME_S: Final = 3_600.0  # as in D1-E2

Ends = tuple[str, str]


class MeanTimes(msgspec.Struct, frozen=True, gc=False):
    """Of a part that fails: seconds that it is on, and off, on average."""

    on_s: float
    off_s: float


class ObservedTimes(msgspec.Struct, frozen=True, gc=False):
    """Of a part that fails as the times in a file."""

    file: str


Failing = MeanTimes | ObservedTimes


class TogetherEntry(msgspec.Struct, frozen=True):
    """Something that brokers and links share, and that fails."""

    name: str
    times: Failing
    brokers: tuple[str, ...]
    links: tuple[Ends, ...]


class PublisherEntry(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    topic: str = ""
    rate: float = 1.0
    lifetime_s: float | None = None
    sample: str = ""
    local: Failing | None = None


class SubscriberEntry(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    topic: str = ""
    count: int = 1
    name: str = ""
    filter: str = ""
    local: Failing | None = None


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that are not named never fail."""

    brokers: dict[str, Failing] = {}
    links: dict[Ends, Failing] = {}
    together: tuple[TogetherEntry, ...] = ()
    lifetime_s: float = LIFETIME_S
    publishers: tuple[PublisherEntry, ...] = ()
    subscribers: tuple[SubscriberEntry, ...] = ()


def seconds_of(text: str) -> float | None:
    """A time with its unit, as `7d` or `1.5 h`; None if it is none."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else None
