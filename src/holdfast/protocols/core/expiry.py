"""What the core does about events that expire (D1-A4), as functions of its subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.model.batch import EventBatch
from holdfast.protocols.core.backlog import batch_of
from holdfast.protocols.core.judgement import Matched
from holdfast.protocols.core.outputs import Expired, Output
from holdfast.protocols.core.subscriptions import Subscription


def without_expired(
    deadlines: Sequence[int], batch: EventBatch, matched: Matched, wall: int, outputs: list[Output]
) -> Matched:
    """Nobody gets what has expired when it is accepted: by the command's time, at every replica alike."""
    over = {row for row, deadline in enumerate(deadlines) if 0 < deadline <= wall}
    if not over:
        return matched
    left: dict[Subscription, Sequence[int]] = {}
    for subscription, rows in matched.items():
        lost = [row for row in rows if row in over]
        if lost:
            subscription.miss(len(lost))
            outputs.append(Expired(subscription, batch.take(lost)))
            rows = [row for row in rows if row not in over]
        if rows:
            left[subscription] = rows
    return left


def note_deadlines(deadlines: Sequence[int], matched: Matched, numbers: Mapping[Subscription, int]) -> None:
    """The deadlines of events that were just added; `numbers` are the last ones before that."""
    for subscription, rows in matched.items():
        mortal = [(number, deadlines[row]) for number, row in enumerate(rows, numbers[subscription] + 1)]
        mortal = [found for found in mortal if found[1]]
        if mortal:
            subscription.perish(mortal)


def expire(subscriptions: Iterable[Subscription], before: int, outputs: list[Output]) -> list[Subscription]:
    """Gives up what waited for too long. Those that lost something."""
    lost = [(subscription, runs) for subscription in subscriptions if (runs := subscription.expire(before))]
    outputs += [Expired(subscription, batch_of(runs)) for subscription, runs in lost]
    return [subscription for subscription, _ in lost]
