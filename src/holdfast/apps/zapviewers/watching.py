"""Following who watches what: the top list, or one channel, as the replicas tell of it; and how that looks.

A watcher subscribes, and then asks for what is the case: so it has a beginning also if nothing changes, and misses
nothing. Anyone may publish on the topics of the application; what counts is what the application made itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.apps.zapviewers.asking import ask_top, ask_viewers
from holdfast.apps.zapviewers.audience import ChannelViewers
from holdfast.apps.zapviewers.viewership import TOP, VIEWERS
from holdfast.client import Bus
from holdfast.kernel.time import SECOND
from holdfast.model.received import ReceivedEvent
from holdfast.model.rendering import string_text
from holdfast.protocols.core.hosting import PUBLISHER

NAME_WIDTH = 16
BAR_WIDTH_MIN = 10
SHOWN_IN_A_LINE = 3
_EIGHTHS = " ▏▎▍▌▋▊▉"
_decode_top = msgspec.json.Decoder(list[tuple[str, int]]).decode


class Board(NamedTuple):
    """The most watched channels at a position. `at` is the time of the replicas in nanoseconds, 0 if not known."""

    top: tuple[ChannelViewers, ...]
    position: int
    lines: int
    viewers: int
    channels: int
    at: int = 0
    lines_per_s: float | None = None


class Moment(NamedTuple):
    """One channel at a position; 0 if that is not known."""

    channel: str
    viewers: int
    position: int


# ---------------------------------------------------------------------------------------------------------- following
async def follow_top(bus: Bus) -> AsyncGenerator[Board, None]:
    """What is the case now, and then each top list that is told of."""
    async with bus.subscribe(f"topic = '{TOP}'", overflow="drop-oldest") as events:
        answer = await ask_top(bus)
        top = tuple(ChannelViewers(*entry) for entry in answer["top"])
        board = Board(top, answer["position"], answer["lines"], answer["viewers"], answer["channels"])
        yield board
        async for event in events:
            new = board_of(event, board)
            if new is not None and new.position > board.position:
                board = new
                yield board


def board_of(event: ReceivedEvent, before: Board | None = None) -> Board | None:
    """What an event of the application says, if it is one; with the rate since another."""
    if event.publisher != PUBLISHER or event.topic != TOP:
        return None
    said = event.attributes
    top = tuple(ChannelViewers(*entry) for entry in _decode_top(event.payload))
    position, lines, viewers, channels = (int(said[name]) for name in ("position", "lines", "viewers", "channels"))
    rate = None
    if before is not None and before.at and event.published_at > before.at:
        rate = (lines - before.lines) * SECOND / (event.published_at - before.at)
    return Board(top, position, lines, viewers, channels, event.published_at, rate)


async def follow_channel(bus: Bus, channel: str) -> AsyncGenerator[Moment, None]:
    """What is the case now, and then each change that is told of."""
    wanted = f"topic = '{VIEWERS}' AND channel = {string_text(channel)}"
    async with bus.subscribe(wanted, overflow="drop-oldest") as events:
        yield Moment(channel, await ask_viewers(bus, channel), 0)
        async for event in events:
            if event.publisher == PUBLISHER:
                yield Moment(channel, int(event.attributes["viewers"]), int(event.attributes["position"]))


# ------------------------------------------------------------------------------------------------------------- looks
def page(board: Board, before: Board | None = None, width: int = 80) -> list[str]:
    """A page for a terminal: a line about all, and one for each channel, with how it changed."""
    rate = "" if board.lines_per_s is None else f"   {board.lines_per_s:,.0f} lines/s"
    lines = [f"{board.viewers:,} viewers on {board.channels:,} channels{rate}   position {board.position:,}"[:width]]
    moved = {entry.channel: entry.viewers for entry in before.top} if before is not None else {}
    bar_width = max(BAR_WIDTH_MIN, width - NAME_WIDTH - 26)
    most = max((entry.viewers for entry in board.top), default=1)
    for rank, (channel, viewers) in enumerate(board.top, 1):
        change = viewers - moved.get(channel, viewers)
        shown = f"{change:+,}" if change else ""
        bar = _bar(viewers / most, bar_width)
        lines.append(f"{rank:>3}  {_fit(channel)}  {bar}  {viewers:>9,} {shown:>7}".rstrip()[:width])
    return lines


def _fit(channel: str) -> str:
    return (channel if len(channel) <= NAME_WIDTH else channel[: NAME_WIDTH - 1] + "…").ljust(NAME_WIDTH)


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def line(board: Board) -> str:
    """The same in one line, for where there is no terminal."""
    rate = "" if board.lines_per_s is None else f", {board.lines_per_s:,.0f} lines/s"
    return f"position {board.position:,}: {board.viewers:,} viewers{rate}; {_listed(board.top)}"


def _listed(top: Sequence[ChannelViewers]) -> str:
    shown = ", ".join(f"{channel} {viewers:,}" for channel, viewers in top[:SHOWN_IN_A_LINE])
    return shown + (", …" if len(top) > SHOWN_IN_A_LINE else "") or "nobody watches"
