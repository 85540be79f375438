"""A group of replicas around a very small application, under faults drawn from a seed, and what must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

import msgspec

from holdfast.kernel.inputs import Requested
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.settings import Member, PaxosSettings, Protocol
from holdfast.sim.disk import Disk
from holdfast.sim.host import Host
from holdfast.sim.latency import Uniform, build
from holdfast.sim.network import Adversary
from holdfast.sim.simulation import Simulation

Command = tuple[str, int]  # who, and its number


class Ledger:
    """An application: takes each client's numbers once and in order, and remembers all it took."""

    def __init__(self) -> None:
        self.number = 0
        self.taken: list[Command] = []
        self.last: dict[str, int] = {}

    def apply(self, number: int, wall: int, command: Command) -> list[Command]:
        assert number == self.number + 1
        self.number = number
        who, what = command
        if what != self.last.get(who, 0) + 1:
            return [(who, self.last.get(who, 0))] if what <= self.last.get(who, 0) else []
        self.last[who] = what
        self.taken.append(command)
        return [command]

    def get_state(self) -> bytes:
        return msgspec.msgpack.encode([self.number, self.taken, self.last])

    def set_state(self, state: bytes) -> None:
        number, taken, last = msgspec.msgpack.decode(state)
        self.number, self.taken, self.last = number, [tuple(command) for command in taken], last


class Door:
    """Lets commands in, and writes down what came of them at the leader."""

    name: ClassVar[str] = "door"

    def __init__(self, replica: Replica, answered: Callable[[Command], None]) -> None:
        self._replica = replica
        self._answered = answered
        replica.applied = self._on_applied

    def on_requested(self, requested: Requested, out: Outbox) -> None:
        self._replica.submit(requested.command, out)

    def _on_applied(self, outputs: list[Command], out: Outbox) -> None:
        if self._replica.is_leading:
            for output in outputs:
                self._answered(output)


