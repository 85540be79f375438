"""A run of the paper's experiments with real brokers, each a process of its own; what happened is in their traces."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import holdfast
from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S
from experiments.standin.metrics import Seen
from experiments.standin.setting import ADVERTISING, FAULTY, PER_CLIENT, STAND_IN, Setting
from experiments.standin.workload import ATTRIBUTE, TOPIC, filter_above
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import ChangeBegun
from holdfast.trace.reader import read_trace

AT_ONCE: Final = 200  # subscriptions that are being made
QUIET_S: Final = 0.4  # nothing has come for so long: nothing will
ROUTING: Final = "covering = false\ndial_every_ms = 100\n"
NO_EVENTS: Final = "0.000000001"  # of which a neighbour's trace tells: it has to say when it was asked, and no more


class _Network(BrokerNetwork):
    """Whose brokers trace what metrics need."""

    def more_arguments(self, name: str) -> Sequence[str]:
        if name == FAULTY:
            return ()
        sample = () if name in (STAND_IN, ADVERTISING) else ("--trace-sample", NO_EVENTS)
        return ("--trace", str(self.trace_of(name)), *sample)

    def trace_of(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"


def play(setting: Setting) -> Seen:
    """A broker is killed, and replaced while events wait."""
    with tempfile.TemporaryDirectory(prefix="holdfast-stand-in-") as folder:
        order = f'order = "{setting.order}"\n' if setting.order else ""
        spares = [STAND_IN]
        routing = f"{ROUTING}[standin]\n{order}"
        with _Network(Path(folder), setting.links, "none", routing, spares=spares) as network:
            asyncio.run(asyncio.wait_for(_scene(network, setting), 120))
        seen = Seen([ADVERTISING, FAULTY, STAND_IN, *setting.subscribing])
        for name in (ADVERTISING, STAND_IN, *setting.subscribing):
            with network.trace_of(name).open("rb") as lines:
                for _, row in read_trace(lines)[1]:
                    seen.see(row)
    return seen


async def _scene(network: _Network, setting: Setting) -> None:
    await network.begin()
    await network.start_beside(STAND_IN)
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(holdfast.connect(network.url(ADVERTISING)))
        await publisher.advertise(f"topic = '{TOPIC}'")
        for name, thresholds in setting.thresholds().items():
            await _subscribe(network, stack, name, thresholds)
        known = setting.workload.subscriptions
        await network.until(ADVERTISING, lambda measures: measures["routes"] >= known)
        await network.kill(FAULTY)
        for value in setting.workload.draw(setting.seed).values:
            await publisher.publish({ATTRIBUTE: value}, topic=TOPIC)
        await _replace(network, setting)
        await _until_quiet(network, setting)


async def _subscribe(network: _Network, stack: AsyncExitStack, name: str, thresholds: Sequence[int]) -> None:
    for start in range(0, len(thresholds), PER_CLIENT):
        bus = await stack.enter_async_context(holdfast.connect(network.url(name)))
        wanted = thresholds[start : start + PER_CLIENT]
        for first in range(0, len(wanted), AT_ONCE):
            some = [
                bus.subscribe(filter_above(threshold), window=65_536) for threshold in wanted[first : first + AT_ONCE]
            ]
            await asyncio.gather(*(stack.enter_async_context(each) for each in some))


async def _replace(network: _Network, setting: Setting) -> None:
    told = {
        "id": FAULTY,
        "by": STAND_IN,
        "address": network.addresses[STAND_IN],
        "peer_address": network.peers[STAND_IN],
        "protocol": setting.case.protocol.value,
        "mode": setting.case.mode.value,
    }
    async with BrokerDesk(network.addresses[ADVERTISING]) as desk:
        answer = await desk.change("replace", told)
        if not isinstance(answer, ChangeBegun) or answer.problem:
            raise RuntimeError(f"the stand-in can't replace {FAULTY}: {answer}")


async def _until_quiet(network: _Network, setting: Setting) -> None:
    """The stand-in knows everything, and nothing more comes to the neighbours."""
    await network.until(STAND_IN, lambda measures: measures.get("stand_in_learned_total", 0) > 0, 60)
    loop = asyncio.get_running_loop()
    before, since = -1, loop.time()
    while loop.time() < since + QUIET_S:
        measures = [await network.measures(name) for name in setting.subscribing]
        came = sum(each.get("events_arrived_total", 0) for each in measures)
        if came != before:
            before, since = came, loop.time()
        await asyncio.sleep(LOOK_EVERY_S)
