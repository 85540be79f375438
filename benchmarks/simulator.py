"""How fast and how large the simulator is: steps of nodes a second, and what a thousand brokers take.

    .venv/bin/python -m benchmarks.simulator

A step is one call of a node's `handle`. Two loads: `relay` is fifty nodes that pass messages round a ring, which shows
what the simulator itself costs (queues, codec, latency, heap); `sessions` is one broker with twenty clients that
publish and subscribe, where the steps do a broker's work. Each is timed with tracing and checks off, and with every row
digested and given to the checkers and every node's invariants checked after every step. Best of five, on one core.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from random import Random
from typing import Any

from benchmarks.machine import description
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.kernel.inputs import Input, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import Ping
from holdfast.protocols.sessions.requests import Consume, MakeSubscription, NewEvent, PublishEvents
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.tree.parts import make_broker
from holdfast.sim.digest import Digest
from holdfast.sim.latency import Uniform, build
from holdfast.sim.machine import Machine, Program
from holdfast.sim.simulation import RowSink, Simulation
from holdfast.trace.checkers import Watch, make_checker
from holdfast.trace.schema import Header

ROUNDS = 5
CHECKERS = ("only-matching", "at-most-once", "publisher-order", "no-loss", "bounded-queues")
STEPS_PER_SECOND_WANTED = {"off": 150_000, "on": 60_000}
MEMORY_WANTED = 2 * 1024**3


class Relay:
    """Passes on whatever comes, to the next node of the ring."""

    def __init__(self, number: int, ring: int) -> None:
        self._next = f"b{(number + 1) % ring}"
        self._begins = number % 2 == 0

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            if type(event) is Received:
                for message in event.messages:
                    out.send(self._next, message)
            elif type(event) is Started:
                out.connect("", self._next)
            elif type(event) is LinkUp and event.initiated and self._begins:
                out.send(self._next, Ping())

    def check_invariants(self) -> None:
        pass


def relay(sinks: list[RowSink], checking: bool) -> Simulation:
    """Fifty nodes in a ring, and twenty-five messages that go round."""
    ring = 50
    simulation = Simulation(
        MESSAGES, 1, build(Uniform(low_us=500, high_us=1_500), Random(1)), sinks=sinks, checking=checking
    )
    for number in range(ring):
        simulation.add_machine(f"b{number}", Role.BROKER, lambda rng, streams, n=number: Relay(n, ring))  # type: ignore[misc]
    for host in simulation.machines.values():
        host.start()
    return simulation


class Consumer(Program):
    """Subscribes, if it has a filter, and consumes at once."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted

    def on_started(self, host: Machine) -> None:
        if self._wanted is not None:
            host.request(1, MakeSubscription(self._wanted))

    def on_deliver(self, host: Machine, subscription: int, events: Collection[Any]) -> None:
        host.request(2, Consume(subscription, len(events)))


def sessions(sinks: list[RowSink], checking: bool) -> Simulation:
    """One broker, ten publishers of 100 events a second each, ten subscribers to a tenth of them each."""
    simulation = Simulation(
        MESSAGES, 1, build(Uniform(low_us=500, high_us=1_500), Random(1)), sinks=sinks, checking=checking
    )
    add_broker(simulation, "b1").start()
    rng = Random(2)

    def publish(host: Machine) -> None:
        host.request(3, PublishEvents([NewEvent({"key": rng.randrange(10), "price": rng.random()})]))
        simulation.after(10 * MILLISECOND, publish, host)

    for number in range(10):
        add_client(simulation, f"s{number}", "b1", f"key = {number}").start()
        publisher = add_client(simulation, f"p{number}", "b1", None)
        publisher.start()
        simulation.at(100 * MILLISECOND + number * MILLISECOND, publish, publisher)
    return simulation


def add_broker(simulation: Simulation, name: str) -> Machine:
    settings = BrokerSettings(name)
    return simulation.add_machine(name, Role.BROKER, lambda rng, streams: make_broker(settings, rng, streams))


def add_client(simulation: Simulation, name: str, broker: str, wanted: str | None) -> Machine:
    settings = ClientSettings(name, (broker,))
    make = lambda rng, streams: make_client(settings, rng, streams)  # noqa: E731
    return simulation.add_machine(name, Role.CLIENT, make, program=Consumer(wanted))


LOADS: dict[str, tuple[Callable[[list[RowSink], bool], Simulation], int]] = {
    "relay": (relay, 6 * SECOND),
    "sessions": (sessions, 10 * SECOND),
}


def steps_per_second(load: str, tracing: bool) -> float:
    """One timed run."""
    make, seconds = LOADS[load]
    watch = Watch(Header(run="benchmark", system="tree"), [make_checker(name) for name in CHECKERS])
    simulation = make([Digest(), watch] if tracing else [], tracing)
    simulation.run(200 * MILLISECOND)
    before, started = simulation.steps, time.perf_counter()
    simulation.run(200 * MILLISECOND + seconds)
    elapsed = time.perf_counter() - started
    if watch.violations:
        raise SystemExit(f"the benchmark broke a promise: {watch.violations[0]}")
    return (simulation.steps - before) / elapsed


def populate(brokers: int, clients: int) -> None:
    """Makes a large population, lets every client connect, subscribe and publish once, and prints what it took."""
    started = time.perf_counter()
    simulation = Simulation(MESSAGES, 1, build(Uniform(low_us=500, high_us=1_500), Random(1)))
    for number in range(brokers):
        add_broker(simulation, f"b{number}").start()
    for number in range(clients):
        host = add_client(simulation, f"c{number}", f"b{number % brokers}", f"key = {number % 97}")
        simulation.at(number * 1_000, lambda client: client.start(), host)
    simulation.run(5 * SECOND)
    for number in range(clients):
        simulation.machines[f"c{number}"].request(3, PublishEvents([NewEvent({"key": number % 89})]))
    simulation.run(10 * SECOND)
    result = {
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "seconds": time.perf_counter() - started,
        "steps": simulation.steps,
    }
    print(json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each kind; the best counts")
    parser.add_argument("--populate", nargs=2, type=int, metavar=("BROKERS", "CLIENTS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.populate:
        populate(*arguments.populate)
        return
    print(", ".join(f"{name}: {value}" for name, value in description().items()))
    print(f"\nsteps of nodes a second, one core of {multiprocessing.cpu_count()}, best of {arguments.rounds}")
    for load in LOADS:
        for name, tracing in (("off", False), ("on", True)):
            best = max(steps_per_second(load, tracing) for _ in range(arguments.rounds))
            wanted = STEPS_PER_SECOND_WANTED[name]
            print(f"  {load:9} tracing and checks {name:4} {best:10,.0f}   (wanted {wanted:,})")
    command = [sys.executable, "-m", "benchmarks.simulator", "--populate", "1000", "10000"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(
        f"\n1,000 brokers with 10,000 clients, each with a subscription and a publication: "
        f"{result['bytes'] / 1024**2:,.0f} MiB at most (wanted {MEMORY_WANTED / 1024**2:,.0f}), "
        f"{result['steps']:,} steps in {result['seconds']:.1f} s"
    )


if __name__ == "__main__":
    main()
