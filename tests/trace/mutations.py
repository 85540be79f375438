"""What a broken system would have written: each takes a run and breaks one thing in it, or gives None if it can't."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from holdfast.trace.schema import (
    Acknowledged,
    Confirmed,
    Delivered,
    Fault,
    Missed,
    Published,
    QueueLength,
    Row,
    Subscribed,
)
from tests.filters.strategies import Choices
from tests.trace.perfect import in_order

Mutation: TypeAlias = Callable[[list[Row], Choices], list[Row] | None]
R = TypeVar("R", bound=Row)


def places(rows: list[Row], kind: type[R]) -> list[tuple[int, R]]:
    return [(place, row) for place, row in enumerate(rows) if isinstance(row, kind)]


def drop(kind: type[Row]) -> Mutation:
    def mutate(rows: list[Row], choose: Choices) -> list[Row] | None:
        found = places(rows, kind)
        if not found:
            return None
        place, _ = choose.of(found)
        return rows[:place] + rows[place + 1 :]

    return mutate


def change(kind: type[R], alter: Callable[[R], Row]) -> Mutation:
    def mutate(rows: list[Row], choose: Choices) -> list[Row] | None:
        found = places(rows, kind)
        if not found:
            return None
        place, row = choose.of(found)
        return [*rows[:place], alter(row), *rows[place + 1 :]]

    return mutate


def duplicate(rows: list[Row], choose: Choices) -> list[Row] | None:
    found = places(rows, Delivered)
    if not found:
        return None
    place, row = choose.of(found)
    return [*rows[: place + 1], row, *rows[place + 1 :]]


def duplicate_later(rows: list[Row], choose: Choices) -> list[Row] | None:
    found = places(rows, Delivered)
    if not found:
        return None
    place, row = choose.of(found)
    later = place + 1 + choose.below(len(rows) - place)
    return [*rows[:later], row, *rows[later:]]


def swap(rows: list[Row], choose: Choices) -> list[Row] | None:
    """Two deliveries to one subscription change places."""
    found = places(rows, Delivered)
    pairs = [
        (one, other)
        for one, first in found
        for other, second in found
        if one < other and first.subscription == second.subscription and first.event != second.event
    ]
    if not pairs:
        return None
    one, other = choose.of(pairs)
    mutated = list(rows)
    mutated[one], mutated[other] = rows[other], rows[one]
    return mutated


def deliver_too_early(rows: list[Row], choose: Choices) -> list[Row] | None:
    """A delivery happens right before the publication."""
    found = [(place, row) for place, row in places(rows, Delivered) if row.attempt == 1]
    if not found:
        return None
    place, row = choose.of(found)
    begin = [at for at, other in places(rows, Published) if other.event == row.event and at < place]
    return [*rows[: begin[0]], row, *rows[begin[0] : place], *rows[place + 1 :]] if begin else None


def misdeliver(rows: list[Row], choose: Choices) -> list[Row] | None:
    """A delivery goes to another subscription, of whatever filter, and its owner."""
    found, others = places(rows, Delivered), places(rows, Subscribed)
    if not found:
        return None
    place, row = choose.of(found)
    other = choose.of(others)[1]
    moved = replace(row, subscription=other.subscription, subscriber=other.subscriber)
    return [*rows[:place], moved, *rows[place + 1 :]] if moved != row else None


def grow_queue(rows: list[Row], choose: Choices) -> list[Row] | None:
    row = QueueLength(t=0, node="b1", queue="b9", length=5 + choose.below(3), limit=4)
    place = choose.below(len(rows))
    return [*rows[:place], row, *rows[place:]]


def lose_a_crash(rows: list[Row], choose: Choices) -> list[Row] | None:
    found = [place for place, row in places(rows, Fault) if row.state == "crashed"]
    if not found:
        return None
    place = choose.of(found)
    return rows[:place] + rows[place + 1 :]


MUTATIONS: dict[str, Mutation] = {
    "a delivery is lost": drop(Delivered),
    "a delivery is doubled": duplicate,
    "a delivery is doubled later": duplicate_later,
    "two deliveries change places": swap,
    "an event appears from nowhere": change(Delivered, lambda row: replace(row, event="x/1/1")),
    "a delivery goes to the wrong subscriber": change(Delivered, lambda row: replace(row, subscriber="nobody")),
    "a delivery goes to the wrong subscription": misdeliver,
    "a delivery goes to no subscription": change(Delivered, lambda row: replace(row, subscription="s/9/9")),
    "a delivery comes before the publication": deliver_too_early,
    "a delivery claims to be another attempt": change(Delivered, lambda row: replace(row, attempt=row.attempt + 1)),
    "an acknowledgement is lost": drop(Acknowledged),
    "a confirmation is lost": drop(Confirmed),
    "a gap is kept silent": drop(Missed),
    "a gap is said to be smaller": change(Missed, lambda row: replace(row, count=0)),
    "a publication is not recorded": drop(Published),
    "a crash is not recorded": lose_a_crash,
    "a queue passes its limit": grow_queue,
    "a delivery says that it is late": change(Delivered, lambda row: replace(row, left=0)),
    "an event lives shorter": change(Published, lambda row: replace(row, lifetime=1)),
}


def mutated(name: str, rows: list[Row], choose: Choices) -> list[Row] | None:
    changed = MUTATIONS[name](rows, choose)
    return None if changed is None else in_order(changed)
