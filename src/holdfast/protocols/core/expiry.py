"""What the core does about events that expire (D1-A4), as functions of its subscriptions."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.event import EventBytes
from holdfast.protocols.core.outputs import Expired, Output
from holdfast.protocols.core.subscriptions import Subscription

Matched = list[list[Subscription]]  # for each event, who wants it


def without_expired(
    deadlines: dict[int, int], slices: list[EventBytes], matched: Matched, wall: int, outputs: list[Output]
) -> Matched:
    """Nobody gets what has expired when it is accepted: by the command's time, at every replica alike."""
    expired = {row: None for row, deadline in deadlines.items() if deadline <= wall and matched[row]}
    lost: dict[Subscription, list[EventBytes]] = {}
    for row in expired:
        for subscription in matched[row]:
            subscription.miss()
            lost.setdefault(subscription, []).append(slices[row])
    outputs += [Expired(subscription, events) for subscription, events in lost.items()]
    return [[] if row in expired else wanted for row, wanted in enumerate(matched)] if expired else matched


def note_deadlines(deadlines: dict[int, int], matched: Matched, numbers: dict[Subscription, int]) -> None:
    """The deadlines of events that were just added; `numbers` are the last ones before that."""
    if len(matched) == 1:  # as for many that publish seldom
        for subscription, number in numbers.items():
            subscription.perish([(number + 1, deadlines[0])])
        return
    mortal: dict[Subscription, list[tuple[int, int]]] = {subscription: [] for subscription in numbers}
    for row, wanted in enumerate(matched):
        deadline = deadlines.get(row, 0)
        for subscription in wanted:
            numbers[subscription] = number = numbers[subscription] + 1
            if deadline:
                mortal[subscription].append((number, deadline))
    for subscription, found in mortal.items():
        if found:
            subscription.perish(found)


def expire(subscriptions: Iterable[Subscription], before: int, outputs: list[Output]) -> list[Subscription]:
    """Gives up what waited for too long. Those that lost something."""
    lost = [(subscription, subscription.expire(before)) for subscription in subscriptions]
    outputs += [Expired(subscription, events) for subscription, events in lost if events]
    return [subscription for subscription, events in lost if events]
