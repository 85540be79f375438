"""Brokers that host an application: runs drawn from seeds, in which states are compared and executions counted."""

from __future__ import annotations

import hashlib
from random import Random

from msgspec.structs import replace

from holdfast.broker.kit import BrokerKit
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Making, Told
from holdfast.kernel.application import Hosted
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.judgement import Known
from holdfast.protocols.core.outputs import Output
from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import HostedApplication, Scenario
from holdfast.trace.schema import Control, Fault, Published, Row
from tests.sessions.counting import Counting

APPLICATION = HostedApplication(factory="tests.sessions.counting:Counting", topics=("count", "tenth"))
SINGLE = OneBrokerShape(application=APPLICATION, name="hosting-broker")
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
        factories = Factories(node=self._node, application=self._make)
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

    def _node(self, told: Told, rng: Random, streams: StoredStreams, application: Hosted | None) -> Node:
        world = self

        class Compared(self._core):  # type: ignore[name-defined, misc]
            def apply(self, number: int, wall: int, command: Command, known: Known | None = None) -> list[Output]:
                outputs: list[Output] = super().apply(number, wall, command, known)
                world.cores[told.broker.name] = self
                state = hashlib.sha256(repr(self.hosting.get_state()).encode()).digest()
                if world._states.setdefault(number, state) != state:
                    world.differing.append(number)
                world.compared += 1
                return outputs

        scheme = SCHEMES[self.wanted.system]
        kit = (
            BrokerKit(core=Compared) if scheme.is_one_broker else BrokerKit()
        )  # one broker may forget, and go on otherwise
        return scheme.make_node(Making(told, rng, streams, application, kit))
