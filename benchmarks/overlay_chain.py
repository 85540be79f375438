"""Events a second through a chain of brokers on loopback, each a process of its own, at each level of reliability.

One publisher at the first broker, one subscriber at the last, both processes of their own. What is timed is from the
first event to the last at the subscriber. Every broker keeps its data on the disk, whatever the level.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

import holdfast
from holdfast.protocols.routing.settings import Reliability
from holdfast.runtime import loop

TOPIC, TEXT = "load", "x" * 32
# Nobody tells a publisher elsewhere that the subscriber is slow: what waits for it must have room.
LIMITS = "[limits]\nbacklog_events = 10000000\nbacklog_bytes = 4000000000\nbacklog_bytes_per_session = 4000000000\n"
PROBE_EVERY_S = 0.2
READY_WITHIN_S = 30.0
DONE_WITHIN_S = 300.0


class Chain(msgspec.Struct, frozen=True):
    """What one run came to."""

    level: str
    brokers: int
    round: int
    per_s: float


def _ports(count: int) -> list[int]:
    """Free ones: held until all are found, so that they differ."""
    with ExitStack() as held:
        return [held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


def site_text(level: str, ports: Sequence[int], folder: Path) -> str:
    """A site of a chain: two ports for each broker. One alone has no level."""
    count = len(ports) // 2
    entries = [
        f'[[broker]]\nid = "b{number}"\naddress = "127.0.0.1:{ports[2 * number]}"\n'
        f'peer_address = "127.0.0.1:{ports[2 * number + 1]}"\ndata = "{folder}/b{number}"\n'
        for number in range(count)
    ]
    links = [f'[[link]]\nbetween = ["b{number}", "b{number + 1}"]\n' for number in range(count - 1)]
    said = f'reliability = "{level}"\n' if links else ""
    return "".join(['[scheme]\nkind = "tree"\n', said, *entries, *links, LIMITS])


@contextmanager
def _running(level: str, brokers: int) -> Iterator[tuple[str, str]]:
    """A chain; gives the URLs of its ends."""
    with tempfile.TemporaryDirectory(prefix="holdfast-chain-") as data, ExitStack() as ended:
        ports, site = _ports(2 * brokers), Path(data) / "site.toml"
        site.write_text(site_text(level, ports, Path(data)))
        processes = []
        for number in range(brokers):
            command = [sys.executable, "-m", "holdfast.cli", "broker", str(site), "--id", f"b{number}"]
            process = subprocess.Popen([*command, "--log-level", "quiet"], stdout=subprocess.PIPE, text=True)
            ended.enter_context(process)
            ended.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"a broker of the chain did not start, exit code {process.wait()}")
        yield f"holdfast://127.0.0.1:{ports[0]}", f"holdfast://127.0.0.1:{ports[-2]}"


def measure_chain(level: Reliability, brokers: int, events: int, number: int) -> Chain:
    with _running(level.value, brokers) as (first, last):
        return Chain(level.value, brokers, number, loop.run(_measure(first, last, events)))


async def _measure(first: str, last: str, events: int) -> float:
    context = multiprocessing.get_context("spawn")
    async with holdfast.connect(last) as bus, bus.subscribe(f"topic = '{TOPIC}'") as subscription:
        await asyncio.wait_for(_joined(first, bus), READY_WITHIN_S)
        publisher = context.Process(target=publish, args=(first, events), daemon=True)
        publisher.start()
        try:
            began = ended = 0.0
            async with asyncio.timeout(DONE_WITHIN_S):
                due = 0
                async for event in subscription:
                    ended = time.monotonic()
                    began = began or ended
                    if event.attributes["n"] != due:
                        raise RuntimeError(f"event {event.attributes['n']} came where {due} was due")
                    due += 1
                    if due == events:
                        break
        finally:
            publisher.terminate()
            publisher.join()
    return (events - 1) / max(1e-9, ended - began)


async def _joined(first: str, bus: holdfast.Bus) -> None:
    """Returns when what is published at the first broker arrives at the last."""
    async with holdfast.connect(first) as publisher, bus.subscribe("topic = 'probe'") as probes:
        arrived = asyncio.ensure_future(probes.next())
        while not arrived.done():
            await publisher.publish({}, topic="probe")
            await asyncio.wait([arrived], timeout=PROBE_EVERY_S)


def publish(url: str, events: int) -> None:
    """The publisher's process."""

    async def work() -> None:
        async with holdfast.connect(url) as bus:
            await bus.publish_many(({"n": number, "text": TEXT}, TOPIC) for number in range(events))

    loop.run(work())


def best(chains: Sequence[Chain]) -> dict[tuple[str, int], float]:
    """The fastest round of each level and length."""
    found: dict[tuple[str, int], float] = {}
    for chain in chains:
        key = (chain.level, chain.brokers)
        found[key] = max(chain.per_s, found.get(key, 0.0))
    return found
