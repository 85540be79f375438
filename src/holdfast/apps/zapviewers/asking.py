"""Asking the viewership that a broker or a group hosts."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.apps.zapviewers.errors import ZapError
from holdfast.client import Bus

ANSWER_WITHIN_S = 30.0
OTHER = "the application that is hosted there is not ZapViewers'"


async def ask_top(bus: Bus, n: int = 10) -> dict[str, Any]:
    """`top`, the n most watched channels with their viewers; `position`, `lines`, `viewers`, `channels`."""
    return await _ask(bus, "top", {"ask": "top_list", "n": n})


async def ask_viewers(bus: Bus, channel: str) -> int:
    """How many watch a channel."""
    answer = await _ask(bus, "viewers", {"ask": "num_viewers", "channel": channel})
    return int(answer["viewers"])


async def ask_counts(bus: Bus) -> dict[str, Any]:
    """Lines, boxes, what is wrong with them, and digests."""
    return await _ask(bus, "digest", {"ask": "counts"})


async def _ask(bus: Bus, wanted: str, request: dict[str, Any]) -> dict[str, Any]:
    """An answer that has what is wanted; ZapError if it has not."""
    data = await bus.ask(msgspec.json.encode(request), timeout_s=ANSWER_WITHIN_S)
    try:
        answer = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ZapError(OTHER) from None
    if wanted not in answer:
        raise ZapError(str(answer.get("error", OTHER)))
    return answer
