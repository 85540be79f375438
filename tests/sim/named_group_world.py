"""Named subscriptions, positions and stages in a group of replicas, with faults by seed.

What really happened is what any replica executed: it is decided then, so that no other may execute something else. At
the end all replicas must have the same state, and the same events at the same positions on their disks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar
from unittest import mock

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.kernel.links import Role
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.sequencing import Elected, StateReplaced
from holdfast.kernel.storage import EVENTS, StoredStreams
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.core import log_state
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.outputs import Kept, Logged, Output, Reply
from holdfast.protocols.desks import refill
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.parts import make_replica
from holdfast.schemes.paxos.settings import CLASSIC, Member, PaxosSettings
from holdfast.sim.disk import Disk
from holdfast.sim.machine import Machine
from tests.sim.named_clients import Client
from tests.sim.named_group_clients import HeadReader, Stager
from tests.sim.named_truth import Truth, traced
from tests.sim.named_world import BrokenPromiseError, Parts, World, stored_events

MARK_BYTES = 200  # the log is given up in steps of about this size, so that short runs give something up


@dataclass(frozen=True)
class GroupParts(Parts):
    """What replicas are made of; a mutant replaces one of them."""

    refill: type[refill.Refill] = refill.Refill


class GroupTruth(Truth):
    """What was executed by anyone was decided for all: another that executes it has to come to the same."""

    def __init__(self) -> None:
        super().__init__()
        self._executed: dict[int, tuple[bytes, list[Any]]] = {}

    def see(self, number: int, command: Command, outputs: list[Output], known: bool) -> None:
        came_of_it = [output for output in outputs if isinstance(output, Logged | Kept | Reply)]
        seen = (msgspec.msgpack.encode(command), came_of_it)
        first = self._executed.setdefault(number, seen)
        if first is seen:
            self._note(number, command, outputs, known)
        elif first != seen:
            raise BrokenPromiseError(f"all replicas come to the same: {number}, {first}, {seen}")


class Counting(Part):
    """Counts what happens to a replica; the last of its parts."""

    name: ClassVar[str] = "counting"
    notices: ClassVar[tuple[type[Notice], ...]] = (Elected, StateReplaced)

    def __init__(self, world: GroupWorld, node: Assembly) -> None:
        self._world = world
        self._node = node

    def on_elected(self, elected: Elected, out: Outbox) -> None:
        self._world.happened["elections"] += 1

    def on_state_replaced(self, replaced: StateReplaced, out: Outbox) -> None:
        self._world.happened["snapshots"] += 1
        if self._node.measure()["replica_events_missing"]:
            self._world.happened["holes"] += 1
            self._world.on_hole()


class GroupWorld(World):
    """One run."""

    name: ClassVar[str] = "named group"
    # Staged events are nobody's publications, so that a trace does not know what is in them.
    checked: ClassVar[tuple[str, ...]] = ("at-most-once", "publisher-order", "total-order")
    safety_ms: ClassVar[int] = 3_000
    storm: ClassVar[tuple[int, int]] = (120_000, 16 * 1024 * 1024)

    def __init__(self, seed: int, parts: GroupParts | None = None) -> None:
        self.heads: list[tuple[set[int], int]] = []  # what was acknowledged when it was asked for, and the answer
        self.stages: dict[tuple[str, int], list[list[int]]] = {}  # (query, epoch) → the keys of each attempt
        self.committed: dict[str, int] = {}  # query → the last epoch of which someone knows that it is
        self.happened: Counter[str] = Counter()
        self.nodes: dict[str, Assembly] = {}
        self.wiped = ""
        super().__init__(seed, parts or GroupParts())

    def _make_truth(self) -> Truth:
        return GroupTruth()

    def _draw_rate(self) -> int:
        return self.rng.choice([0, 0, 0, 50_000])

    def _make_others(self) -> list[Client]:
        return [HeadReader(self, "r1"), HeadReader(self, "r2"), Stager(self, "s1"), Stager(self, "s2")]

    def addresses(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(self.brokers, len(self.brokers)))

    # ------------------------------------------------------------------------------------------------------ replicas
    def _add_brokers(self, seed: int) -> None:
        rng = self.rng
        self.brokers = tuple(f"b{number}" for number in range(1, rng.choice([3, 3, 3, 3, 5]) + 1))
        self.keeps_all = rng.random() < 0.5
        few = RetentionSettings(bytes=3 * MARK_BYTES, bytes_hard=0, look_every=300 * MILLISECOND)
        settings = self._draw_settings("", None if self.keeps_all else few)
        group = PaxosSettings(
            "",
            tuple(Member(name, name, name) for name in self.brokers),
            rng.choice(CLASSIC),
            pipeline=rng.choice([1, 3, 10]),
            batch_commands=rng.choice([2, 256]),
            trim_every=rng.choice([2, 5, 20]),
            trim_keep=rng.choice([0, 1, 5]),
            trim_ratio=0,
            part_bytes=rng.choice([100, 1_000, 256 * 1024]),
        )
        sync_us = rng.choice([(100, 3_000), (1_000, 20_000)])
        for name in self.brokers:
            replica = msgspec.structs.replace(group, name=name)
            disk = Disk(RECORDS, Random(f"disk {name} {seed}"), sync_us)
            own = msgspec.structs.replace(settings, name=name)
            self.simulation.add_machine(name, Role.BROKER, self._factory(own, replica), disk)

    def _factory(self, settings: BrokerSettings, group: PaxosSettings) -> Any:
        parts = self.parts
        assert isinstance(parts, GroupParts)
        core = traced(parts.core, self.truth)

        def make(rng: Random, streams: StoredStreams) -> Assembly:
            kit = BrokerKit(
                core=core,
                sessions=parts.sessions,
                log=parts.log,
                events=parts.events,
                refill=parts.refill,
            )
            made = make_replica(settings, group, rng, streams, kit=kit)
            node = self.nodes[group.name] = Assembly([*made.parts, Counting(self, made)])
            holdings = _part(node, Learner)._holdings
            fetch_first = holdings.fetch_first

            def fetch(state: bytes, out: Outbox) -> bool:
                first: bool = fetch_first(state, out)
                if first:
                    self.happened["fetched first"] += 1
                    self.on_hole()
                return first

            holdings.fetch_first = fetch
            return node

        return make

    def replica_host(self, name: str) -> Machine:
        return self.simulation.machines[name]

    def disk_of(self, name: str) -> Disk:
        disk = self.replica_host(name).disk
        assert disk is not None
        return disk

    def members(self) -> list[str]:
        """The replicas that still take part."""
        return [name for name in self.brokers if name != self.wiped]

    def leader(self) -> str:
        """Who leads, as far as it knows; any replica if nobody does."""
        leading = [
            name
            for name in self.brokers
            if self.replica_host(name).running and self.nodes[name].measure()["replica_is_leading"]
        ]
        return self.rng.choice(leading or list(self.brokers))

    # ------------------------------------------------------------------------------------------------------- faults
    def _plan_faults(self) -> None:
        rng = self.rng
        self._may_wipe = rng.random() < 0.3
        self._preying = rng.random() < 0.5
        if self._may_wipe:
            self.later(500, 2 * self.safety_ms, self._wipe)
        for _ in range(rng.randint(1, 7)):
            self.later(300, self.safety_ms - 200, rng.choice(self._faults()))

    def _faults(self) -> list[Any]:
        rng = self.rng
        some = rng.choice(self.brokers)
        client = rng.choice([*self.consumers, *self.publishers]).name
        return [
            lambda: self._bounce(self.replica_host(self.leader()), False),
            lambda: self._bounce(self.replica_host(some), False),
            lambda: self._cut_power(self.replica_host(self.leader()), 50),
            lambda: self._cut_power(self.replica_host(some), 50),
            lambda: self._black_out(100),
            lambda: self._split(self.leader()),
            lambda: self._split(self.leader()),
            lambda: self._pause(self.leader()),
            lambda: self._isolate(self.leader()),
            lambda: self._isolate(some),
            lambda: self._cut(self.leader(), some) if some != self.leader() else None,
            lambda: self._cut(client, self.leader()),
            lambda: self._bounce(self.replica_host(rng.choice(self.consumers).name), rng.random() < 0.5),
            lambda: setattr(self.disk_of(some), "slowness", 10),
        ]

    def _pause(self, name: str) -> None:
        host = self.replica_host(name)
        host.pause()
        self.later(50, 900, host.resume)

    def _isolate(self, name: str) -> None:
        """From all other replicas, and not from clients: a leader that does not know what goes on."""
        network = self.simulation.network
        inward = self.rng.random() < 0.7
        for other in self.brokers:
            if other != name:
                network.cut(name, other)
                if inward:
                    network.cut(other, name)
        self.later(300, 1_500, lambda: self._join(name, inward))

    def _join(self, name: str, inward: bool) -> None:
        for other in self.brokers:
            if other != name:
                self.simulation.network.heal(name, other)
                if inward:
                    self.simulation.network.heal(other, name)

    def _split(self, name: str) -> None:
        """A leader and some of its clients on one side, everyone else on the other; who asks, asks now."""
        self._isolate(name)
        for host in self.simulation.machines.values():
            if host.role is Role.CLIENT and self.rng.random() < 0.5:
                self._cut(host.name, name)
        for reader in self.others:
            for _ in range(3):
                self.later(250, 800, reader.hurry)
        for publisher in self.publishers:
            self.later(0, 500, publisher.hurry)

    def _black_out(self, patience: int) -> None:
        """Everyone loses power, when it hurts: when most have written something that is not safe."""
        if patience and sum(self.disk_of(name).dirty for name in self.brokers) <= len(self.brokers) // 2:
            self.later(1, 1, lambda: self._black_out(patience - 1))
        else:
            for name in self.brokers:
                self._bounce(self.replica_host(name), True)

    def on_hole(self) -> None:
        """A replica lacks events: those who have them are not safe either."""
        if self._preying and not self.draining:
            self._preying = False
            strike = self._wipe if self._may_wipe else lambda: self._bounce(self.replica_host(self.leader()), True)
            self.later(0, 5, strike)

    def _wipe(self) -> None:
        """One disk is lost for good; that is one too many in no group of three."""
        if self.wiped or self.draining:
            return
        self.wiped = self.leader()
        host = self.replica_host(self.wiped)
        host.stop(power_cut=True)
        self.disk_of(self.wiped).wipe()
        self.later(5, 400, lambda: None if host.running else host.start())

    # -------------------------------------------------------------------------------------------------------- a run
    def run(self) -> None:
        marks = mock.patch.object(log_state, "MARK_BYTES", MARK_BYTES)
        parts = mock.patch.object(refill, "PART_BYTES", self.rng.choice([1, 1024 * 1024]))
        first = mock.patch.object(refill, "FETCHED_FIRST_BYTES", self.rng.choice([-1, 300, 64 * 1024 * 1024]))
        with marks, parts, first:
            super().run()

    def _missing(self) -> list[object]:
        return [*super()._missing(), *(client.name for client in self.others if client.is_waiting), *self._lagging()]

    def _lagging(self) -> list[object]:
        """Replicas that lack something: commands, events, or their end on the disk."""
        cores = {name: _core(self.nodes[name]) for name in self.members()}
        last = max(core.number for core in cores.values())
        found: list[object] = []
        for name, core in cores.items():
            assert core.log is not None
            stored = self.disk_of(name).bounds().get(EVENTS)
            next, first = (1, 1) if stored is None else (stored.next, stored.first)
            missing = self.nodes[name].measure()["replica_events_missing"]
            if core.number < last or missing or next <= core.log.head or first < core.log.tail:
                found.append((name, core.number, last, missing, core.log.head, next, core.log.tail, first))
        return found

    def summary(self) -> Counter[str]:
        """What happened, counted."""
        cores = [_core(self.nodes[name]) for name in self.members()]
        return (
            super().summary()
            + self.happened
            + Counter(
                {
                    "heads": len(self.heads),
                    "wiped": bool(self.wiped),
                    f"groups of {len(self.brokers)}": 1,
                    "committed epochs": sum(self.committed.values()),
                    "given up": max(core.log.tail - 1 for core in cores if core.log is not None),
                }
            )
        )

    # ------------------------------------------------------------------------------------------------------- oracle
    def check(self) -> None:
        super().check()
        keys = {place: attributes["k"] for place, attributes in self.truth.events().items()}
        self._check_heads({key: place for place, key in keys.items()})
        self._check_stages({key: place for place, key in keys.items()})

    def _check_disks(self, keys: dict[int, int]) -> None:
        cores = {name: _core(self.nodes[name]) for name in self.members()}
        states = {name: BrokerCore.get_state(core) for name, core in cores.items()}
        if len(set(states.values())) != 1:
            self.fail("all replicas have one state", *[msgspec.msgpack.decode(state) for state in states.values()])
        stored = {name: stored_events(self.disk_of(name)) for name in self.members()}
        for name, events in stored.items():
            log = cores[name].log
            assert log is not None
            if list(events) != list(range(log.tail, log.head + 1)):
                self.fail("the log on a disk has no gap", name, log.tail, log.head, list(events))
            if {place: attributes["k"] for place, (attributes, _) in events.items()} != {
                place: key for place, key in keys.items() if place >= log.tail
            }:
                self.fail("the log on a disk holds what was accepted", name)
        first, *rest = stored.values()
        if any(other != first for other in rest):
            self.fail("all disks hold the same bytes at the same positions")

    def _check_heads(self, places: dict[int, int]) -> None:
        for published, head in self.heads:
            if head < max((places[key] for key in published), default=0):
                self.fail("the head is behind what was acknowledged before it was asked for", head, published)

    def _check_stages(self, places: dict[int, int]) -> None:
        for (query, epoch), attempts in self.stages.items():
            there = [keys for keys in attempts if any(key in places for key in keys)]
            if len(there) != (epoch <= self.committed.get(query, 0)):
                self.fail("one attempt of an epoch is published, if it is committed", query, epoch, there)
            for keys in there:
                found = [places.get(key, 0) for key in keys]
                if found != list(range(found[0], found[0] + len(keys))):
                    self.fail("a commit publishes everything, without gaps", query, epoch, found)


def _part(node: Assembly, kind: type[Any]) -> Any:
    return next(part for part in node.parts if isinstance(part, kind))


def _core(node: Assembly) -> BrokerCore:
    core: BrokerCore = _part(node, SessionDesk)._core
    return core


def run_group_seed(seed: int, parts: GroupParts | None = None) -> GroupWorld:
    """Raises if a promise is broken, or a node finds itself broken."""
    world = GroupWorld(seed, parts)
    world.run()
    return world


def problem(seed: int, parts: GroupParts | None = None, see: Callable[[GroupWorld], None] = lambda world: None) -> str:
    """What is wrong with a run; empty if nothing is, and then `see` is shown it."""
    try:
        see(run_group_seed(seed, parts))
    except Exception as error:  # whatever stops a node is a failure here
        return f"seed {seed}: {type(error).__name__}: {error}"
    return ""
