"""Broker processes that are killed and started again by a schedule, while clients publish and subscribe.

Everything is read off one site file: how brokers fail, who publishes for whom, and how long events live. A process is
not on at once when it is started, so it is started as much earlier as that takes; a broker counts as on from when it
says that it serves to when it is killed, as that was observed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from random import Random
from signal import SIGKILL
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from experiments.broker_network import BrokerNetwork
from experiments.d1.outages import Component, Outage, outages
from experiments.qos.traffic import Clock, Pair, Traffic
from holdfast.broker.quality import MeanTimes
from holdfast.broker.site import Site
from holdfast.protocols.routing.settings import Reliability
from holdfast.runtime.site_file import read_site
from holdfast.topology.graph import BrokerGraph

RING = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b1"))
BROKERS = {
    "b1": MeanTimes(40.0, 5.0),
    "b2": MeanTimes(25.0, 5.0),
    "b3": MeanTimes(30.0, 7.0),
    "b4": MeanTimes(20.0, 6.0),
}
# All short against outages of seconds, as they are in life against outages of hours.
ROUTING = """dial_every_ms = 50
refresh_ms = 500
expire_ms = 2000
settle_ms = 500
restore_ms = 1000
retransmit_ms = 200
heartbeat_ms = 200
suspect_ms_min = 1000
suspect_ms_max = 3000
"""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Events are published for so many seconds; the schedule goes on until the last has come or is late."""

    level: Reliability
    seconds: float = 120.0
    seed: int = 1
    rate: float = 10.0  # of each publisher, in events a second
    lifetime_s: float = 3.0
    brokers: dict[str, MeanTimes] = msgspec.field(default_factory=lambda: dict(BROKERS))

    def __post_init__(self) -> None:
        if self.level is Reliability.NONE:
            raise ValueError("none promises nothing: in the long run no broker knows any subscriber")
        for what, value in (("seconds", self.seconds), ("rate", self.rate), ("lifetime", self.lifetime_s)):
            if not 0 < value < inf:
                raise ValueError(f"{what}: {value:g}, and has to be above 0")

    @property
    def length_s(self) -> float:
        return self.seconds + self.lifetime_s


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was observed, in seconds from the beginning."""

    planned: dict[str, list[Outage]]
    realised: dict[str, list[Outage]]
    starts_s: list[float]  # how long each start took until the broker was ready
    sent: dict[str, list[float]]  # by topic: when each event was published, or would have been
    outcomes: dict[str, int]  # what publishers were told
    on_time: dict[Pair, int]
    twice: int  # events that a subscriber got again, and nobody may


def links_of(level: Reliability) -> tuple[tuple[str, str], ...]:
    """The ring; at levels that make no detours, which refuse cycles, the tree along which events would go in it."""
    tree = BrokerGraph(list(BROKERS), RING).spanning_tree()
    return tuple(link for link in RING if level.detours or link[1] in tree.neighbours(link[0]))


def schedule(means: Mapping[str, MeanTimes], length_s: float, seed: int) -> dict[str, list[Outage]]:
    """Of each broker; others do not matter to it, and neither does the level."""
    planned = {}
    for name, mean in means.items():
        period = mean.on_s + mean.off_s
        rng = Random(f"qos/processes/{seed}/{name}")
        planned[name] = outages(Component(name, mean.on_s / period, period), length_s, rng)
    return planned


def realised_outages(turns: Sequence[float], length_s: float) -> list[Outage]:
    """From the seconds at which a broker was killed and was ready again, in turn. What was not over when the run was
    lasts until then, and what came later is left out."""
    end = round(length_s * 1_000)
    found: list[Outage] = []
    for killed, ready in zip(turns[::2], [*turns[1::2], length_s], strict=False):
        # Of a millisecond at least, and not at once behind the one before, whatever is rounded.
        begin = max(round(killed * 1_000), found[-1].end + 1 if found else 0)
        if begin < end:
            found.append(Outage(begin, min(max(round(ready * 1_000), begin + 1), end)))
    return found


class FailingNetwork(BrokerNetwork):
    """The site that is run is the one that is predicted."""

    def __init__(self, folder: Path, setup: Setup) -> None:
        self._setup = setup
        super().__init__(folder, links_of(setup.level), setup.level.value, ROUTING, log_level="quiet")

    def broker_text(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        lines = super().broker_text(name, addresses, peers).splitlines(keepends=True)
        if not self._setup.level.buffers:
            # As in the paper: a broker that stores no events has no disk, and is told everything again.
            lines = [line for line in lines if not line.startswith("data")]
        mean = self._setup.brokers[name]
        return "".join([*lines, f'mtbf = "{mean.on_s}s"\nmttr = "{mean.off_s}s"\n'])

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        lines = [super().site_text(addresses, peers), f'[prediction]\nlifetime = "{self._setup.lifetime_s}s"\n']
        for home in addresses:
            lines.append(f'[[publisher]]\nhome = "{home}"\ntopic = "{home}"\nrate = {float(self._setup.rate)}\n')
            lines += [f'[[subscriber]]\nhome = "{other}"\ntopic = "{home}"\n' for other in addresses if other != home]
        return "".join(lines)


class Mortality:
    """Kills brokers and starts them again; keeps when."""

    def __init__(self, network: FailingNetwork) -> None:
        self._network = network
        self.starts_s: list[float] = []
        self.turns: dict[str, list[float]] = {name: [] for name in network.names}

    async def start(self, name: str) -> None:
        clock = Clock()
        await self._network.start_beside(name)
        self.starts_s.append(clock.now)

    async def _kill(self, name: str) -> None:
        code = await asyncio.to_thread(self._network.stop, name)
        if code != -SIGKILL:
            raise RuntimeError(f"{name} had ended before it was killed, with exit code {code}")

    def check(self) -> None:
        """Whether those that were not killed are still there."""
        for name, process in self._network.processes.items():
            if (code := process.poll()) is not None:
                raise RuntimeError(f"{name} has ended by itself, with exit code {code}")

    async def follow(self, name: str, planned: Sequence[Outage], length_s: float, clock: Clock) -> None:
        turns = self.turns[name]
        for outage in planned:
            await clock.until(outage.begin / 1_000)
            turns.append(clock.now)
            await self._kill(name)
            if outage.end >= round(length_s * 1_000):
                return
            await clock.until(outage.end / 1_000 - median(self.starts_s))
            await self.start(name)
            turns.append(clock.now)


def run(setup: Setup) -> tuple[Site, Measured]:
    """No process is left behind, whatever happens."""
    with TemporaryDirectory() as folder, FailingNetwork(Path(folder), setup) as network:
        site = read_site(str(network.site))
        return site, asyncio.run(_scene(setup, site, network))


async def _scene(setup: Setup, site: Site, network: FailingNetwork) -> Measured:
    planned = schedule(setup.brokers, setup.length_s, setup.seed)
    mortality = Mortality(network)
    for name in network.names:  # one after the other, since that is how they are started later
        await mortality.start(name)
    await network.linked()
    async with Traffic(site, network) as traffic:
        clock = Clock()
        async with asyncio.TaskGroup() as tasks:
            for name, found in planned.items():
                tasks.create_task(mortality.follow(name, found, setup.length_s, clock))
            tasks.create_task(traffic.flow(setup.seconds, clock))
            tasks.create_task(clock.until(setup.length_s))
        mortality.check()
    return Measured(
        planned=planned,
        realised={name: realised_outages(turns, setup.length_s) for name, turns in mortality.turns.items()},
        starts_s=mortality.starts_s,
        sent=traffic.sent,
        outcomes=dict(traffic.outcomes),
        on_time=traffic.on_time(),
        twice=traffic.twice,
    )
