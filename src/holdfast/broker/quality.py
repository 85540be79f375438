"""What a site file says of how its brokers and links fail, and who publishes for whom: for predictions (docs/qos.md).

    [[class]]                         # brokers or links of one kind
    name = "low-end"
    mtbf = "7d"                       # the mean time that a part is on …
    mttr = "4h"                       # … and off, until it is repaired; or
    availability = 0.95               # the share of time that it is on, and …
    period = "7d"                     # … both mean times together
    [[broker]]                        # or [[link]]: with those keys, or
    class = "low-end"
    [prediction]                      # all optional
    brokers = "low-end"               # the class of brokers that say nothing themselves; without one they never fail
    links = "wan"                     # and of links
    lifetime = "1h"                   # an event that comes later is late
    [[publisher]]                     # without any, one at every broker
    home = "b1"
    topic = "stock"
    rate = 2.0                        # events in a second, or anything proportional to it
    [[subscriber]]                    # without any, one at every broker for each topic
    home = "b3"
    topic = "stock"
    count = 100                       # so many of them
    name = "risk desk"                # for people

Nothing here changes what brokers do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.broker.site_text import SiteText

TABLES: Final[Mapping[str, type]] = {"class": list, "prediction": dict, "publisher": list, "subscriber": list}
OF_PARTS: Final[Mapping[str, type]] = {"mtbf": str, "mttr": str, "availability": float, "period": str, "class": str}
_UNITS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
LIFETIME_S: Final = 3_600.0  # as in D1-E2

Ends = tuple[str, str]


class MeanTimes(msgspec.Struct, frozen=True, gc=False):
    """Of a part that fails: seconds that it is on, and off, on average."""

    on_s: float
    off_s: float


class PublisherEntry(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    topic: str = ""
    rate: float = 1.0


class SubscriberEntry(msgspec.Struct, frozen=True, kw_only=True):
    home: str
    topic: str = ""
    count: int = 1
    name: str = ""


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that are not named never fail."""

    brokers: dict[str, MeanTimes] = {}
    links: dict[Ends, MeanTimes] = {}
    lifetime_s: float = LIFETIME_S
    publishers: tuple[PublisherEntry, ...] = ()
    subscribers: tuple[SubscriberEntry, ...] = ()


