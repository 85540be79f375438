"""A group of replicas around a very small application, its clients, and what can befall it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from holdfast.errors import NotAMember
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Note
from holdfast.kernel.parts import Assembly
from holdfast.kernel.queues import Queued
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MICROSECOND, MILLISECOND
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from holdfast.schemes.paxos.membership import AddLearner, Change
from holdfast.schemes.paxos.parts import GroupParts, PaxosKit
from holdfast.schemes.paxos.settings import Member, PaxosSettings, Protocol
from holdfast.sim.latency import Uniform, build
from holdfast.sim.machine import Machine
from holdfast.sim.network import Adversary, End
from holdfast.sim.simulation import Simulation
from tests.paxos.ledger import DIRECT, Asked, Command, Door, Ledger, make_parts
from tests.paxos.violation import hold
from tests.paxos.watch import Watch, WatchedDisk

CLIENTS = ("a", "b", "c")


class WatchedSimulation(Simulation):
    """Shows the watch every message that leaves a machine."""

    watch: Watch

    def note_hops(self, host: Machine, end: End, entries: list[Queued]) -> None:
        for entry in entries:
            self.watch.sent(host.name, host.life, entry.message)

    def note(self, node: str, note: Note) -> None:
        """The swarm keeps no trace."""


@dataclass
class Group:
    """One run. `options` are settings of the replicas."""

    seed: int
    members: int = 3
    protocol: Protocol = Protocol.BATCH
    kit: PaxosKit = field(default_factory=PaxosKit)
    make_ledger: type[Ledger] = Ledger
    adversary: Adversary | None = None
    late_us: int = 3_000
    early_us: int = 50
    sync_us: int = 5_000
    ask_ms: int = 40
    spares: int = 0  # replicas that run, and are no members until they are added
    options: dict[str, Any] = field(default_factory=dict)
    directly: float = 0  # how often clients say something to every replica, where that is taken
    late_direct_us: int = 2_000  # how much later the last of them may hear it
    patient: bool = False  # clients ask once, and not again before they are answered

    def __post_init__(self) -> None:
        self.rng = Random(f"group/{self.seed}")
        names = [f"r{n}" for n in range(self.members + self.spares)]
        founders = names[: self.members]
        self.watch = Watch(names, founders)
        delays = build(Uniform(low_us=self.early_us, high_us=self.late_us), Random(self.seed))
        self.simulation = WatchedSimulation(MESSAGES, self.seed, delays, self.adversary, checking=True)
        self.simulation.watch = self.watch
        self.simulation.tracing = self.simulation.tracing_brokers = True
        self.simulation.when_stopped = self._restart_later
        self.answered = dict.fromkeys(CLIENTS, 0)
        self.ledgers: dict[str, Ledger] = {}
        self.made: dict[str, GroupParts] = {}
        listed = tuple(Member(name, name, f"{name}:c") for name in names)
        members, spares = listed[: self.members], listed[self.members :]
        self.settings = {
            name: PaxosSettings(name, members, self.protocol, **{"trim_ratio": 0, "spares": spares, **self.options})
            for name in names
        }
        for name in names:
            disk = WatchedDisk(RECORDS, Random(f"{self.seed}/{name}"), (100, self.sync_us))
            disk.stored = lambda operation, name=name: self.watch.stored(name, operation)  # type: ignore[misc]
            self.simulation.add_machine(name, Role.BROKER, self._factory(name), disk)

    def _factory(self, name: str) -> Callable[[Random, StoredStreams], Any]:
        def make(rng: Random, streams: StoredStreams) -> Assembly:
            ledger = self.ledgers[name] = self.make_ledger(lambda *what: self.watch.applied(name, *what))
            parts = self.made[name] = make_parts(self.settings[name], ledger, rng, streams, self.kit)
            self.watch.recovered(name, parts, ledger)
            self.watch.watch_elections(name, parts)
            return Assembly([*parts.parts, Door(parts, lambda command: self._on_answered(name, command))])

        return make

    def _on_answered(self, name: str, command: Command) -> None:
        self.watch.answered(name, command)
        who, what = command
        self.answered[who] = max(self.answered[who], what)

    def _restart_later(self, host: Machine) -> None:
        self.start_later(host, 300)

    # ---------------------------------------------------------------------------------------------------------- play
    @property
    def hosts(self) -> dict[str, Machine]:
        return self.simulation.machines

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()
        self.start_clients()

    def start_clients(self) -> None:
        for who in CLIENTS:
            self.simulation.after(self.rng.randint(0, self.ask_ms) * MILLISECOND, self._ask, who)

    def start_later(self, host: Machine, ms: int) -> None:
        self.simulation.after(ms * MILLISECOND, self._start, (host, host.life))

    def _start(self, arguments: tuple[Machine, int]) -> None:
        host, life = arguments
        if host.life == life and not host.running:
            self._try(host)

    def _try(self, host: Machine) -> None:
        """Starts it, unless its own disk says that it is no member any more."""
        try:
            host.start()
        except NotAMember:
            removed = self.watch.membership.find(host.name) is None
            hold(removed, "a member does not start", host.name)

    def _ask(self, who: str) -> None:
        """A client: asks whoever leads, also again, one number after the other."""
        command = (who, self.answered[who] + 1)
        again = command in self.watch.asked
        for name, parts in self.made.items():
            if parts.memory.proposer.is_leading and self.hosts[name].running and not (again and self.patient):
                self.watch.asked.add(command)
                if self.directly and parts.replica.takes_direct and self.rng.random() < self.directly:
                    self._ask_directly(command)
                else:
                    self.hosts[name].request(0, Asked(command))
        self.simulation.after(self.rng.randint(2, 2 * self.ask_ms) * MILLISECOND, self._ask, who)

    def _ask_directly(self, command: Command) -> None:
        for host in self.hosts.values():
            self.simulation.after(self.rng.randint(0, self.late_direct_us) * MICROSECOND, self._tell, (host, command))

    def _tell(self, arguments: tuple[Machine, Command]) -> None:
        host, command = arguments
        if host.running:
            host.request(0, Asked((DIRECT, command)))

    def run(self, ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Whether `until` came true in that time; it is asked now and then."""
        for _ in range(0, ms, 20):
            self.simulation.run(self.simulation.now + min(ms, 20) * MILLISECOND)
            if until is not None and until():
                return True
        return False

    def leader(self) -> str:
        best = [
            (parts.memory.proposer.ballot, name)
            for name, parts in self.made.items()
            if parts.memory.proposer.is_leading and self.hosts[name].running
        ]
        return max(best)[1] if best else ""

    def executed(self) -> dict[str, int]:
        """Of the members whose disks count."""
        members = [member.name for member in self.watch.membership.members]
        return {
            n: r.memory.decided.executed for n, r in self.made.items() if n in members and n not in self.watch.wiped
        }

    def serves_again(self) -> Callable[[], bool]:
        """A condition: every client has had an answer since now, and no replica is behind what was chosen by now."""
        answered, chosen = dict(self.answered), self.watch.prefix

        def reached() -> bool:
            served = all(number > answered[who] for who, number in self.answered.items())
            return served and min(self.executed().values()) >= chosen

        return reached

    def serves_again_but(self, *absent: str) -> Callable[[], bool]:
        """The same, without some that are down."""
        answered, chosen = dict(self.answered), self.watch.prefix

        def reached() -> bool:
            there = [slot for name, slot in self.executed().items() if name not in absent]
            return all(number > answered[who] for who, number in self.answered.items()) and min(there) >= chosen

        return reached

    # ------------------------------------------------------------------------------------------------------ changes
    def change(self, change: Change) -> None:
        """An operator asks whoever leads."""
        leader = self.leader()
        if leader:
            self.hosts[leader].request(0, Asked(change))

    def add(self, name: str, replaces: str = "") -> None:
        self.change(AddLearner(name, name, f"{name}:c", "", replaces))

    def take_in(self, name: str, replaces: str = "", ms: int = 10_000) -> bool:
        """An operator who asks again until it is done, as whoever led may lead no more."""
        for _ in range(0, ms, 500):
            membership = self.watch.membership
            if name in membership.voters and replaces not in membership.voters:
                return True
            self.add(name, replaces)
            self.run(500)
        return False

    # ------------------------------------------------------------------------------------------------------- faults
    def wipe(self, name: str, remember: bool = True) -> None:
        """A new disk. The watch holds the replica to silence from then on, unless it may still be taken for new."""
        host = self.hosts[name]
        host.stop(power_cut=True)
        assert host.disk is not None
        host.disk.wipe()
        self.watch.wipe(name, remember)

    def slow(self, name: str, slowness: int) -> None:
        disk = self.hosts[name].disk
        assert disk is not None
        disk.slowness = slowness

    def fill(self, name: str, full: bool) -> None:
        disk = self.hosts[name].disk
        assert disk is not None
        disk.full = full

    def cut(self, name: str, other: str, both: bool = True) -> None:
        self.simulation.network.cut(name, other)
        if both:
            self.simulation.network.cut(other, name)

    def mend(self, name: str, other: str) -> None:
        for source, target in ((name, other), (other, name)):
            if self.simulation.network.is_cut(source, target):
                self.simulation.network.heal(source, target)

    def heal(self) -> None:
        self.simulation.network.heal_all()
        for name, host in self.hosts.items():
            self.slow(name, 1)
            self.fill(name, False)
            host.resume()
            if not host.running:
                self._try(host)
