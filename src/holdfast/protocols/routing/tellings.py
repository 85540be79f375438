"""What neighbours tell each other of their tables, as messages: cut into parts that fit, and read with care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.errors import FilterError, ProtocolError
from holdfast.model import Filter
from holdfast.protocols.routing.covered import Changes
from holdfast.protocols.routing.messages import ROUTES_BYTES, Routes, Told, checked_entry
from holdfast.protocols.routing.router import parse_filter


class Telling(NamedTuple):
    """Entries that a neighbour tells, with their filters."""

    advertisements: dict[str, Filter]
    subscriptions: dict[str, Filter]


def texts(entries: Mapping[str, Filter]) -> list[Told]:
    return [(entry, str(filter)) for entry, filter in entries.items()]


def changes(advertisements: Changes, subscriptions: Changes, ticket: int) -> list[Routes]:
    return in_parts(
        texts(advertisements.told),
        texts(subscriptions.told),
        full=False,
        unadvertised=list(advertisements.taken_back),
        unsubscribed=list(subscriptions.taken_back),
        ticket=ticket,
    )


def parse(told: list[Told]) -> dict[str, Filter]:
    parsed = {}
    for entry, text in told:
        if problem := checked_entry(entry):
            raise ProtocolError(f"in Routes, {problem}")
        try:
            parsed[entry] = parse_filter(text)
        except FilterError as error:
            raise ProtocolError(f"in Routes, the filter of {entry[:64]!r}: {error.problem}") from error
    return parsed


def in_parts(
    advertisements: list[Told],
    subscriptions: list[Told],
    complete: bool = True,
    full: bool = True,
    unadvertised: list[str] | None = None,
    unsubscribed: list[str] | None = None,
    ticket: int = 0,
) -> list[Routes]:
    """As many messages as it takes. What is taken back comes with the last, so that nothing is lacking in between."""
    parts: list[tuple[list[Told], list[Told]]] = [([], [])]
    size = 0
    for place, told in enumerate((advertisements, subscriptions)):
        for entry, text in told:
            size += len(entry) + len(text) + 8
            if size > ROUTES_BYTES:
                parts.append(([], []))
                size = len(entry) + len(text) + 8
            parts[-1][place].append((entry, text))
    messages = [Routes(*part, full=full, last=False, complete=complete) for part in parts[:-1]]
    messages.append(Routes(*parts[-1], unadvertised or [], unsubscribed or [], full, True, complete, ticket))
    return messages