def seconds_of(text: str) -> float | None:
    """A time with its unit, as `7d` or `1.5 h`; None if it is none."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else None


def read_quality(text: SiteText, document: Mapping[str, Any], ids: Sequence[str], links: Sequence[Ends]) -> Quality:
    reader = _Reader(text, document, ids)
    prediction = document.get("prediction", {})
    text.allow(prediction, "prediction", {"brokers": str, "links": str, "lifetime": str})
    lifetime = LIFETIME_S
    if "lifetime" in prediction:
        lifetime = reader.seconds(prediction, "lifetime", "prediction", 0)
    listed = document.get("link", [])
    return Quality(
        brokers=reader.parts("broker", document.get("broker", []), ids, prediction.get("brokers"), "brokers"),
        links=reader.parts("link", listed, list(links), prediction.get("links"), "links"),
        lifetime_s=lifetime,
        publishers=reader.publishers(),
        subscribers=reader.subscribers(),
    )


class _Reader:
    def __init__(self, text: SiteText, document: Mapping[str, Any], ids: Sequence[str]) -> None:
        self._text = text
        self._document = document
        self._ids = ids
        self._classes: dict[str, MeanTimes] = {}
        for place, table in enumerate(self._tables("class")):
            text.allow(table, "class", {"name": str, **OF_PARTS}, place)
            if "name" not in table:
                text.refuse("a class has a name", "", "class", place)
            if "class" in table:
                text.refuse("a class is of no other class", "class", "class", place)
            times = self._times(table, "class", place)
            if times is None:
                text.refuse(
                    "a class says how its parts fail: mtbf and mttr, or availability and period", "", "class", place
                )
            if table["name"] in self._classes:
                text.refuse(f"two classes are called {table['name']!r}", "name", "class", place)
            self._classes[table["name"]] = times

    def _tables(self, title: str) -> list[dict[str, Any]]:
        tables = self._document.get(title, [])
        if not all(isinstance(table, dict) for table in tables):
            self._text.refuse(f"{title!r} is an array of tables: write [[{title}]]", title)
        return list(tables)

    def seconds(self, table: Mapping[str, Any], key: str, title: str, place: int) -> float:
        seconds = seconds_of(table[key])
        if seconds is None:
            units = ", ".join(_UNITS)
            problem = f'{key!r} is {table[key]!r}, and has to be a time with its unit, as "4h"; units are {units}'
            self._text.refuse(problem, key, title, place)
        return seconds

    def _times(self, table: Mapping[str, Any], title: str, place: int) -> MeanTimes | None:
        """What a table says itself."""
        refuse = self._text.refuse
        said = [key for key in OF_PARTS if key in table and key != "class"]
        if not said:
            return None
        if set(said) == {"mtbf", "mttr"}:
            on, off = (self.seconds(table, key, title, place) for key in ("mtbf", "mttr"))
        elif set(said) == {"availability", "period"}:
            share, period = table["availability"], self.seconds(table, "period", title, place)
            if not 0 < share <= 1:
                refuse(f"'availability' is {share}, and has to be above 0 and at most 1", "availability", title, place)
            on, off = share * period, (1 - share) * period
        else:
            problem = f"{', '.join(said)} alone do not tell how it fails: say mtbf and mttr, or availability and period"
            refuse(problem, said[0], title, place)
        if not on > 0:
            refuse("a part that is never on is no part", said[0], title, place)
        return MeanTimes(on, off)

    def parts(
        self, title: str, tables: Sequence[Mapping[str, Any]], keys: Sequence[Any], default: str | None, key: str
    ) -> dict[Any, MeanTimes]:
        """By broker, or by the ends of a link. Those that a topology has made are of the default class."""
        found: dict[Any, MeanTimes] = {}
        common = None if default is None else self._class(default, key, "prediction", 0)
        for place, part in enumerate(keys):
            table = tables[place] if tables else {}
            times = self._times(table, title, place)
            if "class" in table:
                if times is not None:
                    self._text.refuse("its class says how it fails: leave out one of both", "class", title, place)
                times = self._class(table["class"], "class", title, place)
            times = times or common
            if times is not None and times.off_s > 0:
                found[part] = times
        return found

    def _class(self, name: str, key: str, title: str, place: int) -> MeanTimes:
        if name not in self._classes:
            known = ", ".join(self._classes) or "none; add [[class]]"
            self._text.refuse(f"there is no class {name!r}; there is {known}", key, title, place)
        return self._classes[name]

    def publishers(self) -> tuple[PublisherEntry, ...]:
        entries = []
        for place, table in enumerate(self._tables("publisher")):
            self._text.allow(table, "publisher", {"home": str, "topic": str, "rate": float}, place)
            self._check_home(table, "publisher", place)
            if not table.get("rate", 1.0) >= 0:
                self._text.refuse(f"'rate' is {table['rate']}, and has to be 0 or more", "rate", "publisher", place)
            entries.append(PublisherEntry(**table))
        return tuple(entries)

    def subscribers(self) -> tuple[SubscriberEntry, ...]:
        entries = []
        for place, table in enumerate(self._tables("subscriber")):
            self._text.allow(table, "subscriber", {"home": str, "topic": str, "count": int, "name": str}, place)
            self._check_home(table, "subscriber", place)
            if table.get("count", 1) < 1:
                self._text.refuse(f"'count' is {table['count']}, and has to be 1 or more", "count", "subscriber", place)
            entries.append(SubscriberEntry(**table))
        return tuple(entries)

    def _check_home(self, table: Mapping[str, Any], title: str, place: int) -> None:
        if "home" not in table:
            self._text.refuse(f"a {title} has a home: the id of its broker", "", title, place)
        if table["home"] not in self._ids:
            known = ", ".join(self._ids[:8]) + (" …" if len(self._ids) > 8 else "")
            self._text.refuse(f"there is no broker {table['home']!r}; there is {known}", "home", title, place)
