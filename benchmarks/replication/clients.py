"""The publishing or the subscribing process of a run: `python -m benchmarks.replication.clients publish|subscribe JOB`.

Each says JSON lines: that it is ready, then what it saw. A publisher begins when it is told to by a line.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

import holdfast
from benchmarks.peers.loads import attributes_of_size
from benchmarks.peers.process import cpu_seconds, now, say
from benchmarks.replication.loads import EVENT_BYTES, SUBSCRIBERS, TOPIC, Job, schedule
from benchmarks.replication.zaps import prepared
from holdfast.runtime import loop

QUIET_S = 10.0  # nothing more arrives if nothing has for so long
START_S = 0.1  # from the word to begin until the first publication may be due
WARM_UP_EVENTS = 2_000
WARM_UP_TOPIC = "warm-up"


async def _connect_all(stack: AsyncExitStack, job: Job, count: int) -> list[holdfast.Bus]:
    return [await stack.enter_async_context(holdfast.connect(job.url, timeout_s=30.0)) for _ in range(count)]


def _settle() -> None:
    # What was set up stays: nobody's collector is to go through it again and again.
    gc.collect()
    gc.freeze()


# --------------------------------------------------------------------------------------------------------- publishing
async def publish(job: Job) -> None:
    async with AsyncExitStack() as stack:
        buses = await _connect_all(stack, job, job.publishers)
        await (_saturate(job, buses) if job.events else _offer(job, buses))


async def _told_to_begin() -> None:
    say(ready=True)
    await asyncio.to_thread(sys.stdin.readline)


async def _offer(job: Job, buses: list[holdfast.Bus]) -> None:
    plans = list(zip(buses, schedule(job), range(job.publishers), strict=True))
    contents = [prepared(Path(job.zaps), number, job.first, len(due)) for _, due, number in plans]
    for bus in buses:
        await bus.publish({"sent_ns": 0}, topic=WARM_UP_TOPIC, payload=b"")
    _settle()
    await _told_to_begin()
    cpu, began_at = cpu_seconds(), now() + int(START_S * 1e9)
    late: list[int] = []

    async def run(bus: holdfast.Bus, due: list[float], number: int) -> None:
        for moment, payload in zip(due, contents[number], strict=True):
            due_at = began_at + int(moment * 1e9)
            if (early := due_at - now()) > 0:
                await asyncio.sleep(early / 1e9)
            sent_at = now()
            late.append(sent_at - due_at)
            await bus.post({"sent_ns": sent_at}, topic=TOPIC, payload=payload)
        await bus.flush()

    await asyncio.gather(*(run(*plan) for plan in plans))
    late.sort()
    say(began_at=began_at, ended_at=now(), cpu_s=cpu_seconds() - cpu, late_ns=late[len(late) // 2])


async def _saturate(job: Job, buses: list[holdfast.Bus]) -> None:
    attributes = attributes_of_size(EVENT_BYTES)
    each = job.events // job.publishers
    contents = [prepared(Path(job.zaps), number, job.first, each) if job.zaps else [] for number in range(len(buses))]
    for bus in buses:
        await bus.publish_many((attributes, WARM_UP_TOPIC) for _ in range(WARM_UP_EVENTS // job.publishers))
    _settle()

    async def run(bus: holdfast.Bus, payloads: list[bytes]) -> None:
        if not job.zaps:
            await bus.publish_many((attributes, TOPIC) for _ in range(each))
            return
        for payload in payloads:
            await bus.post({"sent_ns": now()}, topic=TOPIC, payload=payload)
        await bus.flush()

    await _told_to_begin()
    cpu, began_at = cpu_seconds(), now()
    await asyncio.gather(*map(run, buses, contents))
    say(began_at=began_at, ended_at=now(), cpu_s=cpu_seconds() - cpu, late_ns=0)


# -------------------------------------------------------------------------------------------------------- subscribing
async def subscribe(job: Job) -> None:
    latencies: list[int] = []
    last_at = derived = 0

    async def take(events: holdfast.Subscription) -> None:
        nonlocal last_at
        left = job.publications
        while left > 0:
            try:
                batch = await asyncio.wait_for(events.take(), QUIET_S + job.seconds)
            except TimeoutError:
                return  # what is missing is counted by who reads the report
            last_at = now()
            latencies.extend(last_at - int(event.attributes["sent_ns"]) for event in batch)
            left -= len(batch)

    async def follow(events: holdfast.Subscription) -> None:
        nonlocal derived
        while batch := await events.take():
            derived += len(batch)

    async with AsyncExitStack() as stack:
        buses = await _connect_all(stack, job, SUBSCRIBERS)
        made = [bus.subscribe(f"topic = '{TOPIC}'", overflow="block") for bus in buses]
        subscriptions = [await stack.enter_async_context(one) for one in made]
        followers = await _connect_all(stack, job, len(job.follow))
        followed = [bus.subscribe(wanted) for bus, wanted in zip(followers, job.follow, strict=True)]
        following = [asyncio.create_task(follow(await stack.enter_async_context(one))) for one in followed]
        _settle()
        say(ready=True)
        cpu, began = cpu_seconds(), time.monotonic()
        await asyncio.gather(*map(take, subscriptions))
        share = (cpu_seconds() - cpu) / (time.monotonic() - began)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        say(latencies=latencies, last_at=last_at, share=share, derived=derived)


def main() -> None:
    _, role, text = sys.argv
    job = msgspec.json.decode(text, type=Job)
    loop.run(publish(job) if role == "publish" else subscribe(job))


if __name__ == "__main__":
    main()
