"""What goes on while replicas fail: publishers of every kind, subscribers of every kind, and a probe.

Everything is written down: what publishers were told, what subscribers got and in which order, and when the probe,
which publishes one event after the other without a pause, was answered.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, TypeAlias

import holdfast
from experiments.durability.broker import Ledger

PROBE = "probe"
BATCH = 40
PATIENCE_S = 120.0

Sent: TypeAlias = tuple[str, int]  # publisher, number


class Pace(NamedTuple):
    """Pauses of publishers, in seconds, after each acknowledgement."""

    batch_s: float
    single_s: float
    probe_s: float


FULL = Pace(0.04, 0.01, 0.0)
SHOWN = Pace(0.2, 0.05, 0.01)  # for people who look at it
CALM = Pace(0.8, 0.2, 0.2)  # so little that in some minutes no replica trims its log


def sent(event: holdfast.ReceivedEvent) -> Sent:
    return str(event.attributes["publisher"]), int(event.attributes["number"])


@dataclass
class Records:
    """What the clients of a run saw. `order` is by subscriber, `log` what was read back at the end."""

    ledger: Ledger = field(default_factory=Ledger)
    order: dict[str, list[Sent]] = field(default_factory=dict)
    log: list[Sent] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    answered_at: list[int] = field(default_factory=list)  # nanoseconds, of the probe
    claimed: list[Sent] = field(default_factory=list)  # acknowledged by a leader that was deposed or on its way there
    unreadable: str = ""  # why the log could not be read back
    gaps: int = 0  # how often a plain subscription was forgotten

    @property
    def acknowledged(self) -> int:
        return sum(self.ledger.acknowledged.values())


class Load:
    """Used with `async with`: runs from then on; `settle` stops the publishers and reads everything back."""

    def __init__(
        self, url: str, singles: int = 2, batches: int = 1, plain: int = 2, named: int = 1, pace: Pace = FULL
    ) -> None:
        self.records = Records()
        self.pace = pace
        self.url = url
        self._singles = [f"single-{number}" for number in range(1, singles + 1)]
        self._batches = [f"batch-{number}" for number in range(1, batches + 1)]
        self._plain = [f"plain-{number}" for number in range(1, plain + 1)]
        self._named = [f"named-{number}" for number in range(1, named + 1)]
        self._stop = asyncio.Event()
        self._consuming: list[asyncio.Task[None]] = []
        self._publishing: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Load:
        ready: list[asyncio.Future[None]] = []
        for name in self._plain + self._named:
            subscribed = asyncio.get_running_loop().create_future()
            ready.append(subscribed)
            self._consuming.append(asyncio.create_task(self._consume(name, subscribed)))
        await asyncio.gather(*ready)
        self._publishing = [asyncio.create_task(self._publish_probe())]
        self._publishing += [asyncio.create_task(self._publish_singly(name)) for name in self._singles]
        self._publishing += [asyncio.create_task(self._publish_batches(name)) for name in self._batches]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = self._publishing + self._consuming
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check_running(self) -> None:
        """Raises what a client raised: nobody may notice a failure but by waiting (D4-C4)."""
        for task in self._publishing + self._consuming:
            if task.done() and not self._stop.is_set():
                task.result()
                raise RuntimeError("a client has ended before its time")

    # ---------------------------------------------------------------------------------------------------- publishers
    def _connect(self, name: str) -> holdfast.Bus:
        return holdfast.connect(self.url, name=name, timeout_s=PATIENCE_S)

    async def _publish_probe(self) -> None:
        number, records = 0, self.records
        async with self._connect(PROBE) as bus:
            while not self._stop.is_set():
                number += 1
                await bus.publish({"publisher": PROBE, "number": number, "sent_ns": time.monotonic_ns()})
                records.answered_at.append(time.monotonic_ns())
                records.ledger.acknowledged[PROBE] = number
                if self.pace.probe_s:
                    await asyncio.sleep(self.pace.probe_s)

    async def _publish_singly(self, name: str) -> None:
        number = 0
        async with self._connect(name) as bus:
            while not self._stop.is_set():
                number += 1
                await bus.publish({"publisher": name, "number": number})
                self.records.ledger.acknowledged[name] = number
                await asyncio.sleep(self.pace.single_s)

    async def _publish_batches(self, name: str) -> None:
        number = 0
        async with self._connect(name) as bus:
            while not self._stop.is_set():
                await bus.publish_many({"publisher": name, "number": number + n} for n in range(1, BATCH + 1))
                number += BATCH
                self.records.ledger.acknowledged[name] = number
                await asyncio.sleep(self.pace.batch_s)

    # --------------------------------------------------------------------------------------------------- subscribers
    async def _consume(self, name: str, subscribed: asyncio.Future[None]) -> None:
        got = self.records.order[name] = []
        async with self._connect(name) as bus:
            # One that is full makes publishers wait: what is lost then is lost by the group, not for want of room.
            subscription: holdfast.Subscription | holdfast.NamedSubscription = (
                bus.subscribe("number > 0", name=name)
                if name in self._named
                else bus.subscribe("number > 0", overflow="block")
            )
            async with subscription as events:
                subscribed.set_result(None)
                while batch := await events.take():
                    got += map(sent, batch)
                    if isinstance(events, holdfast.Subscription):
                        self.records.gaps += events.gaps
                        events.gaps = 0

    # ----------------------------------------------------------------------------------------------------------- end
    async def settle(self, within_s: float = 60.0) -> Records:
        """Stops publishing, waits until subscribers have everything, and reads the log."""
        self.check_running()
        self._stop.set()
        await asyncio.gather(*self._publishing)
        records = self.records
        async with self._connect("reader") as bus:
            head = (await bus.head()).number
            try:
                async for event in bus.read():
                    records.log.append(sent(event))
                    records.positions.append(event.position.number if event.position is not None else 0)
            except holdfast.HoldfastError as error:
                records.unreadable = str(error)
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and any(len(got) < head for got in records.order.values()):
            await asyncio.sleep(0.05)
        return records
