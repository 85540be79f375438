"""kill -9 at random moments: what was acknowledged is read back, and a named subscriber gets it, once and in order."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiments.durability.broker import DurableBroker, Ledger, consume, problems, publish, read_back

PUBLISHERS = ("p1", "p2")


class KillsResult(NamedTuple):
    kills: int
    acknowledged: int
    read_back: int
    delivered: int
    problems: list[str]

    def __str__(self) -> str:
        verdict = "all clean" if not self.problems else "; ".join(self.problems)
        return (
            f"{self.kills} kills: {self.acknowledged:,} events acknowledged, {self.read_back:,} read back, "
            f"{self.delivered:,} delivered to a named subscriber: {verdict}"
        )


def run_kills(count: int, seed: int = 1) -> KillsResult:
    with tempfile.TemporaryDirectory() as folder:
        broker = DurableBroker(Path(folder), Path(folder) / "data")
        broker.start()
        try:
            return asyncio.run(_scene(broker, count, random.Random(seed)))
        finally:
            if broker.process is not None:
                broker.stop()


async def _scene(broker: DurableBroker, count: int, rng: random.Random) -> KillsResult:
    ledger, got, stop, done = Ledger(), dict[str, list[int]](), asyncio.Event(), asyncio.Event()
    consuming = asyncio.create_task(consume(broker.url, "all", got, done))
    publishing = [asyncio.create_task(publish(broker.url, name, ledger, stop)) for name in PUBLISHERS]
    for _ in range(count):
        await asyncio.sleep(rng.uniform(0.05, 0.6))
        await asyncio.to_thread(broker.stop)
        await asyncio.to_thread(broker.start)
    stop.set()
    await asyncio.gather(*publishing)
    found = await read_back(broker.url)
    total = sum(map(len, found.values()))
    for _ in range(600):
        if sum(map(len, got.values())) >= total or consuming.done():
            break
        await asyncio.sleep(0.05)
    done.set()
    await consuming
    wrong = problems(ledger.acknowledged, found, "in the log")
    wrong += problems(ledger.acknowledged, got, "at the named subscriber")
    acknowledged = sum(ledger.acknowledged.values())
    return KillsResult(count, acknowledged, total, sum(map(len, got.values())), wrong)