@dataclass
class Group:
    """One run."""

    seed: int
    members: int = 3
    protocol: Protocol = Protocol.BATCH
    make_replica: Callable[..., Replica] = Replica
    adversary: Adversary | None = None
    answered: dict[str, int] = field(default_factory=dict)
    applications: dict[str, Ledger] = field(default_factory=dict)
    replicas: dict[str, Replica] = field(default_factory=dict)
    chosen: dict[int, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(f"group/{self.seed}")
        delays = build(Uniform(low_us=50, high_us=3_000), Random(self.seed))
        self.simulation = Simulation(self.seed, delays, self.adversary, checking=True)
        names = [f"r{n}" for n in range(self.members)]
        self.settings = {
            name: PaxosSettings(
                name,
                tuple(Member(other, other, other) for other in names),
                self.protocol,
                trim_every=self.rng.choice([5, 50, 2_000]),
                trim_keep=self.rng.choice([1, 20]),
            )
            for name in names
        }
        for name in names:
            disk = Disk(Random(f"{self.seed}/{name}"), (100, self.rng.choice([500, 5_000, 30_000])))
            self.simulation.add_host(name, Role.BROKER, self._factory(name), disk)
        self.simulation.when_stopped = self._restart_later
        self.sent: dict[str, int] = {}

    def _factory(self, name: str) -> Callable[[Random, StoredStreams], Any]:
        def make(rng: Random, streams: StoredStreams) -> Assembly:
            application = self.applications[name] = Ledger()
            replica = self.replicas[name] = self.make_replica(
                self.settings[name], application, msgspec.msgpack.encode, _decode, rng
            )
            replica.recover(streams)
            self._watch(replica)
            return Assembly([replica, Door(replica, self._on_answered)])

        return make

    def _watch(self, replica: Replica) -> None:
        """Every value that any replica takes for decided is the one value of its slot."""
        decided = replica.decided
        decide = decided.decide

        def watched(slot: int, value: Any) -> None:
            if slot > decided.executed and self.chosen.setdefault(slot, bytes(value)) != bytes(value):
                self.problems.append(f"slot {slot} has two values")
            decide(slot, value)

        decided.decide = watched  # type: ignore[method-assign]

    def _on_answered(self, command: Command) -> None:
        who, what = command
        self.answered[who] = max(self.answered.get(who, 0), what)

    def _restart_later(self, host: Host) -> None:
        self.simulation.after(300 * MILLISECOND, self._start, (host, host.life))

    def _start(self, arguments: tuple[Host, int]) -> None:
        host, life = arguments
        if host.life == life and not host.running:
            host.start()

    # ---------------------------------------------------------------------------------------------------------- play
    def start(self) -> None:
        for host in self.simulation.hosts.values():
            host.start()
        for who in ("a", "b", "c"):
            self.sent[who] = 0
            self.simulation.after(self.rng.randint(0, 500) * MILLISECOND, self._ask, who)

    def _ask(self, who: str) -> None:
        """A client: asks whoever leads, also again, one number after the other."""
        number = self.answered.get(who, 0) + 1
        if self.sent[who] < 10_000:
            leaders = [n for n, r in self.replicas.items() if r.is_leading and self.simulation.hosts[n].running]
            for name in leaders:
                self.sent[who] += 1
                self.simulation.hosts[name].request(0, (who, number))
        self.simulation.after(self.rng.randint(5, 80) * MILLISECOND, self._ask, who)

    def run(self, ms: int) -> None:
        self.simulation.run(self.simulation.now + ms * MILLISECOND, lambda: bool(self.problems))

    def leader(self) -> str:
        best = [
            (replica.proposer.ballot, name)
            for name, replica in self.replicas.items()
            if replica.is_leading and self.simulation.hosts[name].running
        ]
        return max(best)[1] if best else ""

    def misfortune(self) -> None:
        """Something happens to someone, and ends after a while."""
        simulation, rng = self.simulation, self.rng
        names = list(simulation.hosts)
        name = self.leader() if rng.random() < 0.4 and self.leader() else rng.choice(names)
        host, lasts = simulation.hosts[name], rng.randint(50, 2_000) * MILLISECOND
        match rng.choice(["kill", "power", "blackout", "pause", "cut", "one way", "slow"]):
            case "blackout":
                for each in simulation.hosts.values():
                    if each.running:
                        each.stop(power_cut=True)
                        simulation.after(rng.randint(50, 500) * MILLISECOND, self._start, (each, each.life))
            case "kill" | "power" as how if host.running:
                host.stop(power_cut=how == "power")
                simulation.after(lasts, self._start, (host, host.life))
            case "pause" if host.running:
                host.pause()
                simulation.after(lasts, lambda _: host.resume(), None)
            case "cut" | "one way" as how:
                others = [other for other in names if other != name]
                for other in others if rng.random() < 0.5 else [rng.choice(others)]:
                    simulation.network.cut(name, other)
                    if how == "cut":
                        simulation.network.cut(other, name)
                    simulation.after(lasts, self._heal, (name, other))
            case "slow" if host.disk is not None:
                host.disk.slowness = rng.choice([5, 50])
                simulation.after(lasts, self._quicken, host)

    def _heal(self, pair: tuple[str, str]) -> None:
        for source, target in (pair, pair[::-1]):
            if self.simulation.network.is_cut(source, target):
                self.simulation.network.heal(source, target)

    def _quicken(self, host: Host) -> None:
        if host.disk is not None:
            host.disk.slowness = 1

    def heal(self) -> None:
        self.simulation.network.heal_all()
        for host in self.simulation.hosts.values():
            self._quicken(host)
            host.resume()
            if not host.running:
                host.start()

    # --------------------------------------------------------------------------------------------------------- checks
    def check(self) -> list[str]:
        """What is wrong: one history, of which every replica has a beginning; nothing answered is missing."""
        wrong = list(self.problems)
        histories = sorted((app.taken for app in self.applications.values()), key=len)
        longest = histories[-1]
        for name, app in self.applications.items():
            if app.taken != longest[: len(app.taken)]:
                wrong.append(f"{name} has another history")
        for who, number in self.answered.items():
            if [what for client, what in longest if client == who][:number] != list(range(1, number + 1)):
                wrong.append(f"what {who} was answered is not in the history")
        return wrong


def _decode(raw: msgspec.Raw) -> Command:
    who, what = msgspec.msgpack.decode(raw)
    return who, what


def play(seed: int, **options: Any) -> Group:
    """Some seconds of misfortunes, then peace: everyone has to be equal and alive."""
    rng = Random(seed)
    adversary = Adversary(loss=0.05, duplication=0.05, reordering=0.1) if rng.random() < 0.4 else None
    group = Group(seed, rng.choice([3, 3, 5, 7]), rng.choice(list(Protocol)), adversary=adversary, **options)
    group.start()
    group.run(1_500)
    for _ in range(rng.randint(3, 12)):
        group.misfortune()
        group.run(rng.randint(20, 600))
    group.heal()
    before = dict(group.answered)
    group.run(4_000)
    if not group.problems:
        for who in group.sent:
            if group.answered.get(who, 0) <= before.get(who, 0):
                group.problems.append(f"{who} is not served any more")
        executed = {replica.decided.executed for replica in group.replicas.values()}
        if max(executed) - min(executed) > 50:
            group.problems.append(f"someone stays behind: {sorted(executed)}")
    return group


__all__ = ["SECOND", "Group", "Ledger", "play"]
