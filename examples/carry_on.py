"""What ./demo one runs: a broker with a log, subscribers and a publisher; the broker is killed, and all carry on.

One subscriber is there all the time. Another, a named one, is away during the kill, and gets everything later.

The quotes are synthetic: a random walk from a fixed seed.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import holdfast

FILTER = "topic = 'stock' AND price > 100 AND symbol <> 'XOM'"
SYMBOLS = ("IBM", "XOM", "MSFT", "ORCL")
COLOUR = sys.stdout.isatty()
STARTED = time.monotonic()


def say(text: str, code: str = "0") -> None:
    seconds = time.monotonic() - STARTED
    shown = f"\033[{code}m{text}\033[0m" if COLOUR else text
    print(f"{seconds:6.2f} s  {shown}", flush=True)


class Broker:
    """`holdfast broker`, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"holdfast://127.0.0.1:{port}"
        self._site = folder / "site.toml"
        entry = f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{port}"\ndata = "data"\n'
        self._site.write_text(f'name = "demo"\n{entry}')
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "broker", str(self._site), "--log-level", "quiet"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        say(self.process.stdout.readline().strip(), "1")

    def kill(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def quotes() -> Iterator[dict[str, float | str]]:
    prices = random.Random(7)
    price = 105.0
    for number in itertools.count(1):
        price = min(130.0, max(98.0, price + prices.uniform(-6, 6)))
        yield {"symbol": prices.choice(SYMBOLS), "price": round(price, 2), "number": number}


async def publish(bus: holdfast.Bus, some: Iterator[dict[str, float | str]]) -> None:
    for quote in some:
        await bus.publish(quote, topic="stock")
        await asyncio.sleep(0.03)


async def show(events: holdfast.Subscription, seen: list[int]) -> None:
    async for event in events:
        seen.append(int(event.attributes["number"]))
        say(
            f"  got quote {event.attributes['number']}: {event.attributes['symbol']} at {event.attributes['price']}",
            "32",
        )


async def scene(broker: Broker) -> None:
    walk = quotes()
    seen: list[int] = []

    def on_state(state: holdfast.State, detail: str) -> None:
        say(f"  the subscriber is {state.value}: {detail}", "33")

    async with (
        holdfast.connect(broker.url, on_state=on_state) as subscriber,
        holdfast.connect(broker.url) as publisher,
        subscriber.subscribe(FILTER) as events,
    ):
        say(f"a subscriber wants {FILTER}", "1")
        last = await read_some(broker.url)
        showing = asyncio.create_task(show(events, seen))
        await publish(publisher, itertools.islice(walk, 25))
        say("kill -9 for the broker, while quotes go on", "1;31")
        broker.kill(signal.SIGKILL)
        publishing = asyncio.create_task(publish(publisher, itertools.islice(walk, 50)))
        await asyncio.sleep(1)
        say("the publisher waits; the broker is started again, with what its disk has", "1;31")
        broker.start()
        await publishing
        await asyncio.sleep(0.3)
        showing.cancel()
        order = "in order, none twice" if seen == sorted(set(seen)) else "NOT in order, or doubled"
        say(f"{len(seen)} quotes matched and arrived, {order}; gaps: {events.gaps}", "1")
        await read_the_rest(broker.url, last, seen)


async def read_some(url: str) -> int:
    """A named subscriber that leaves before anything is published."""
    async with holdfast.connect(url) as bus, bus.subscribe(FILTER, name="risk desk"):
        say("a named subscriber, 'risk desk', wants the same, and goes home", "1;36")
        return (await bus.head()).number


async def read_the_rest(url: str, after: int, seen: list[int]) -> None:
    got: list[int] = []
    async with holdfast.connect(url) as bus, bus.subscribe(FILTER, name="risk desk") as events:
        say("'risk desk' is back", "1;36")
        async for event in events:
            got.append(int(event.attributes["number"]))
            if got[-1] == seen[-1]:
                break
        head = await bus.head()
    same = "the same quotes, in the same order" if got == seen else "NOT the same"
    say(f"'risk desk' got {len(got)} quotes from the log (positions {after + 1} to {head.number}): {same}", "1;36")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder))
        try:
            asyncio.run(scene(broker))
        finally:
            code = broker.kill(signal.SIGTERM)
        say(f"the broker was told to stop, and exited with {code}", "1")


if __name__ == "__main__":
    main()
