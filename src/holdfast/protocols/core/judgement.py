"""Which of some events are accepted, and which subscriptions want them."""

from __future__ import annotations

from holdfast.errors import EventError
from holdfast.kernel.node import require
from holdfast.matching import FilterIndex
from holdfast.model.event import SMALL_BYTES, Event, EventBytes, check_limits
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions.messages import Refusal

Refused = dict[int, tuple[Refusal, str]]

NOT_ADVERTISED = "the event matches nothing that its publisher has advertised"


def judge(
    index: FilterIndex[Subscription],
    advertised: FilterIndex[int] | None,
    events: list[Event],
    slices: list[EventBytes],
) -> tuple[list[list[Subscription]], Refused]:
    """For each event, who wants it; and by row those that break a rule, which are wanted by no one."""
    pairs = [(event.attributes, event.topic) for event in events]
    refused: Refused = {}
    for row, data in enumerate(slices if max(map(len, slices)) > SMALL_BYTES else ()):
        if len(data) > SMALL_BYTES:
            try:
                check_limits(events[row], len(data))
            except EventError as error:
                refused[row] = (Refusal.EVENT, str(error))
                pairs[row] = ({}, "")
    matched: list[list[Subscription]] = []
    while len(matched) < len(pairs):
        start = len(matched)
        try:
            matched += index.match_batch(pairs[start:])
        except EventError as error:
            # The events before are matched again and those behind go on: a batch of bad events is not to cost more
            # than twice a good one.
            require(error.row is not None, "the index names the event that it refuses")
            row = start + (error.row or 0)
            refused[row] = (Refusal.EVENT, error.problem)
            matched += [*index.match_batch(pairs[start:row]), []]
    if advertised is not None:
        sound = [row for row in range(len(pairs)) if row not in refused]
        found = advertised.match_batch([pairs[row] for row in sound])
        refused |= {
            row: (Refusal.NOT_ADVERTISED, NOT_ADVERTISED) for row, under in zip(sound, found, strict=True) if not under
        }
    for row in refused:
        matched[row] = []
    return matched, dict(sorted(refused.items()))
