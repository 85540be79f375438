"""Applications, and brokers that host them, with one mistake each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.core.commands import Execute
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.outputs import Output
from tests.sessions.counting import Counting
from tests.sim.hosted_world import GROUP, World


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
        session = self.register.session(command.client, command.epoch)
        if session is not None:
            session.answers.clear()


@dataclass(frozen=True)
class HostedMutant:
    """`problem` is part of what is said of it."""

    mistake: str
    problem: str
    application: type[Counting] = Counting
    core: type[BrokerCore] = BrokerCore
    swarm: ClassVar[str] = "hosted applications"

    def seen(self, seed: int) -> str:
        found = _problem(seed, self.application, self.core)
        return found if self.problem in found else ""

    def sound(self, seed: int) -> str:
        return _problem(seed)


def _problem(seed: int, application: type[Counting] = Counting, core: type[BrokerCore] = BrokerCore) -> str:
    try:
        World(GROUP.draw(seed), application, core).play()
    except AssertionError as error:
        return str(error)
    return ""


MUTANTS = [
    HostedMutant("a state is not all of it", "states differ", Forgetful),
    HostedMutant("no answer is kept", "executed twice", core=KeepsNoAnswers),
]
