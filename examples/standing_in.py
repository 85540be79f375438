"""What ./demo --scheme standin runs: seven brokers and two spares, each in a process of its own, and nobody who
operates them. One in the middle is slow, and the network lets a spare share its work; then it is killed, and the
network lets the spare take its place, until it is back.

A publisher is at b1, subscribers are at the ends. Nothing is stored on the way (reliability none): what is under way in
a broker is lost with it, and what is published after that is kept by its neighbour until the stand-in knows who wants
it. What was lost is counted. The service levels are shorter than the defaults, so that it does not take minutes.

The quotes are synthetic: a random walk from a fixed seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from signal import SIGCONT, SIGSTOP
from statistics import median
from typing import ClassVar

import holdfast
from examples.carry_on import quotes
from examples.showing import BOLD, GREEN, RED, YELLOW, play_with, say
from examples.through_brokers import InitialSite, Quote, holdfast_command, start
from experiments.processes import LOOK_EVERY_S

TOPIC = "stock"
HOME, FAULTY, SPARE = "b1", "b3", "b8"
BEYOND = ("b5", "b6")  # behind the faulty broker, as seen from the publisher
WANTED = dict.fromkeys((*BEYOND, "b7"), "topic = 'stock'")
PACE_S = 0.002
PROMPT_S = 0.02  # an event that takes longer waited for the slow broker
STANDS_STILL_S, GOES_ON_S = 0.6, 0.03  # in turn, while it is slow
PHASE_S = 1.5
PATIENCE_S = 60.0
LEVELS = {"unreachable_ms": 1_000, "oldest_ms": 150, "sustained_ms": 500, "calm_ms": 2_500}
SHARES, STANDS_IN = f"shares the work of {FAULTY}", f"stands in for {FAULTY}"


class StandInSite(InitialSite):
    init: ClassVar[tuple[str, ...]] = ("init", "--scheme", "standin", "--reliability", "none")

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        text = super().site_text(addresses, peers)
        for key, value in LEVELS.items():
            text = re.sub(rf"^# {key} = \d+", f"{key} = {value}", text, flags=re.MULTILINE)
        return text


class Watch:
    """What `holdfast standin watch` says, shown as it comes."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    async def read(self, network: StandInSite) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "standin", "watch", str(network.site)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                self._lines.append(line.decode().rstrip())
                say(f"  watch: {self._lines[-1]}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    async def until(self, text: str) -> bool:
        """Whether a new line says it, before patience is at its end."""
        seen, end = len(self._lines), asyncio.get_running_loop().time() + PATIENCE_S
        while asyncio.get_running_loop().time() < end:
            if any(text in line for line in self._lines[seen:]):
                return True
            await asyncio.sleep(LOOK_EVERY_S)
        say(f"FAILED: {PATIENCE_S:g} s, and nothing says: {text}", RED)
        return False


@asynccontextmanager
async def watched(network: StandInSite) -> AsyncIterator[Watch]:
    watch = Watch()
    say("$ holdfast standin watch site.toml", BOLD)
    reading = asyncio.ensure_future(watch.read(network))
    try:
        yield watch
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class Scene:
    """The publisher, which never pauses, and what the subscribers got, by number, in the order in which it came."""

    def __init__(self, publisher: holdfast.Bus) -> None:
        self._publisher = publisher
        self._walk: Iterator[Quote] = quotes()
        self._goes_on = True
        self.accepted = 0
        self.got: dict[str, list[int]] = {name: [] for name in WANTED}
        self._published_at: dict[int, float] = {}
        self._delays: list[float] = []  # since the last phase, behind the faulty broker
        self._since, self._published, self._counted = 0.0, 0, dict.fromkeys(WANTED, 0)  # at the last phase

    async def publish(self) -> None:
        self._since = asyncio.get_running_loop().time()
        while self._goes_on:
            quote = next(self._walk)
            self._published_at[int(quote["number"])] = asyncio.get_running_loop().time()
            await self._publisher.publish(quote, topic=TOPIC)
            self.accepted = int(quote["number"])
            await asyncio.sleep(PACE_S)

    async def listen(self, name: str, events: holdfast.Subscription) -> None:
        async for event in events:
            number = int(event.attributes["number"])
            self.got[name].append(number)
            if name in BEYOND:
                self._delays.append(asyncio.get_running_loop().time() - self._published_at[number])

    async def phase(self, what: str, lasts_s: float = PHASE_S) -> None:
        """A while goes by; then it is said what came since the last phase."""
        await asyncio.sleep(lasts_s)
        now = asyncio.get_running_loop().time()
        came = ", ".join(f"{name} {len(got) - self._counted[name]}" for name, got in self.got.items())
        delay = f"; behind {FAULTY} {_delayed(self._delays)}" if self._delays else ""
        published = self.accepted - self._published
        say(f"{what}, {now - self._since:.1f} s: {published} quotes published; got: {came}{delay}", BOLD)
        self._since, self._published, self._delays = now, self.accepted, []
        self._counted = {name: len(got) for name, got in self.got.items()}

    async def end(self) -> None:
        """Nothing more is published; returns when the last quote has come, or patience is at its end."""
        self._goes_on = False
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while asyncio.get_running_loop().time() < end:
            if all(got and got[-1] == self.accepted for got in self.got.values()):
                return
            await asyncio.sleep(LOOK_EVERY_S)

    def lost(self, name: str) -> list[int]:
        return sorted(set(range(1, self.accepted + 1)) - set(self.got[name]))


def _delayed(delays: list[float]) -> str:
    prompt = sum(delay < PROMPT_S for delay in delays) / len(delays)
    return f"{prompt:.0%} within {1_000 * PROMPT_S:.0f} ms, half within {1_000 * median(delays):.1f} ms"


async def command(network: InitialSite, *words: str) -> None:
    """Runs `holdfast standin VERB SITE …`, and shows what it says."""
    verb, *rest = words
    say(" ".join(["$ holdfast standin", verb, "site.toml", *rest]), BOLD)
    said = await asyncio.to_thread(holdfast_command, "standin", verb, str(network.site), *rest)
    for line in said.splitlines():
        say(f"  {line}")


async def slow_down(network: InitialSite, name: str) -> None:
    """A broker stands still most of the time, until this is cancelled."""
    try:
        while True:
            network.send(name, SIGSTOP)
            await asyncio.sleep(STANDS_STILL_S)
            network.send(name, SIGCONT)
            await asyncio.sleep(GOES_ON_S)
    finally:
        network.send(name, SIGCONT)


async def relieve(network: StandInSite, play: Scene, watch: Watch) -> range | None:
    """A slow broker is relieved. The quotes that may have come out of order by that."""
    slowing = asyncio.ensure_future(slow_down(network, FAULTY))
    try:
        say(f"{FAULTY} is slow: it stands still {STANDS_STILL_S:g} s of {STANDS_STILL_S + GOES_ON_S:g}", YELLOW)
        under_way = min(len(play.got[name]) for name in BEYOND) + 1
        if not await watch.until(SHARES):
            return None
        await play.phase("until it was relieved", 0)
        await play.phase("relieved")
    finally:
        slowing.cancel()
        await asyncio.gather(slowing, return_exceptions=True)
    say(f"{FAULTY} is as fast as ever", YELLOW)
    if not await watch.until(f"over: {SPARE} {SHARES}"):
        return None
    await play.phase("alone again")
    return range(under_way, play.accepted)


async def fail(network: StandInSite, play: Scene, watch: Watch) -> set[int] | None:
    """A broker is killed, replaced and started again. The quotes that it may have taken with it."""
    there = set.intersection(*(set(play.got[name]) for name in BEYOND))
    await network.kill(FAULTY)
    under_way = set(range(1, play.accepted + 2)) - there  # one may be on its way to its broker
    say(f"kill -9 for {FAULTY}, while quotes go on", RED)
    if not await watch.until(STANDS_IN):
        return None
    await play.phase("until the stand-in was there", 0)
    await play.phase("with the stand-in")
    await network.start_beside(FAULTY)
    say(f"{FAULTY} is started again", YELLOW)
    if not await watch.until(f"over: {SPARE} {STANDS_IN}"):
        return None
    await play.phase("handed back")
    return under_way


async def scene(network: StandInSite) -> int:
    await start(network)
    await network.start_beside(*network.spares)
    for name in network.spares:
        say(f"spare {name} runs, process {network.processes[name].pid}, and has nothing to do")
    async with AsyncExitStack() as stack:
        play = Scene(await stack.enter_async_context(holdfast.connect(network.url(HOME))))
        watch = await stack.enter_async_context(watched(network))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        listening = []
        for name, text in WANTED.items():
            bus = await stack.enter_async_context(holdfast.connect(network.url(name)))
            events = await stack.enter_async_context(bus.subscribe(text))
            listening.append(tasks.create_task(play.listen(name, events)))
        say(f"a publisher at {HOME}; subscribers at {', '.join(WANTED)}; {', '.join(BEYOND)} are behind {FAULTY}")
        publishing = tasks.create_task(play.publish())
        await play.phase("before")
        mixed = await relieve(network, play, watch)
        under_way = None if mixed is None else await fail(network, play, watch)
        await play.end()
        await publishing
        for task in listening:
            task.cancel()
    if mixed is None or under_way is None:
        return 1
    await command(network, "history")
    return conclude(play, under_way, mixed)


def conclude(play: Scene, may_be_lost: Iterable[int], mixed: range) -> int:
    """Says what was lost, and why; the exit code. `mixed` came by two ways, where mode ms promises no order."""
    may_be_lost = set(may_be_lost)
    for name, got in play.got.items():
        lost = play.lost(name)
        in_order = [number for number in got if number not in mixed]
        if len(set(got)) < len(got) or in_order != sorted(in_order):
            say(f"FAILED: at {name}, quotes came twice or out of order", RED)
            return 1
        if not may_be_lost.issuperset(lost) or (lost and name not in BEYOND):
            say(f"FAILED: at {name}, quotes are missing that {FAULTY} never had: {lost}", RED)
            return 1
        died = f"{len(lost)} were in {FAULTY}, or on their way to it, when it died"
        say(f"{name} has {len(got)} of {play.accepted} quotes" + (f"; {died}" if name in BEYOND else ""))
    order = "nothing came twice, and out of order only while two shared the work"
    say(f"proved: {order}; nothing is missing that was published when {FAULTY} was down; nobody operated it", GREEN)
    return 0


if __name__ == "__main__":
    sys.exit(play_with(StandInSite, scene))
