"""Runs one scenario: builds the machines, plans actions and faults, lets time pass, asks the checkers."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.broker.any_client import AnyClient
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Making, Told
from holdfast.errors import ScenarioError
from holdfast.kernel.application import Hosted
from holdfast.kernel.links import Role
from holdfast.kernel.node import InvariantBroken, Node
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.sim import latency, scenario
from holdfast.sim.clients import ScenarioClient
from holdfast.sim.digest import Digest
from holdfast.sim.disk import Disk
from holdfast.sim.light import SILENT_PINGS, LightClient
from holdfast.sim.machine import Machine
from holdfast.sim.operators import ScenarioOperator
from holdfast.sim.scenario import (
    Action,
    ClockJump,
    Cut,
    DiskFull,
    DiskSlow,
    Fault,
    Kill,
    Pause,
    PowerCut,
    Reset,
    Scenario,
    lost_by,
)
from holdfast.sim.scenario_file import check_scenario
from holdfast.sim.simulation import NO_STORM, RowSink, Simulation
from holdfast.sim.swarm import swarm_of, told_by
from holdfast.trace import schema
from holdfast.trace.checkers import Violation, Watch, make_checker

if TYPE_CHECKING:
    from random import Random

REPEATS_GROW = 3  # the longest pause between repetitions, in shortest ones
RESTART_AFTER = 1_000 * MILLISECOND  # of a machine that stopped by itself

NodeFactory = Callable[[Told, "Random", StoredStreams, Hosted | None], Node]
ClientFactory = Callable[[ClientSettings, "Random", StoredStreams], Node]


class Factories(msgspec.Struct, frozen=True):
    """What nodes are made with; tests put mutants in their place, and simulations and disks that watch them.
    `client` makes clients instead of what users run; `application` makes what brokers host, a new one for each life of
    each broker."""

    kit: BrokerKit = BrokerKit()
    node: NodeFactory | None = None  # instead of the scheme
    client: ClientFactory | None = None
    application: Callable[[], Hosted] | None = None
    simulation: type[Simulation] = Simulation
    disk: type[Disk] = Disk


class Outcome(msgspec.Struct, frozen=True):
    """What came of a run."""

    name: str
    seed: int
    violations: list[Violation]
    broken: str  # an invariant of a node's own, if one broke
    steps: int
    rows: int
    events_published: int
    events_delivered: int
    faults: int
    digest: str  # of the trace; equal digests are equal runs

    @property
    def clean(self) -> bool:
        return not self.violations and not self.broken

    @property
    def problem(self) -> str:
        """What is wrong first of all; empty if nothing is."""
        return self.broken or (str(self.violations[0]) if self.violations else "")


def run_scenario(
    wanted: Scenario,
    factories: Factories | None = None,
    sinks: Sequence[RowSink] = (),
    stop_at_violation: bool = True,
) -> Outcome:
    """Runs a scenario to its end, or to the first violation."""
    more = swarm_of(wanted.system).checkers
    watch = Watch(header_of(wanted), [make_checker(name, more) for name in wanted.checkers])
    digest = Digest()
    run = Run(wanted, factories or Factories(), [digest, watch, *sinks])
    broken = ""

    def violated() -> bool:
        return stop_at_violation and watch.found

    try:
        run.play(violated)
    except InvariantBroken as error:
        broken = str(error)
    except Exception as error:  # whatever a node raises is a bug to be found again by its seed
        broken = _describe(error)
    else:
        if not violated():
            watch.finish()
    summed = digest.finish()
    return Outcome(
        name=wanted.name,
        seed=wanted.seed,
        violations=watch.violations,
        broken=broken,
        steps=run.simulation.steps,
        rows=digest.rows,
        events_published=digest.by_kind.get(schema.Published, 0),
        events_delivered=digest.by_kind.get(schema.Delivered, 0),
        faults=run.faults,
        digest=summed,
    )


def measure_scenario(wanted: Scenario, sinks: Sequence[RowSink], clients_only: bool = True) -> Simulation:
    """Runs a scenario for what can be counted in it: no promise and no invariant is checked, and whatever a node raises
    is raised. `clients_only`: the sinks see what clients note, and faults; what brokers note costs most of a run."""
    run = Run(wanted, Factories(), sinks, checking=False, clients_only=clients_only)
    run.play(None)
    return run.simulation


def _describe(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"


def header_of(wanted: Scenario) -> schema.Header:
    """The header of a trace of this scenario."""
    return schema.Header(
        run=f"{wanted.name}/{wanted.seed}",
        system=wanted.system,
        seed=wanted.seed,
        promises=wanted.checkers,
        settings=_settings(wanted),
    )


def _settings(wanted: Scenario) -> dict[str, Any]:
    """What a checker has to know of a run to say what is promised."""
    said = swarm_of(wanted.system).header(wanted)
    said |= {"backlog_events": min(broker.backlog_events for broker in wanted.brokers)}
    goodbyes = [action.client for action in wanted.actions if isinstance(action, scenario.Close)]
    if goodbyes:
        said |= {"goodbyes": goodbyes}
    going = {operation.ends for operation in wanted.operations}
    if away := {*wanted.down, *lost_by(wanted.faults), *going} - {""}:
        # Whoever has no other broker waits for these, and rightly.
        homeless = [client.id for client in wanted.clients if set(client.brokers) <= away]
        said |= {"homeless": homeless}
    return said


class Run:
    """A scenario in the making."""

    def __init__(
        self,
        wanted: Scenario,
        factories: Factories,
        sinks: Sequence[RowSink],
        checking: bool = True,
        clients_only: bool = False,
    ) -> None:
        check_scenario(wanted, f"scenario {wanted.name}, seed {wanted.seed}")
        if wanted.application is not None and factories.application is None:
            problem = f"the brokers host {wanted.application.factory}, which nobody has imported"
            raise ScenarioError(problem, f"scenario {wanted.name}", "give what makes it, as `holdfast sim` does")
        self._wanted = wanted
        self._scheme = SCHEMES[wanted.system]
        self.faults = 0  # that began
        self._is_healed = False
        self._gone: set[str] = set()  # never to be started again
        self._machines: dict[str, Machine | LightClient] = {}
        self._programs: dict[str, ScenarioClient] = {}
        self._lying: Counter[tuple[type[Fault], str]] = Counter()  # faults of one kind that lie on a machine
        names = [broker.id for broker in wanted.brokers] + [client.id for client in wanted.clients]
        # No broker and no client can be called like that.
        operators = [f"operator:{number}" for number in range(1, len(wanted.operations) + 1)]
        network = wanted.network
        seeded = Simulation.rng_of(wanted.seed, "latency", 0)
        self.simulation = factories.simulation(
            self._scheme.catalogue.messages,
            wanted.seed,
            latency.build(network.latency, seeded, hosts=names + operators),
            network.adversary,
            network.bytes_per_second,
            sinks,
            checking,
            clients_only,
            NO_STORM if wanted.storm is None else (wanted.storm.steps, wanted.storm.sent_bytes),
            self._plan_restart,
            self._scheme.kind,
        )
        for broker in wanted.brokers:
            self._add_broker(broker, factories)
        for client in wanted.clients:
            self._add_client(client, factories)
        for action in wanted.actions:
            self.simulation.at(action.at_ms * MILLISECOND, self._act, action)
        for name, operation in zip(operators, wanted.operations, strict=True):
            self._add_operator(name, operation)
        for fault in wanted.faults:
            if fault.at_ms < wanted.safety_ms:
                self.simulation.at(fault.at_ms * MILLISECOND, self._begin, fault)

    def _add_broker(self, broker: scenario.Broker, factories: Factories) -> None:
        settings = BrokerSettings(
            broker.id,
            broker.durable,
            CoreLimits(
                sessions=broker.sessions,
                subscriptions_per_session=broker.subscriptions_per_session,
                backlog_events=broker.backlog_events,
                backlog_bytes=broker.backlog_bytes,
            ),
            DeskSettings(
                away_after=broker.away_ms * MILLISECOND,
                block_max=broker.block_ms * MILLISECOND,
                tick=broker.tick_ms * MILLISECOND,
                silent_after=broker.silent_ms * MILLISECOND,
                repeat_after=broker.repeat_ms * MILLISECOND,
                repeat_after_max=REPEATS_GROW * broker.repeat_ms * MILLISECOND,
            ),
            broker.snapshot_every,
            RetentionSettings(look_every=broker.retain_ms * MILLISECOND),
            application="" if self._wanted.application is None else self._wanted.application.name,
        )
        simulation = self.simulation
        disk = None
        if broker.durable:
            disk = factories.disk(
                self._scheme.catalogue.records, simulation.rng_for(f"disk {broker.id}", 0), broker.sync_us
            )
        told = told_by(self._wanted, settings)
        make_application = None if self._wanted.application is None else factories.application

        def make(rng: Random, streams: StoredStreams) -> Node:
            application = None if make_application is None else make_application()
            if factories.node is not None:
                return factories.node(told, rng, streams, application)
            return self._scheme.make_node(Making(told, rng, streams, application, factories.kit))

        machine = simulation.add_machine(broker.id, Role.BROKER, make, disk)
        self._machines[broker.id] = machine
        machine.set_pace(
            broker.service_us_per_turn * 1_000, broker.service_us_per_message * 1_000, broker.gather_us * 1_000
        )

    def _add_client(self, client: scenario.Client, factories: Factories) -> None:
        if client.light:
            self._machines[client.id] = LightClient(self.simulation, client)
            return
        settings = ClientSettings(
            client.id,
            client.brokers,
            resubscribe=client.resubscribe,
            publish_window=client.publish_window,
            batch_events=client.batch_events,
            ping_every=client.ping_ms * MILLISECOND,
            silent_after=SILENT_PINGS * client.ping_ms * MILLISECOND,
            pause_max=client.pause_ms_max * MILLISECOND,
            report_after=client.report_ms * MILLISECOND,
            listening=client.id,
        )
        make_client = factories.client or AnyClient
        program = ScenarioClient(self.simulation, client.consume_after_us)
        self._programs[client.id] = program
        machine = self.simulation.add_machine(
            client.id,
            Role.CLIENT,
            lambda rng, streams: make_client(settings, rng, streams),
            program=program,
        )
        self._machines[client.id] = machine
        machine.set_pace(0, 0, client.gather_us * 1_000)

    def _add_operator(self, name: str, operation: scenario.Operate) -> None:
        wanted = self._wanted
        brokers = [broker.id for broker in wanted.brokers]
        until = (wanted.safety_ms + scenario.OPERATORS_PATIENCE_MS) * MILLISECOND
        program = ScenarioOperator(self.simulation, name, operation, brokers, until, self._end_for_good)
        self.simulation.at(operation.at_ms * MILLISECOND, program.begin, None)

    # -------------------------------------------------------------------------------------------------------- phases
    def play(self, stop: Callable[[], bool] | None) -> None:
        simulation, wanted = self.simulation, self._wanted
        late = {broker.id: broker.starts_ms for broker in wanted.brokers if broker.starts_ms}
        for name, machine in self._machines.items():
            if name in late:
                simulation.fault(name, "absent")
                simulation.at(late[name] * MILLISECOND, self._start, machine)
            else:
                machine.start()
        simulation.run(wanted.safety_ms * MILLISECOND, stop)
        if stop is not None and stop():
            return
        self._heal_everything()
        simulation.run((wanted.safety_ms + wanted.liveness_ms) * MILLISECOND, stop)

    def _heal_everything(self) -> None:
        simulation = self.simulation
        simulation.network.heal_all()
        self._is_healed = True
        for machine in self._machines.values():
            if machine.disk is not None:
                machine.disk.fill(False)
                machine.disk.slow_down(1)
            machine.resume()
            self._start(machine)
        simulation.fault("everything", "healed")
        for name in self._wanted.down:
            simulation.fault(name, "crashed")
            if self._machines[name].running:
                self._machines[name].stop(power_cut=False)

    def _act(self, action: Action) -> None:
        machine = self._machines[action.client]
        if isinstance(machine, LightClient):
            machine.do(action)
        else:
            self._programs[action.client].do(machine, action)

    def _start(self, machine: Machine | LightClient) -> None:
        stays_down = (self._is_healed and machine.name in self._wanted.down) or machine.name in self._gone
        if not machine.running and not stays_down:
            self.simulation.fault(machine.name, "up")
            machine.start()

    def _plan_restart(self, machine: Machine) -> None:
        self.simulation.after(RESTART_AFTER, self._restart, (machine, machine.life))

    def _restart(self, arguments: tuple[Machine, int]) -> None:
        """What a supervisor does: starts again what stopped by itself, once its disk has room."""
        machine, life = arguments
        if machine.life != life:
            return
        if machine.disk is not None and machine.disk.full:
            self._plan_restart(machine)
        else:
            self._start(machine)

    # -------------------------------------------------------------------------------------------------------- faults
    def _begin(self, fault: Fault) -> None:
        simulation = self.simulation
        note = simulation.fault
        end_ms = min(fault.at_ms + fault.for_ms, self._wanted.safety_ms)
        if isinstance(fault, Cut):
            self.faults += 1
            for source, target in _ways(fault):
                note(f"{source}>{target}", "cut")
                simulation.network.cut(source, target)
        elif isinstance(fault, Reset):
            self.faults += 1
            way = f"{fault.source}>{fault.target}"
            note(way, "reset")
            simulation.network.reset(self._machines[fault.source], self._machines[fault.target])
            note(way, "healed")
            return
        else:
            machine = self._machines[fault.host]
            for_ever = isinstance(fault, Kill | PowerCut) and fault.for_ever
            if isinstance(fault, Kill | PowerCut | Pause) and not machine.running and not for_ever:
                return
            self._lying[type(fault), machine.name] += 1
            self.faults += 1
            match fault:
                case Kill() | PowerCut():
                    note(machine.name, "crashed")
                    machine.stop(power_cut=isinstance(fault, PowerCut))
                    if isinstance(fault, PowerCut) and fault.wipe and machine.disk is not None:
                        note(machine.name, "wiped")
                        machine.disk.wipe()
                    if for_ever:
                        self._give_up(machine.name)
                        return
                case Pause():
                    note(machine.name, "paused")
                    machine.pause()
                case DiskFull():
                    note(machine.name, "disk full")
                    if machine.disk is not None:
                        machine.disk.fill(True)
                case DiskSlow():
                    note(machine.name, "disk slow")
                    if machine.disk is not None:
                        machine.disk.slow_down(fault.times)
                case ClockJump():
                    note(machine.name, f"clock {fault.by_ms:+} ms")
                    machine.jump(fault.by_ms * MILLISECOND)
        simulation.at(end_ms * MILLISECOND, self._end, fault)

    def _give_up(self, name: str) -> None:
        """It is never started again."""
        self._gone.add(name)
        self.simulation.fault(name, "gone")

    def _end_for_good(self, name: str) -> None:
        """What an operator does with a broker that is needed no more."""
        machine = self._machines[name]
        if machine.running:
            self.simulation.fault(name, "crashed")
            machine.stop(power_cut=False)
        self._give_up(name)

    def _end(self, fault: Fault) -> None:
        simulation = self.simulation
        note = simulation.fault
        if isinstance(fault, Reset):
            return  # it was over at once
        if isinstance(fault, Cut):
            for source, target in _ways(fault):
                simulation.network.heal(source, target)
                if not simulation.network.is_cut(source, target):
                    note(f"{source}>{target}", "healed")
            return
        machine = self._machines[fault.host]
        self._lying[type(fault), machine.name] -= 1
        if isinstance(fault, Kill | PowerCut):
            self._start(machine)
            return
        if isinstance(fault, ClockJump):
            machine.jump(-fault.by_ms * MILLISECOND)
        elif self._lying[type(fault), machine.name]:
            return  # another of the kind goes on
        elif isinstance(fault, Pause):
            machine.resume()
        elif machine.disk is not None:
            if isinstance(fault, DiskFull):
                machine.disk.fill(False)
            else:
                machine.disk.slow_down(1)
        if machine.running:
            note(machine.name, "healed")


def _ways(cut: Cut) -> list[tuple[str, str]]:
    there, back = (cut.source, cut.target), (cut.target, cut.source)
    return [there, back] if cut.both else [there]
