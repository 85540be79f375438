"""One run, and what came of it for each subscriber (D1-B10)."""

from __future__ import annotations

import gc
import time
from collections import Counter
from math import prod
from statistics import fmean

import msgspec

from experiments.d1.world import Setup, World, draw_world, scenario_of, session_of, subscribing_for, tree_of
from holdfast.kernel.time import MILLISECOND
from holdfast.sim.run import measure_scenario
from holdfast.topology.graph import BrokerGraph
from holdfast.trace.reliability import ReliabilityMeter
from holdfast.trace.schema import Published, Row


class Measured(msgspec.Struct, frozen=True):
    """Of one subscriber: r_s is on time / wanted."""

    name: str
    topic: str
    home: str
    wanted: int
    on_time: int

    @property
    def reliability(self) -> float | None:
        return self.on_time / self.wanted if self.wanted else None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to. `seconds` is the processor's time."""

    setup: Setup
    world: World
    subscribers: list[Measured]
    published: int
    steps: int
    seconds: float

    @property
    def mean(self) -> float:
        """The mean of r_s over those who wanted anything."""
        return fmean(one.reliability for one in self.subscribers if one.reliability is not None)


class _Counted:
    """How many events were published."""

    def __init__(self) -> None:
        self.published = 0

    def see(self, row: Row) -> None:
        if type(row) is Published:
            self.published += 1


def run(setup: Setup, world: World | None = None) -> Result:
    """In the world that the setup stands for, or in another one."""
    world = world or draw_world(setup)
    scenario = scenario_of(setup, world)
    meter, counted = ReliabilityMeter(), _Counted()
    began = time.process_time()
    # A run makes no cycles to speak of, and millions of small objects: looking for cycles took a fifth of its time.
    collects = gc.isenabled()
    gc.disable()
    try:
        simulation = measure_scenario(scenario, [meter, counted])
    finally:
        if collects:
            gc.enable()
    seconds = time.process_time() - began
    measured = {one.subscription: one for one in meter.finish(setup.end_ms * MILLISECOND)}
    subscribers = []
    made: Counter[str] = Counter()  # subscriptions of a session, which are numbered in the order of the scenario
    numbers: dict[str, int] = {}
    subscribes = subscribing_for(setup, world)
    for name, topic in world.topics.items():
        session = session_of(setup, world, name)
        if subscribes[name] == name:
            made[session] += 1
            numbers[name] = made[session]
        found = measured[f"{session}/1/{numbers[subscribes[name]]}"]
        subscribers.append(Measured(name, topic, world.homes[name], found.wanted, found.on_time))
    return Result(
        setup=setup,
        world=world,
        subscribers=subscribers,
        published=counted.published,
        steps=simulation.steps,
        seconds=seconds,
    )


def path_availability(setup: Setup, world: World, subscriber: str) -> float:
    """Of all brokers and links between the publisher's home and the subscriber's: what a level without a memory for
    events can reach at most, and reaches if it is told again at once what is wanted (D1-C2)."""
    tree = BrokerGraph(list(world.availabilities), tree_of(world)).spanning_tree()
    path = tree.path(world.homes[world.topics[subscriber]], world.homes[subscriber])
    links = setup.link_availability ** (len(path) - 1)
    return links * prod(world.availabilities[broker] for broker in path)
