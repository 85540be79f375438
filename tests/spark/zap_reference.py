"""Plain-Python references of the pipeline's metrics, for small samples (X-D6): slow, obvious, and without Spark.

For `viewers_now` and `totals` the reference is the brokers' own `Audience`. These are written from the definitions, and
share nothing with the pipeline but `parse` and the two limits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from holdfast.apps.zapviewers.generator import RETENTION_S
from holdfast.apps.zapviewers.lines import Malformed, Report, Zap, parse
from holdfast.apps.zapviewers.pipeline.intervals import LONGEST_S


class Line(NamedTuple):
    position: int
    line: int
    text: bytes


class Interval(NamedTuple):
    box: str
    channel: str
    began: datetime
    ended: datetime | None
    seconds: int | None
    retained: bool
    position: int
    line: int


def lines_of(payloads: Iterable[tuple[int, bytes]]) -> list[Line]:
    found = []
    for position, payload in payloads:
        pieces = payload.split(b"\n")
        if pieces[-1] == b"":
            pieces = pieces[:-1]
        found += [Line(position, number, text) for number, text in enumerate(pieces)]
    return found


def good_lines(lines: Iterable[Line]) -> list[tuple[Line, Zap | Report]]:
    """Those that are well-formed, in the order of the brokers."""
    pairs = [(line, parse(line.text)) for line in sorted(lines)]
    return [(line, said) for line, said in pairs if not isinstance(said, Malformed)]


def moment(said: Zap | Report) -> datetime:
    return datetime.strptime(f"{said.date.decode()} {said.time.decode()}", "%Y-%m-%d %H:%M:%S")


def intervals(lines: Iterable[Line]) -> list[Interval]:
    channels: dict[str, str] = {}
    on_now: dict[str, tuple[str, datetime, Line]] = {}  # boxes that are on a channel: which, since when, by which line
    found = []
    for line, said in good_lines(lines):
        box, at = said.box.decode(), moment(said)
        if isinstance(said, Zap):
            channels[box] = said.to.decode()
            after = channels[box]
        elif said.status == b"power on":
            after = channels.get(box, "")
        elif said.status == b"power off":
            after = ""
        else:
            continue
        before = on_now[box][0] if box in on_now else ""
        if before == after:
            continue
        if before:
            _, began, by = on_now.pop(box)
            found.append(_closed(box, before, began, max(began, at), by))
        if after:
            on_now[box] = (after, at, line)
    found += [
        Interval(box, to, began, None, None, True, by.position, by.line) for box, (to, began, by) in on_now.items()
    ]
    return found


def _closed(box: str, channel: str, began: datetime, ended: datetime, by: Line) -> Interval:
    seconds = round((ended - began).total_seconds())
    return Interval(box, channel, began, ended, seconds, RETENTION_S < seconds <= LONGEST_S, by.position, by.line)


def viewers_at(found: Iterable[Interval], instant: datetime) -> Counter[str]:
    """Who watched what at an instant, one interval at a time."""
    return Counter(
        one.channel
        for one in found
        if one.retained and one.began <= instant and (one.ended is None or instant < one.ended)
    )


def steps(found: Sequence[Interval]) -> set[tuple[str, datetime, int]]:
    """Where the number of viewers of a channel is not what it was a second before; times are whole seconds."""
    moments = {one.began for one in found} | {one.ended for one in found if one.ended is not None}
    changed = set()
    for at in moments:
        now, before = viewers_at(found, at), viewers_at(found, at - timedelta(seconds=1))
        changed |= {(channel, at, now[channel]) for channel in now.keys() | before if now[channel] != before[channel]}
    return changed


def by_minute(found: Sequence[Interval], first: datetime, last: datetime) -> set[tuple[datetime, str, int]]:
    """From one minute to another, both included."""
    rows = set()
    while first <= last:
        rows |= {(first, channel, viewers) for channel, viewers in viewers_at(found, first).items()}
        first += timedelta(minutes=1)
    return rows


class Window(NamedTuple):
    start: datetime
    channel: str
    seconds: int
    reach: int
    share: float
    rank: int


def windows(found: Sequence[Interval], minutes: int) -> set[Window]:
    retained = [one for one in found if one.retained]
    last = max(one.ended or one.began for one in retained)
    length = timedelta(minutes=minutes)
    watched: dict[datetime, dict[str, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for one in retained:
        ended = one.ended or min(last, one.began + timedelta(seconds=LONGEST_S))
        start = one.began.replace(minute=one.began.minute // minutes * minutes, second=0)
        while start < ended:
            both = min(ended, start + length) - max(one.began, start)
            if both:
                watched[start][one.channel].append((one.box, round(both.total_seconds())))
            start += length
    rows = set()
    for start, channels in watched.items():
        seconds = {channel: sum(part for _, part in parts) for channel, parts in channels.items()}
        order = sorted(channels, key=lambda channel: (-seconds[channel], channel))
        for rank, channel in enumerate(order, start=1):
            reach = len({box for box, _ in channels[channel]})
            share = seconds[channel] / sum(seconds.values())
            rows.add(Window(start, channel, seconds[channel], reach, share, rank))
    return rows


def changes(lines: Iterable[Line]) -> Counter[tuple[str, str]]:
    return Counter(
        (said.came_from.decode(), said.to.decode()) for _, said in good_lines(lines) if isinstance(said, Zap)
    )


def watermark(pieces: Iterable[Sequence[tuple[int, bytes]]], delay_s: int) -> int:
    """By the clocks of boxes, in seconds since 1970: a delay behind the greatest median of any piece."""
    medians = []
    for piece in pieces:
        times = sorted(_since_1970(said) for _, said in good_lines(lines_of(piece)))
        medians.append(times[(len(times) - 1) // 2])
    return max(medians) - delay_s


def late(before: Sequence[tuple[int, bytes]], piece: Sequence[tuple[int, bytes]], delay_s: int) -> int:
    """How many lines of a piece are behind the watermark of the one before."""
    mark = watermark([before], delay_s)
    return sum(_since_1970(said) < mark for _, said in good_lines(lines_of(piece)))


def _since_1970(said: Zap | Report) -> int:
    return round((moment(said) - datetime(1970, 1, 1)).total_seconds())
