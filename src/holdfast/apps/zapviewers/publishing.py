"""Publishers of a synthetic log: each has boxes of its own, and publishes what they send, on topic `zap` (D4-A10).

An event carries up to 200 lines of one second of the log, and the attributes `run`, `publisher` and `number`, which
name it once and for all, and `lines`. A publisher has some events under way at a time, in the order of the log. What
becomes of them when brokers fail is the client's business: it sends them again until they are acknowledged.

The pace is that of the log, times `speed`; or `rate` lines a second, of all publishers together; or, with neither, as
fast as they are acknowledged.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from math import inf
from typing import NamedTuple, TypeAlias

import msgspec

from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.generator import BOXES, ZapSettings, generate
from holdfast.apps.zapviewers.publications import payloads
from holdfast.apps.zapviewers.viewership import ZAP
from holdfast.client import Bus, connect
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.values import Value
from holdfast.trace.summary import percentile

PUBLISHERS_MAX = 24
UNDER_WAY = 8  # events of a publisher
CONNECT_WITHIN_S = 30.0


class PublishSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to publish, and how fast. `log` is what the first publisher has; the others have as many boxes, which
    follow on, and the next seeds. `seconds` are of the clock here, `lines` of all publishers together."""

    run: str
    log: ZapSettings
    publishers: int = 1
    speed: float | None = None
    rate: float | None = None
    seconds: float | None = None
    lines: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.publishers <= PUBLISHERS_MAX:
            raise ZapError(f"{self.publishers} publishers: there may be 1 to {PUBLISHERS_MAX}")
        if self.log.boxes > BOXES:
            raise ZapError(f"{self.log.boxes:,} boxes: a publisher has at most {BOXES:,}")
        if self.speed is not None and self.rate is not None:
            raise ZapError("a pace is given by speed or by rate, not by both")
        for name, pace in (("speed", self.speed), ("rate", self.rate)):
            if pace is not None and not 0 < pace < inf:
                raise ZapError(f"{name} is {pace:g}, and has to be more than 0")
        self.log_of(self.publishers)  # or there are not so many boxes

    def log_of(self, publisher: int) -> ZapSettings:
        """What publisher 1, 2, … has."""
        before = publisher - 1
        first = self.log.first_box + before * self.log.boxes
        return msgspec.structs.replace(self.log, first_box=first, seed=self.log.seed + before)


class Acknowledged(NamedTuple):
    """One event, that its publisher was told of. Times are nanoseconds; `took` is since it was due."""

    publisher: int
    number: int
    lines: int
    at: int
    took: int


Hear: TypeAlias = Callable[[Acknowledged], None]


class PublishedLines:
    """What was acknowledged so far."""

    def __init__(self) -> None:
        self.publications = 0
        self.lines = 0
        self.begun = self.ended = 0  # on the monotonic clock
        self.took = array("q")

    def add(self, acknowledged: Acknowledged) -> None:
        self.publications += 1
        self.lines += acknowledged.lines
        self.ended = acknowledged.at
        self.took.append(acknowledged.took)

    def __str__(self) -> str:
        seconds = (self.ended - self.begun) / SECOND
        text = f"{self.publications:,} publications with {self.lines:,} lines acknowledged"
        if not self.publications:
            return text
        took = sorted(self.took)
        named = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
        shares = ", ".join(f"{name} {percentile(took, share) / MILLISECOND:,.1f} ms" for name, share in named)
        return f"{text} in {seconds:,.1f} s, {self.lines / max(seconds, 1e-9):,.0f} lines/s; latency {shares}"


async def publish_log(
    url: str,
    settings: PublishSettings,
    published: PublishedLines,
    stop: asyncio.Event | None = None,
    on_acknowledged: Hear | None = None,
) -> None:
    """Publishes until all is published, time is up or `stop` is set; returns when all of it is acknowledged."""
    # Made before anyone is connected: many boxes take seconds, in which a client would not be heard of.
    publishers = [_Publisher(number, settings) for number in range(1, settings.publishers + 1)]
    async with AsyncExitStack() as stack:
        for publisher in publishers:
            name = f"zap-{settings.run}-{publisher.number}"
            bus = await stack.enter_async_context(connect(url, name=name, timeout_s=CONNECT_WITHIN_S))
            publisher.bus = bus
        published.begun = published.ended = time.monotonic_ns()
        heard: list[Hear] = [published.add] if on_acknowledged is None else [published.add, on_acknowledged]
        stopped = stop or asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                for publisher in publishers:
                    group.create_task(publisher.run(published.begun, stopped, heard))
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None


class _Publisher:
    def __init__(self, number: int, settings: PublishSettings) -> None:
        self.number = number
        self.bus: Bus | None = None
        self._run = settings.run
        self._speed = settings.speed
        self._rate = None if settings.rate is None else settings.rate / settings.publishers
        self._seconds = inf if settings.seconds is None else settings.seconds
        self._lines_max = inf if settings.lines is None else _share(settings.lines, number, settings.publishers)
        self._turns = generate(settings.log_of(number))

    def _publications(self) -> Iterator[tuple[float | None, int, bytes]]:
        """(when it is due, in seconds from the beginning; lines; payload)."""
        sent = 0
        for turn in self._turns:
            cut = list(payloads([turn.text]))
            for place, payload in enumerate(cut):
                due = None
                if self._speed is not None:
                    due = (turn.second + place / len(cut)) / self._speed
                elif self._rate is not None:
                    due = sent / self._rate
                lines = payload.count(b"\n") + 1
                if sent + lines > self._lines_max:
                    lines = int(self._lines_max) - sent
                    payload = b"\n".join(payload.split(b"\n")[:lines])
                if not lines:
                    return
                yield due, lines, payload
                sent += lines

    async def run(self, begun: int, stop: asyncio.Event, heard: list[Hear]) -> None:
        under_way: set[asyncio.Task[None]] = set()
        end = begun + self._seconds * SECOND
        try:
            for number, (due, lines, payload) in enumerate(self._publications(), 1):
                due_at = time.monotonic_ns() if due is None else begun + round(due * SECOND)
                await _wait_until(min(due_at, end), stop)
                while len(under_way) >= UNDER_WAY:
                    done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                if stop.is_set() or time.monotonic_ns() >= end:
                    break
                # Without a pace an event is due when there is room for it.
                since = time.monotonic_ns() if due is None else due_at
                under_way.add(asyncio.create_task(self._publish(number, lines, payload, since, heard)))
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()

    async def _publish(self, number: int, lines: int, payload: bytes, since: int, heard: list[Hear]) -> None:
        assert self.bus is not None
        attributes: dict[str, Value] = {"run": self._run, "publisher": self.number, "number": number, "lines": lines}
        await self.bus.publish(attributes, topic=ZAP, payload=payload)
        now = time.monotonic_ns()
        acknowledged = Acknowledged(self.number, number, lines, now, now - since)
        for hear in heard:
            hear(acknowledged)


def _share(lines: int, number: int, publishers: int) -> int:
    """Of all lines, those of one publisher."""
    return lines // publishers + (number <= lines % publishers)


async def _wait_until(moment: float, stop: asyncio.Event) -> None:
    seconds = (moment - time.monotonic_ns()) / SECOND
    if seconds > 0 and not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
