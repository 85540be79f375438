"""Brokers that host an application, under faults: replicas have equal states, and nothing is executed twice."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from msgspec.structs import replace

from holdfast.broker.assembly import BrokerSettings, make_broker, make_replica
from holdfast.kernel.application import Hosted
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.sessions.commands import Command, Execute
from holdfast.protocols.sessions.core import BrokerCore
from holdfast.protocols.sessions.outputs import Output
from holdfast.sim.draw import Shape, draw_scenario, group_shape
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Application, Scenario
from holdfast.trace.schema import Control, Fault, Published, Row
from tests.sessions.counting import Counting

SEEDS = (range(1, 41), pytest.param(range(41, 81), marks=pytest.mark.long))
MUTANT_SEEDS = 40
APPLICATION = Application(factory="tests.sessions.counting:Counting", topics=("count", "tenth"))
SINGLE = Shape(application=APPLICATION, name="hosting-broker")
GROUP = replace(group_shape(name="hosting-group"), application=APPLICATION)


class World:
    """What one run leaves: the states of applications by position, and what was executed more than once."""

    def __init__(
        self, wanted: Scenario, application: type[Counting] = Counting, core: type[BrokerCore] = BrokerCore
    ) -> None:
        self.wanted = wanted
        self.differing: list[int] = []  # commands after which two replicas had different states
        self.doubled: list[str] = []
        self.compared = 0
        self.executed = 0
        self.made = 0
        self.waiting: set[tuple[str, int]] = set()
        self.cores: dict[str, BrokerCore] = {}
        self._states: dict[int, bytes] = {}
        self._application = application
        self._core = core

    def play(self) -> None:
        factories = Factories(broker=make_broker, replica=self._replica, application=self._make)
        outcome = run_scenario(self.wanted, factories, sinks=[self])
        assert outcome.clean, f"seed {self.wanted.seed}: {outcome.broken or outcome.violations[0]}"
        assert not self.doubled, f"seed {self.wanted.seed}: executed twice: {self.doubled}"
        assert not self.differing, f"seed {self.wanted.seed}: states differ after {self.differing}"
        assert not self.waiting, f"seed {self.wanted.seed}: never answered: {self.waiting}"

    def see(self, row: Row) -> None:
        match row:
            case Published(derived=True):
                self.made += 1
            case Fault(state="crashed"):
                self.waiting = {asked for asked in self.waiting if asked[0] != row.component}
            case Control(what="asked"):
                self.waiting.add((row.detail["client"], row.detail["number"]))
            case Control(what="answered"):
                self.waiting.discard((row.detail["client"], row.detail["number"]))

    def _make(self) -> Hosted:
        world = self

        class Watched(self._application):  # type: ignore[name-defined, misc]
            def execute(self, request: bytes) -> bytes:
                answer: bytes = super().execute(request)
                world.executed += 1
                world.doubled += [text for text, count in self.executed.items() if count > 1]
                return answer

        return Watched()

    def _replica(
        self, settings: BrokerSettings, group: PaxosSettings, rng: Random, streams: StoredStreams, application: Hosted
    ) -> Assembly:
        world = self

        class Compared(self._core):  # type: ignore[name-defined, misc]
            def apply(self, number: int, wall: int, command: Command) -> list[Output]:
                outputs: list[Output] = super().apply(number, wall, command)
                world.cores[group.name] = self
                state = hashlib.sha256(repr(self.hosting.get_state()).encode()).digest()
                if world._states.setdefault(number, state) != state:
                    world.differing.append(number)
                world.compared += 1
                return outputs

        return make_replica(settings, group, rng, streams, core_type=Compared, application=application)


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_broker_that_hosts_an_application_keeps_its_promises(seeds: range) -> None:
    executed = made = 0
    for seed in seeds:
        world = World(draw_scenario(seed, SINGLE))
        world.play()
        executed, made = executed + world.executed, made + world.made
    assert executed > 2 * len(seeds)
    assert made > len(seeds)


@pytest.mark.parametrize("seeds", SEEDS)
def test_replicas_have_equal_application_states_at_equal_positions(seeds: range) -> None:
    """D4-C5: also after snapshots, and when leaders crash."""
    executed = made = compared = 0
    for seed in seeds:
        world = World(draw_scenario(seed, GROUP))
        world.play()
        numbers = {name: core.number for name, core in world.cores.items()}
        states = {numbers[name]: core.get_state() for name, core in world.cores.items()}
        assert all(core.get_state() == states[numbers[name]] for name, core in world.cores.items())
        executed, made, compared = executed + world.executed, made + world.made, compared + world.compared
    assert executed > 2 * len(seeds)
    assert made > len(seeds)
    assert compared > 100 * len(seeds)


class Forgetful(Counting):
    """Its state is not all of its state."""

    def get_state(self) -> bytes:
        count, self.count = self.count, 0
        state = super().get_state()
        self.count = count
        return state


class KeepsNoAnswers(BrokerCore):
    """Executes what comes again once more."""

    def _execute(self, command: Execute, outputs: list[Output]) -> None:
        super()._execute(command, outputs)
        session = self.session(command.client, command.epoch)
        if session is not None:
            session.answers.clear()


@pytest.mark.parametrize(
    ("application", "core", "problem"),
    [
        (Forgetful, BrokerCore, "states differ"),
        (Counting, KeepsNoAnswers, "executed twice"),
    ],
)
def test_a_mistake_is_seen(application: type[Counting], core: type[BrokerCore], problem: str) -> None:
    """What the tests above look at is able to fail."""
    found = []
    for seed in range(1, MUTANT_SEEDS + 1):
        try:
            World(draw_scenario(seed, GROUP), application, core).play()
        except AssertionError as error:
            found.append(str(error))
            if problem in found[-1]:
                return
    raise AssertionError(f"not seen; found were {found}")
