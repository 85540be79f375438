"""Reads what a site file says for predictions (holdfast.broker.quality), and refuses what makes no sense, by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from holdfast.broker.quality import (
    LIFETIME_S,
    OF_PARTS,
    UNITS,
    WAYS,
    Ends,
    Failing,
    MeanTimes,
    ObservedTimes,
    PublisherEntry,
    Quality,
    SubscriberEntry,
    TogetherEntry,
    seconds_of,
)
from holdfast.broker.site_text import SiteText
from holdfast.errors import FilterError
from holdfast.model.filter import Filter


def read_quality(
    text: SiteText, document: Mapping[str, Any], ids: Sequence[str], links: Sequence[Ends], homes: Sequence[str]
) -> Quality:
    """Of the brokers `ids`; those of them where clients may be at home are `homes`."""
    reader = _Reader(text, document, ids, homes)
    prediction = document.get("prediction", {})
    text.allow(prediction, "prediction", {"brokers": str, "links": str, "lifetime": str})
    lifetime = LIFETIME_S
    if "lifetime" in prediction:
        lifetime = reader.seconds(prediction, "lifetime", "prediction", 0)
    listed = document.get("link", [])
    return Quality(
        brokers=reader.parts("broker", document.get("broker", []), ids, prediction.get("brokers"), "brokers"),
        links=reader.parts("link", listed, list(links), prediction.get("links"), "links"),
        together=reader.together(links),
        lifetime_s=lifetime,
        publishers=reader.publishers(),
        subscribers=reader.subscribers(),
    )


class _Reader:
    def __init__(self, text: SiteText, document: Mapping[str, Any], ids: Sequence[str], homes: Sequence[str]) -> None:
        self._text = text
        self._document = document
        self._ids = ids
        self._homes = homes
        self._classes: dict[str, Failing] = {}
        for place, table in enumerate(self._tables("class")):
            text.allow(table, "class", {"name": str, **OF_PARTS}, place)
            if "name" not in table:
                text.refuse("a class has a name", "", "class", place)
            if "class" in table:
                text.refuse("a class is of no other class", "class", "class", place)
            times = self._times(table, "class", place)
            if times is None:
                text.refuse(f"a class says how its parts fail: {WAYS}", "", "class", place)
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
            units = ", ".join(UNITS)
            problem = f'{key!r} is {table[key]!r}, and has to be a time with its unit, as "4h"; units are {units}'
            self._text.refuse(problem, key, title, place)
        return seconds

    def _times(self, table: Mapping[str, Any], title: str, place: int) -> Failing | None:
        """What a table says itself."""
        refuse = self._text.refuse
        said = [key for key in OF_PARTS if key in table and key != "class"]
        if not said:
            return None
        if said == ["observed"]:
            return ObservedTimes(table["observed"])
        if set(said) == {"mtbf", "mttr"}:
            on, off = (self.seconds(table, key, title, place) for key in ("mtbf", "mttr"))
        elif set(said) == {"availability", "period"}:
            share, period = table["availability"], self.seconds(table, "period", title, place)
            if not 0 < share <= 1:
                refuse(f"'availability' is {share}, and has to be above 0 and at most 1", "availability", title, place)
            on, off = share * period, (1 - share) * period
        else:
            names = ", ".join(said)
            problem = f"{names} alone does not tell how it fails" if len(said) == 1 else f"{names} do not go together"
            refuse(f"{problem}: say {WAYS}", said[0], title, place)
        if not on > 0:
            refuse("a part that is never on is no part", said[0], title, place)
        return MeanTimes(on, off)

    def _part(self, table: Mapping[str, Any], title: str, place: int) -> Failing | None:
        """What a table says itself, or by its class."""
        times = self._times(table, title, place)
        if "class" not in table:
            return times
        if times is not None:
            self._text.refuse("its class says how it fails: leave out one of both", "class", title, place)
        return self._class(table["class"], "class", title, place)

    def parts(
        self, title: str, tables: Sequence[Mapping[str, Any]], keys: Sequence[Any], default: str | None, key: str
    ) -> dict[Any, Failing]:
        """By broker, or by the ends of a link. Those that a topology has made are of the default class."""
        found: dict[Any, Failing] = {}
        common = None if default is None else self._class(default, key, "prediction", 0)
        for place, part in enumerate(keys):
            times = self._part(tables[place] if tables else {}, title, place) or common
            if times is not None:
                found[part] = times
        return found

    def _class(self, name: str, key: str, title: str, place: int) -> Failing:
        if name not in self._classes:
            known = ", ".join(self._classes) or "none; add [[class]]"
            self._text.refuse(f"there is no class {name!r}; there is {known}", key, title, place)
        return self._classes[name]

    def together(self, links: Sequence[Ends]) -> tuple[TogetherEntry, ...]:
        entries: dict[str, TogetherEntry] = {}
        known = {frozenset(ends): ends for ends in links}
        for place, table in enumerate(self._tables("together")):
            refuse = partial(self._text.refuse, table="together", place=place)
            self._text.allow(table, "together", {"name": str, "brokers": list, "links": list, **OF_PARTS}, place)
            if "name" not in table:
                refuse("what fails together has a name, as that of a rack or a cable")
            times = self._part(table, "together", place)
            if times is None:
                refuse(f"what is shared says how it fails: {WAYS}, or a class")
            for broker in table.get("brokers", []):
                if broker not in self._ids:
                    refuse(f"there is no broker {broker!r}", "brokers")
            shared = []
            for ends in table.get("links", []):
                if not isinstance(ends, list) or not all(isinstance(end, str) for end in ends):
                    refuse(f'a link is written by its two ends, as ["b1", "b2"], and not {ends!r}', "links")
                if frozenset(ends) not in known:
                    refuse(f"there is no link between {' and '.join(ends)}", "links")
                shared.append(known[frozenset(ends)])
            if table["name"] in entries:
                refuse(f"two things that are shared are called {table['name']!r}", "name")
            entries[table["name"]] = TogetherEntry(table["name"], times, tuple(table.get("brokers", [])), tuple(shared))
        return tuple(entries.values())

    def publishers(self) -> tuple[PublisherEntry, ...]:
        allowed = {"home": str, "topic": str, "rate": float, "lifetime": str, "sample": str, "local": str}
        entries = []
        for place, table in enumerate(self._tables("publisher")):
            self._text.allow(table, "publisher", allowed, place)
            self._check_home(table, "publisher", place)
            if not table.get("rate", 1.0) >= 0:
                self._text.refuse(f"'rate' is {table['rate']}, and has to be 0 or more", "rate", "publisher", place)
            if "sample" in table and "topic" in table:
                self._text.refuse(
                    "the events of a sample have topics of their own: leave out one of both",
                    "topic",
                    "publisher",
                    place,
                )
            entries.append(
                PublisherEntry(
                    home=table["home"],
                    topic=table.get("topic", ""),
                    rate=float(table.get("rate", 1.0)),
                    lifetime_s=self.seconds(table, "lifetime", "publisher", place) if "lifetime" in table else None,
                    sample=table.get("sample", ""),
                    local=self._local(table, "publisher", place),
                )
            )
        return tuple(entries)

    def subscribers(self) -> tuple[SubscriberEntry, ...]:
        allowed = {"home": str, "topic": str, "filter": str, "count": int, "name": str, "local": str}
        entries = []
        for place, table in enumerate(self._tables("subscriber")):
            self._text.allow(table, "subscriber", allowed, place)
            self._check_home(table, "subscriber", place)
            if table.get("count", 1) < 1:
                self._text.refuse(f"'count' is {table['count']}, and has to be 1 or more", "count", "subscriber", place)
            try:
                Filter(table.get("filter", ""))
            except FilterError as problem:
                self._text.refuse(f"'filter': {problem}", "filter", "subscriber", place)
            local = self._local(table, "subscriber", place)
            entries.append(SubscriberEntry(**{**table, "local": local}))
        return tuple(entries)

    def _local(self, table: Mapping[str, Any], title: str, place: int) -> Failing | None:
        return self._class(table["local"], "local", title, place) if "local" in table else None

    def _check_home(self, table: Mapping[str, Any], title: str, place: int) -> None:
        if "home" not in table:
            self._text.refuse(f"a {title} has a home: the id of its broker", "", title, place)
        if table["home"] not in self._homes:
            known = ", ".join(self._homes[:8]) + (" …" if len(self._homes) > 8 else "")
            what = f"broker {table['home']!r} is a spare" if table["home"] in self._ids else ""
            what = what or f"there is no broker {table['home']!r}"
            self._text.refuse(f"{what}; there is {known}", "home", title, place)
