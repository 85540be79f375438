"""What ./demo --scheme tree runs: seven brokers, each in a process of its own; one in the middle is killed.

A publisher is at b1, subscribers are at the ends. While b3 is down, what has to pass it waits at its neighbour, on the
disk; everyone else goes on. At the end each subscriber has what its filter selects, once, in order.

The quotes are synthetic: a random walk from a fixed seed.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import ClassVar

import holdfast
from examples.carry_on import quotes
from examples.showing import BOLD, GREEN, RED, YELLOW, play_with, say
from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S
from holdfast.kernel.settings import written
from holdfast.runtime.site_file import read_site

INIT = ("init", "--scheme", "tree", "--brokers", "7")
TOPIC = "stock"
HOME, MIDDLE = "b1", "b3"
WANTED = {
    "b5": "topic = 'stock' AND price > 110",
    "b6": "topic = 'stock' AND symbol IN ('IBM', 'XOM')",
    "b7": "topic = 'stock'",
}
EACH = 60  # quotes before the kill, while b3 is down, and after
PACE_S = 0.02
PATIENCE_S = 30.0

Quote = dict[str, float | str]


def holdfast_command(*arguments: str) -> str:
    command = [sys.executable, "-m", "holdfast.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


class InitialSite(BrokerNetwork):
    """What `holdfast init` writes, at addresses that are free here."""

    init: ClassVar[tuple[str, ...]] = INIT

    def __init__(self, folder: Path) -> None:
        file = folder / "site.toml"
        holdfast_command(*self.init, str(file))
        self._text, self._read = file.read_text(), read_site(str(file))
        spares = [entry.id for entry in self._read.brokers if entry.spare]
        reliability = str(written(self._read.settings)["reliability"])
        super().__init__(folder, self._read.links, reliability, spares=spares)

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        places = {entry.address: addresses[entry.id] for entry in self._read.brokers}
        places |= {entry.peer_address: peers[entry.id] for entry in self._read.brokers}
        return re.sub(r"127\.0\.0\.1:\d+", lambda found: places.get(found[0], found[0]), self._text)


class Scene:
    """The clients, and what they did and got."""

    def __init__(self, publisher: holdfast.Bus) -> None:
        self._publisher = publisher
        self._walk: Iterator[Quote] = quotes()
        self.accepted: list[Quote] = []
        self.got: dict[str, list[int]] = {name: [] for name in WANTED}

    async def publish(self) -> None:
        for quote in itertools.islice(self._walk, EACH):
            await self._publisher.publish(quote, topic=TOPIC)
            self.accepted.append(quote)
            await asyncio.sleep(PACE_S)

    async def listen(self, name: str, events: holdfast.Subscription) -> None:
        async for event in events:
            self.got[name].append(int(event.attributes["number"]))

    def expected(self, name: str) -> list[int]:
        """By asking the filter of each quote."""
        wanted = holdfast.Filter(WANTED[name])
        return [int(quote["number"]) for quote in self.accepted if wanted.matches(quote, TOPIC)]

    def counts(self) -> str:
        return ", ".join(f"{name} {len(got)} of {len(self.expected(name))}" for name, got in self.got.items())

    async def until_all(self, names: Iterable[str]) -> None:
        """Returns when these have as much as they want, or patience is at its end: then the proof fails."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        for name in names:
            while len(self.got[name]) < len(self.expected(name)) and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(LOOK_EVERY_S)


async def start(network: InitialSite) -> None:
    say(f"$ holdfast {' '.join(network.init)}; links: {', '.join('-'.join(link) for link in network.links)}", BOLD)
    await network.begin()
    for name, process in network.processes.items():
        say(f"broker {name} serves at {network.addresses[name]}, process {process.pid}")


async def show_status(network: InitialSite) -> None:
    """The part of `holdfast status` that is about the network."""
    shown = await asyncio.to_thread(holdfast_command, "status", str(network.site), "--links", "0")
    lines = shown.splitlines()
    begin = next((place for place, line in enumerate(lines) if line.startswith("broker  neighbours")), len(lines))
    say("$ holdfast status site.toml", BOLD)
    for line in itertools.takewhile(bool, lines[begin:]):
        say(f"  {line}")


async def scene(network: InitialSite) -> int:
    await start(network)
    async with AsyncExitStack() as stack:
        play = Scene(await stack.enter_async_context(holdfast.connect(network.url(HOME))))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        listening = []
        for name, text in WANTED.items():
            bus = await stack.enter_async_context(holdfast.connect(network.url(name)))
            events = await stack.enter_async_context(bus.subscribe(text))
            listening.append(tasks.create_task(play.listen(name, events)))
            say(f"a subscriber at {name} wants {text}")
        await play.publish()
        await play.until_all(WANTED)
        say(f"{len(play.accepted)} quotes were published at {HOME}; got, of those wanted: {play.counts()}", BOLD)
        await network.kill(MIDDLE)
        say(f"kill -9 for {MIDDLE}, which is between {HOME} and two of them, while quotes go on", RED)
        await play.publish()
        await play.until_all(["b7"])
        say(f"{len(play.accepted)} quotes by now; got: {play.counts()}", BOLD)
        await show_status(network)
        await network.begin(MIDDLE)
        say(f"{MIDDLE} is started again, with what its disk has", YELLOW)
        await play.publish()
        await play.until_all(WANTED)
        say(f"{len(play.accepted)} quotes in all; got: {play.counts()}", BOLD)
        for task in listening:
            task.cancel()
    return conclude(play)


def conclude(play: Scene) -> int:
    """Says what was proved; the exit code."""
    wrong = [name for name, got in play.got.items() if got != play.expected(name)]
    if wrong:
        say(f"FAILED: {', '.join(wrong)} did not get exactly what was wanted, in order", RED)
        return 1
    say(
        f"proved: {len(play.accepted)} quotes were accepted; each subscriber has those that its filter selects, once,"
        " in order, none missing",
        GREEN,
    )
    return 0


if __name__ == "__main__":
    sys.exit(play_with(InitialSite, scene))
