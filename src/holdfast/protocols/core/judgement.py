"""Which of some events are accepted, and which subscriptions want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from holdfast.matching import FilterIndex
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions.messages import Refusal

Refused: TypeAlias = dict[int, tuple[Refusal, str]]  # by row
Matched: TypeAlias = Mapping[Subscription, Sequence[int]]  # the rows of the events that each wants, rising

NOT_ADVERTISED: Final = "the event matches nothing that its publisher has advertised"

_Key = TypeVar("_Key")


class Wanted(NamedTuple):
    """Events that somebody at this broker wants, and who: by rows of their batch. `rows` are those that they had in the
    batch in which they were looked for."""

    batch: EventBatch
    rows: Sequence[int]
    subscriptions: Matched
    cursors: Mapping[Cursor, Sequence[int]]


# What whoever submits a command has found out of its events: those of a publication, or of what arrives those that are
# wanted. Who applies it at once need not look again.
Known: TypeAlias = EventBatch | Wanted


def judge(advertised: FilterIndex[int] | None, batch: EventBatch) -> Refused:
    """The events that break a rule, or that their publisher has not advertised."""
    refused: Refused = {row: (Refusal.EVENT, str(batch.problem(row))) for row in batch.doubtful}
    if advertised is not None:
        sound = sound_rows(batch, refused)
        under = advertised.rows_matching(batch.take(sound))
        if len(under) < len(sound):
            found = set(under)
            refused |= {row: (Refusal.NOT_ADVERTISED, NOT_ADVERTISED) for n, row in enumerate(sound) if n not in found}
            refused = dict(sorted(refused.items()))
    return refused


def sound_rows(batch: EventBatch, refused: Mapping[int, object] | Sequence[int]) -> Sequence[int]:
    """All rows but some."""
    if not refused:
        return range(len(batch))
    without = set(refused)
    return [row for row in range(len(batch)) if row not in without]


def among(rows: Sequence[int], matched: Mapping[_Key, Sequence[int]]) -> Mapping[_Key, Sequence[int]]:
    """The same matches, where of all events only those of some rows are left, among which are all that matched."""
    places = {row: place for place, row in enumerate(rows)}
    return {
        key: range(len(rows)) if len(of) == len(rows) else [places[row] for row in of] for key, of in matched.items()
    }
