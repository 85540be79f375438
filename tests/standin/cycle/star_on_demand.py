"""The star of `tests.standin.star`, whose brokers see to their stand-ins by themselves; and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.sim.scenario import Cut, Fault, Operate, Pause
from tests.standin.star import Played, play

SETTINGS = {
    "sla": True,
    "unreachable_ms": 1_000,
    "oldest_ms": 1_000,
    "sustained_ms": 1_000,
    "calm_ms": 3_000,
    "patience_ms": 3_000,
    "start_ms": 1_000,
}


def play_on_demand(
    faults: Sequence[Fault] = (),
    operations: Sequence[Operate] = (),
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> Played:
    return play(operations, faults, settings={**SETTINGS, **(settings or {})}, **{"until_ms": 40_000, **more})


def said(played: Played) -> list[str]:
    """What those who saw to it told, one after the other."""
    return [row.detail["what"] for row in played.told("standin")]


def stood_in(played: Played) -> list[str]:
    """Which stand-in came for whom, and who got its place or its work back."""
    words = (" stands in for ", " shares the work of ", " takes the place of ", " place back", " work back")
    return [text for text in said(played) if any(word in text for word in words)]


def in_turn(host: str, first_ms: int, last_ms: int, stands_ms: int, goes_ms: int) -> list[Fault]:
    """A broker that is slow: it stands still and goes on in turn."""
    return [Pause(at_ms=at, for_ms=stands_ms, host=host) for at in range(first_ms, last_ms, stands_ms + goes_ms)]


def cut(one: str, other: str, at_ms: int, for_ms: int) -> Fault:
    return Cut(at_ms=at_ms, for_ms=for_ms, source=one, target=other, both=True)


def is_whole(played: Played) -> bool:
    """Whether the last map of all that are members is one, and nothing is under way in it."""
    last: dict[str, Any] = {row.node: row.detail for row in played.told("map-adopted")}
    newest = max(last.values(), key=lambda detail: detail["number"])
    return not newest["steps"] and all(last[name]["number"] == newest["number"] for name in newest["members"])
