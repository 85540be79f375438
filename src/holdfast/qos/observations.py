"""What was observed, from text: how long a part was on and off, and events that a publisher has published.

Times are CSV with a heading, a line for each time that the part was on or off:

    state,seconds,ended
    on,604800,yes
    off,14400,yes
    on,86400,no                       # it still was when the file was written

`ended` may be left out. Events are lines of JSON, as `holdfast publish` reads and `holdfast subscribe` writes them; an
event without `lifetime_ms`, or with 0, has the lifetime of its publisher.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from holdfast.errors import PredictionError
from holdfast.qos.fitting import Observed
from holdfast.qos.interest import SampleEvent

_ENDED = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class _Line(msgspec.Struct, frozen=True):
    """Of a sample; other keys are of no interest here."""

    topic: str = ""
    attributes: dict[str, Any] = {}
    lifetime_ms: Annotated[int, msgspec.Meta(ge=0)] = 0


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """All that are not empty, with their numbers."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def observed_from(text: str, name: str) -> tuple[list[Observed], list[Observed]]:
    """On times and off times. `name` is for errors."""
    lines = list(_lines(text))
    found: dict[str, list[Observed]] = {"on": [], "off": []}
    heading = next(csv.reader([lines[0][1]])) if lines else []
    if [key.strip() for key in heading] not in (["state", "seconds", "ended"], ["state", "seconds"]):
        raise PredictionError(f"{name}:1: the heading has to be state,seconds,ended or state,seconds")
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        try:
            state, seconds, *rest = cells
            times, ended = found[state], _ENDED[rest[0].lower()] if rest else True
            one = Observed(float(seconds), censored=not ended)
        except (ValueError, KeyError):
            one = None
        if one is None or len(cells) > len(heading) or not 0 <= one.seconds < float("inf"):
            raise PredictionError(
                f"{name}:{number}: {line.strip()!r} is no observed time; as on,604800,yes or off,14400,no"
            )
        times.append(one)
    for state, times in found.items():
        if all(one.censored for one in times):
            raise PredictionError(f"{name}: there is no {state} time that came to its end: nothing can be fitted")
    return found["on"], found["off"]


def sample_from(text: str, name: str) -> tuple[SampleEvent, ...]:
    """Events. `name` is for errors."""
    decoder = msgspec.json.Decoder(_Line)
    events = []
    for number, line in _lines(text):
        try:
            event = decoder.decode(line)
        except msgspec.DecodeError as problem:
            raise PredictionError(f"{name}:{number}: {problem}") from problem
        events.append(SampleEvent(event.topic, event.attributes, event.lifetime_ms / 1_000 or None))
    if not events:
        raise PredictionError(f"{name}: there is no event in it")
    return tuple(events)
