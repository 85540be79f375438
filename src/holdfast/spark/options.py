"""The source's options: texts, as Spark hands them on, checked once and turned into values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias, TypeVar

import msgspec

from holdfast.client.url import addresses_of
from holdfast.errors import FilterError, UrlError
from holdfast.model import Filter
from holdfast.spark.errors import OptionError

EARLIEST, NEW = "earliest", "new"
WAIT_S = 120.0
NAME_BYTES_MAX = 128
PARTITIONS_MAX = 10_000

# "earliest", "new", the number of a position, or a time.
From: TypeAlias = str | int | datetime

_T = TypeVar("_T")


class SourceOptions(msgspec.Struct, frozen=True):
    """`start` is None if nothing was said: then a batch begins at the earliest event, and a stream where its name
    stands, or with new ones."""

    url: str
    filter: str = ""
    start: From | None = None
    to: int | None = None
    max_events_per_batch: int | None = None
    name: str | None = None
    partitions: int | None = None  # as many as pay off
    wait_s: float = WAIT_S


ALLOWED = ("url", "filter", "from", "to", "max_events_per_batch", "name", "partitions", "wait_s")
# What Spark and its pipelines add by themselves.
_NOT_OURS = ("path", "__")


def source_options(given: Mapping[str, str], *, stream: bool) -> SourceOptions:
    """The options of a reader, or OptionError."""
    texts = {key.lower(): value for key, value in given.items()}
    refuse_unknown(texts, ALLOWED)
    for option, fits in (("to", not stream), ("max_events_per_batch", stream), ("name", stream)):
        if option in texts and not fits:
            kind = "streams, which readStream makes" if not stream else "batches, which read makes"
            raise OptionError(f"option {option!r} is for {kind}", option)
    return SourceOptions(
        url=url_of(texts),
        filter=_option(texts, "filter", _filter, ""),
        start=_option(texts, "from", _from, None),
        to=_option(texts, "to", _whole, None),
        max_events_per_batch=_option(texts, "max_events_per_batch", _whole, None),
        name=_option(texts, "name", _name, None),
        partitions=_option(texts, "partitions", _partitions, None),
        wait_s=wait_of(texts),
    )


def check_values(texts: Mapping[str, str]) -> None:
    """What can be said of options before it is known who reads, and whether anyone does."""
    if "url" in texts:
        url_of(texts)
    wait_of(texts)
    for option, read in _VALUES.items():
        _option(texts, option, read, None)


def refuse_unknown(texts: Mapping[str, str], allowed: tuple[str, ...]) -> None:
    """A misspelt option must not be passed over in silence."""
    for key in texts:
        if key not in allowed and not key.startswith(_NOT_OURS):
            raise OptionError(f"there is no option {key!r}; there are {', '.join(allowed)}", key)


def url_of(texts: Mapping[str, str]) -> str:
    if "url" not in texts:
        raise OptionError("option 'url' is missing: .option('url', 'holdfast://127.0.0.1:7411')", "url")
    try:
        addresses_of(texts["url"])
    except UrlError as error:
        raise OptionError(f"option 'url': {error}", "url") from None
    return texts["url"]


def wait_of(texts: Mapping[str, str]) -> float:
    return _option(texts, "wait_s", _seconds, WAIT_S)


def _option(texts: Mapping[str, str], option: str, read: Callable[[str], _T], default: _T) -> _T:
    if option not in texts:
        return default
    try:
        return read(texts[option])
    except (ValueError, FilterError) as error:
        raise OptionError(f"option {option!r}: {error}", option) from None


def _filter(text: str) -> str:
    Filter(text)
    return text


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise ValueError(f"a whole number from 1 on, not {text!r}")
    return int(text)


def _partitions(text: str) -> int:
    number = _whole(text)
    if number > PARTITIONS_MAX:
        raise ValueError(f"at most {PARTITIONS_MAX}, not {number}")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds, 0 or more, not {text!r}")
    return seconds


def _name(text: str) -> str:
    if not 0 < len(text.encode()) <= NAME_BYTES_MAX:
        raise ValueError(f"a name has 1 to {NAME_BYTES_MAX} bytes")
    return text


def _from(text: str) -> From:
    if text in (EARLIEST, NEW):
        return text
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(
            f"'earliest', 'new', the number of a position, or a time with its zone (2026-11-15T20:15:00+01:00), "
            f"not {text!r}"
        )
    return time


_VALUES: Mapping[str, Callable[[str], object]] = {
    "filter": _filter,
    "from": _from,
    "to": _whole,
    "max_events_per_batch": _whole,
    "name": _name,
    "partitions": _partitions,
}
