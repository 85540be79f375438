"""A change of a small network under load, in which something goes wrong after just one turn of one broker, any of them.

Drawn faults have times, and a move is over within milliseconds: what meets it is chance. Here a change is played once
for each turn of each broker that takes part, and each time that broker is killed, loses power with each length of what
its disk was about to have, or loses a link, right after that turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.kernel.inputs import Input
from holdfast.kernel.links import Role
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.routing.network_map import Change
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.asked_changes import operation_of
from holdfast.schemes.tree.draw_network import network_promises
from holdfast.sim.disk import Disk
from holdfast.sim.latency import Uniform
from holdfast.sim.machine import Machine, NodeFactory, Program
from holdfast.sim.run import Factories, Outcome, run_scenario
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Network,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
    Unsubscribe,
)
from holdfast.sim.simulation import Simulation

BEGIN_MS = 600  # the first change
UNTIL_MS = 1_500  # when nothing goes wrong any more
SAFETY_MS = 2_500
QUIET_MS = 9_000  # from when all is healed until the last publications
END_MS = 3_000  # and from then on
TOPICS = ("t", "u", "v")


class Mishap(NamedTuple):
    """After so many turns of a broker from the first change on. `kept`: of what its disk was about to have, at a power
    cut; None: it is killed. `reset`: its link to that one breaks instead."""

    broker: str
    turn: int
    kept: int | None = None
    away_ms: int = 40
    reset: str = ""
    also: tuple[str, ...] = ()  # these go down with it


class Fragile(Disk):
    keep: int | None = None

    def stop(self, power_cut: bool) -> None:
        if power_cut and self.keep is not None:
            self.make_safe(min(self.keep, len(self._pending)))
            self._pending = []
            self.keep = None
        else:
            super().stop(power_cut)


class _Counted(Machine):
    """Says when a turn is over."""

    turns = 0

    def _turn(self, inputs: list[Input]) -> None:
        super()._turn(inputs)
        simulation = self._simulation
        during = BEGIN_MS * MILLISECOND <= simulation.now < UNTIL_MS * MILLISECOND
        if during and isinstance(simulation, Mishaps) and self.role is Role.BROKER:
            self.turns += 1
            simulation.turn_ended(self, self.turns)


class Mishaps(Simulation):
    """What goes wrong is of a subclass."""

    mishaps: Sequence[Mishap] = ()
    pending: dict[str, list[int]]  # broker → how much its disk was about to have, after each turn

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        type(self).pending = {}
        self._left = {(mishap.broker, mishap.turn): mishap for mishap in self.mishaps}

    def add_machine(
        self,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None = None,
        program: Program | None = None,
        address: str = "",
    ) -> Machine:
        machine = _Counted(self, name, role, make, disk, program)
        self.machines[name] = machine
        self.addresses[address or name] = machine
        return machine

    def turn_ended(self, machine: Machine, turn: int) -> None:
        waiting = 0 if machine.disk is None else machine.disk.written()
        self.pending.setdefault(machine.name, []).append(waiting)
        mishap = self._left.pop((machine.name, turn), None)
        if mishap is None:
            return
        if mishap.reset:
            other = self.machines[mishap.reset]
            self.fault(f"{machine.name}>{other.name}", "reset")
            self.network.reset(machine, other)
            self.fault(f"{machine.name}>{other.name}", "healed")
            return
        for name in (machine.name, *mishap.also):
            victim = self.machines[name]
            if not victim.running:
                continue
            if isinstance(victim.disk, Fragile) and name == machine.name:
                victim.disk.keep = mishap.kept
            self.fault(name, "crashed")
            victim.stop(power_cut=mishap.kept is not None)
            self.after(mishap.away_ms * MILLISECOND, self._start, victim)

    def _start(self, machine: Machine) -> None:
        if not machine.running:
            self.fault(machine.name, "up")
            machine.start()


def play(scenario: Scenario, *mishaps: Mishap, factories: Factories | None = None) -> tuple[Outcome, type[Mishaps]]:
    played = type("Played", (Mishaps,), {"mishaps": mishaps})
    kept = replace(factories or Factories(), simulation=played, disk=Fragile)
    return run_scenario(scenario, kept), played


def points(played: type[Mishaps], brokers: Sequence[str], turns: int) -> Iterator[Mishap]:
    """Everything that can go wrong once, in so many turns of each of those brokers."""
    for name in brokers:
        for turn, waiting in enumerate(played.pending[name][:turns], 1):
            yield Mishap(name, turn)
            for kept in range(waiting + 1):
                yield Mishap(name, turn, kept)
            for other in brokers:
                if other != name:
                    yield Mishap(name, turn, reset=other)


def small_change(
    level: Reliability,
    links: Sequence[tuple[str, str]],
    changes: Mapping[int, Change],
    seed: int = 1,
    spares: Sequence[str] = (),
    events_ms: int = 50,
    safety_ms: int = SAFETY_MS,
    gaps_ms: Sequence[int] = (1, 4, 9, 15),
    topics: Sequence[str] = TOPICS,
    subscribed: int = 0,
) -> Scenario:
    """Each broker that stays has a client, which publishes while the changes are carried out, and wants some of it from
    the beginning and some from then on. `subscribed`: to so many of the topics, one by one, before anyone has published
    there."""
    rng = Random(f"crash points/{seed}")
    members = list(dict.fromkeys(name for link in links for name in link))
    brokers = [
        Broker(id=name, durable=True, sync_us=(100, 4_000), spare=name in spares, snapshot_every=20)
        for name in (*members, *spares)
    ]
    going = {getattr(change, "name", "") for change in changes.values()}
    homes = [name for name in members if name not in going]
    clients = [Client(id=f"c{number}", brokers=(home,)) for number, home in enumerate(homes, 1)]
    actions: list[Action] = []
    for client in clients:
        wanted = rng.choice(("", "topic = 't'", "topic <> 'v'"))
        actions.append(Subscribe(at_ms=0, client=client.id, name="early", filter=wanted))
        actions.append(Publish(at_ms=200, client=client.id, events=[_event(rng, "t")]))
    first, last = min(changes) - 5, max(changes) + events_ms
    for client in clients:
        at = first
        while at < last:
            at += rng.choice(gaps_ms)
            topic = rng.choice(topics if at > first + 15 else ("t",))
            events = [_event(rng, topic) for _ in range(rng.randint(1, 2))]
            actions.append(Publish(at_ms=at, client=client.id, events=events))
        at = rng.randint(first, last)
        actions.append(
            Subscribe(at_ms=at, client=client.id, name="late", filter=rng.choice(("topic = 'v'", "topic = 'u'")))
        )
        if rng.random() < 0.3:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name="early"))
        actions.append(
            Publish(at_ms=safety_ms + QUIET_MS, client=client.id, events=[_event(rng, "t"), _event(rng, "v")])
        )
    chosen = Random(seed)
    for client in clients if subscribed else ():
        for number, topic in enumerate(chosen.sample(topics, subscribed)):
            actions.append(Subscribe(at_ms=1, client=client.id, name=f"x{number}", filter=f"topic = '{topic}'"))
    operations = [operation_of(change, at, 500) for at, change in changes.items()]
    drawn = Scenario(
        name="crash-points",
        seed=seed,
        settings={"reliability": level.value},
        links=list(links),
        brokers=brokers,
        clients=clients,
        network=Network(latency=Uniform(low_us=200, high_us=rng.choice((900, 3_000)))),
        actions=sorted(actions, key=lambda action: action.at_ms),
        operations=operations,
        faults=[],
        safety_ms=safety_ms,
        liveness_ms=QUIET_MS + END_MS,
        checkers=[],
    )
    promises = network_promises(drawn)
    if level.detours:
        promises = tuple(name for name in promises if not name.startswith("publisher-order"))
    return replace(drawn, checkers=list(promises))


def _event(rng: Random, topic: str) -> ScenarioEvent:
    return ScenarioEvent(attributes={"n": rng.randint(0, 9)}, topic=topic)
