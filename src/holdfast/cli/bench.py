"""`holdfast bench`: how many events a second a broker carries from one publisher to subscribers, and how fast.

The publisher and the subscriber are processes of their own, as users' programs are. Events are synthetic.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from multiprocessing.queues import Queue
from typing import Any

import msgspec

from holdfast import client
from holdfast.broker.registry import SCHEMES
from holdfast.cli.main import OK
from holdfast.cli.where import add_where_arguments, url_from
from holdfast.errors import HoldfastError, NotConnected
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast bench                                  a broker of its own, for the time of the measurement
  holdfast bench --url holdfast://127.0.0.1:7411  one that runs
"""
ANSWER_WITHIN_S = 120.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    events: int
    text_bytes: int
    subscribers: int
    published_per_s: float  # acknowledged
    received_per_s: float  # over all subscribers
    latency_events_per_s: float
    latency_us_p50: float
    latency_us_p99: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_where_arguments(parser, otherwise="a broker is started for it")
    parser.add_argument("--events", type=_positive, default=200_000, metavar="N", help="to publish (default 200000)")
    parser.add_argument(
        "--size", type=_positive, default=32, metavar="BYTES", help="of a text in each event (default 32)"
    )
    parser.add_argument(
        "--subscribers", type=_positive, default=1, metavar="N", help="that want every event (default 1)"
    )
    parser.add_argument(
        "--rate", type=_positive, default=1_000, metavar="N", help="events/s for latency (default 1000)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_run)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _run(arguments: argparse.Namespace) -> int:
    running = url_from(arguments)
    if running is not None:
        result = _measure(running, arguments)
    else:
        with _own_broker() as url:
            result = _measure(url, arguments)
    if arguments.json:
        print(msgspec.json.encode(result).decode())
    else:
        what = f"{result.events:,} events with a text of {result.text_bytes} bytes"
        print(f"{what}, {result.subscribers} subscriber{'s' if result.subscribers > 1 else ''}")
        print(f"published   {result.published_per_s:>12,.0f} events/s, acknowledged")
        print(f"received    {result.received_per_s:>12,.0f} events/s")
        print(f"latency     {result.latency_us_p50:>12,.0f} µs p50, {result.latency_us_p99:,.0f} µs p99 "
              f"at {result.latency_events_per_s:,.0f} events/s")  # fmt: skip
    return OK


@contextmanager
def _own_broker() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = f'[[broker]]\nid = "bench"\naddress = "127.0.0.1:{port}"\n'
    command = [sys.executable, "-m", "holdfast.cli", "broker", "-", "--log-level", "warning"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(site)
            process.stdin.close()
            if not process.stdout.readline():
                raise NotConnected("the broker for the measurement did not start")
            yield f"holdfast://127.0.0.1:{port}"
        finally:
            process.terminate()


def _measure(url: str, arguments: argparse.Namespace) -> Result:
    context = multiprocessing.get_context("spawn")
    said: Queue[tuple[str, Any]] = context.Queue()
    topic = f"bench-{secrets.token_hex(4)}"
    count, rate = arguments.events, arguments.rate
    latency_count = 2 * rate
    subscriber = context.Process(
        target=_beside,
        args=(SCHEMES.packages, _subscribe, url, topic, arguments.subscribers, count, latency_count, said),
        daemon=True,
    )
    publisher = context.Process(
        target=_beside,
        args=(SCHEMES.packages, _publish, url, topic, count, arguments.size, latency_count, rate, said),
        daemon=True,
    )
    found: dict[str, Any] = {}
    try:
        subscriber.start()
        _hear("ready", said, found)
        publisher.start()
        for part in ("published", "received", "latency"):
            _hear(part, said, found)
    finally:
        for process in (publisher, subscriber):
            if process.pid is not None:
                process.terminate()
                process.join()
    first, last = found["received"]
    latencies = sorted(found["latency"])
    return Result(
        events=count,
        text_bytes=arguments.size,
        subscribers=arguments.subscribers,
        published_per_s=count / found["published"],
        received_per_s=count * arguments.subscribers / max(1e-9, last - first),
        latency_events_per_s=rate,
        latency_us_p50=latencies[len(latencies) // 2] / 1_000,
        latency_us_p99=latencies[len(latencies) * 99 // 100] / 1_000,
    )


def _hear(part: str, said: Queue[tuple[str, Any]], found: dict[str, Any]) -> None:
    while part not in found:
        name, value = said.get(timeout=ANSWER_WITHIN_S)
        if name == "failed":
            raise HoldfastError(value)
        found[name] = value


def _beside(packages: dict[str, str], part: Callable[..., None], *arguments: Any) -> None:
    """A process beside this one knows the schemes that this one knows."""
    for kind, package in packages.items():
        SCHEMES.add(kind, package)
    part(*arguments)


def _publish(
    url: str, topic: str, count: int, size: int, latency_count: int, rate: int, said: Queue[tuple[str, Any]]
) -> None:
    async def work() -> None:
        async with client.connect(url) as bus:
            text = "x" * size
            begun = time.monotonic()
            await bus.publish_many(({"n": n, "text": text}, topic) for n in range(count))
            said.put(("published", time.monotonic() - begun))
            begun = time.monotonic()
            for n in range(latency_count):
                await asyncio.sleep(begun + n / rate - time.monotonic())
                await bus.post({"n": count + n, "text": text}, topic=topic)
            await bus.flush()

    _run_part(work(), said)


def _subscribe(
    url: str, topic: str, subscribers: int, count: int, latency_count: int, said: Queue[tuple[str, Any]]
) -> None:
    async def take(events: client.Subscription) -> tuple[float, float, int]:
        """When the first and the last event came, and how many of what follows came with it."""
        first, left = 0.0, count
        async for batch in events.batches():
            first = first or time.monotonic()
            left -= len(batch)
            if left <= 0:
                break
        return first, time.monotonic(), -left

    async def work() -> None:
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(client.connect(url))
            made = [bus.subscribe(f"topic = '{topic}'", overflow="block") for _ in range(subscribers)]
            subscriptions = [await stack.enter_async_context(one) for one in made]
            said.put(("ready", None))
            spans = await asyncio.gather(*map(take, subscriptions))
            said.put(("received", (min(first for first, _, _ in spans), max(last for _, last, _ in spans))))
            latencies: list[int] = []
            async for event in subscriptions[0]:
                latencies.append(time.time_ns() - event.published_at)
                if len(latencies) == latency_count - spans[0][2]:
                    break
            said.put(("latency", latencies))

    _run_part(work(), said)


def _run_part(work: Any, said: Queue[tuple[str, Any]]) -> None:
    try:
        loop.run(work)
    except HoldfastError as problem:
        said.put(("failed", str(problem)))
