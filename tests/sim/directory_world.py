"""Groups that host the directory: runs drawn from seeds, in which clients propose maps against each other (D0-A10)."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from random import Random

import msgspec
from msgspec.structs import replace

from holdfast.apps.directory import Directory
from holdfast.apps.directory import messages as said
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
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Ask, HostedApplication, Scenario
from holdfast.trace.schema import Control, Row
from tests.apps.directory.test_application import later

APPLICATION = HostedApplication(factory="holdfast.apps.directory:Directory")
GROUP = replace(group_shape(name="directory"), application=APPLICATION)
ASKS = 25
STEP = 1_000

_answer = msgspec.json.Decoder(said.Answer).decode


def with_proposals(scenario: Scenario) -> Scenario:
    """The same scenario, whose clients propose: later ones mostly from later maps, several from one, some again."""
    rng = Random(f"directory/{scenario.seed}")
    clients = [client.id for client in scenario.clients if not client.light]
    rest = [action for action in scenario.actions if not isinstance(action, Ask)]
    if not clients:
        return replace(scenario, actions=rest)
    asks, made = list[Ask](), list[str]()
    for at in sorted(rng.randint(0, scenario.safety_ms) for _ in range(ASKS)):
        round_ = max(0, len(made) // 3 - rng.randint(0, 2))
        before = later(round_ * STEP, f"b{rng.randint(1, 2)}")
        after = later((round_ + 1) * STEP, f"b{rng.randint(1, 2)}")
        proposal = said.Propose(said.VERSION, "net", before.number, before.digest, after)
        again = made and rng.random() < 0.2
        made.append(rng.choice(made) if again else msgspec.json.encode(proposal).decode())
        asks.append(Ask(at_ms=at, client=rng.choice(clients), request=made[-1]))
    return replace(scenario, actions=sorted([*rest, *asks], key=lambda action: action.at_ms))


class World:
    """One run: the states of replicas by position, and what was accepted."""

    def __init__(self, seed: int, application: type[Directory] = Directory) -> None:
        self.wanted = with_proposals(GROUP.draw(seed))
        self.differing: list[int] = []  # commands after which two replicas had different states
        self.accepted: dict[tuple[int, str], int] = {}  # (number, digest) of a map → the number that it was made from
        self.refused = 0
        self.restored = 0
        self.leaders = 0
        self._application = application
        self._states: dict[int, bytes] = {}

    def play(self) -> None:
        outcome = run_scenario(self.wanted, Factories(node=self._node, application=self._make), sinks=[self])
        assert outcome.clean, f"seed {self.wanted.seed}: {outcome.broken or outcome.violations[0]}"
        assert not self.differing, f"seed {self.wanted.seed}: states differ after {self.differing}"
        assert not self.forks(), f"seed {self.wanted.seed}: {self.forks()}"

    def forks(self) -> list[str]:
        """Two maps that were both made from what was before the first of them, whichever replica took them in."""
        history = sorted((number, before, digest) for (number, digest), before in self.accepted.items())
        return [
            f"map {later_} was made from {before}, beside map {number}"
            for (number, _, _), (later_, before, _) in pairwise(history)
            if before < number
        ]

    def see(self, row: Row) -> None:
        self.leaders += isinstance(row, Control) and row.what == "leader"

    def _make(self) -> Hosted:
        world = self

        class Watched(self._application):  # type: ignore[name-defined, misc]
            def execute(self, request: bytes) -> bytes:
                state = self.get_state()
                answer: bytes = super().execute(request)
                found, asked = _answer(answer), msgspec.json.decode(request, type=said.Propose)
                if self.get_state() != state:
                    key = (asked.after.number, asked.after.digest)
                    world.accepted.setdefault(key, asked.before_number)
                world.refused += isinstance(found, said.Other)
                return answer

            def set_state(self, state: bytes) -> None:
                super().set_state(state)
                world.restored += 1

        return Watched()

    def _node(self, told: Told, rng: Random, streams: StoredStreams, application: Hosted | None) -> Node:
        world = self

        class Compared(BrokerCore):
            def apply(self, number: int, wall: int, command: Command, known: Known | None = None) -> list[Output]:
                outputs = super().apply(number, wall, command, known)
                state = hashlib.sha256(repr(self.hosting.get_state()).encode()).digest()
                if world._states.setdefault(number, state) != state:
                    world.differing.append(number)
                return outputs

        return SCHEMES[self.wanted.system].make_node(Making(told, rng, streams, application, BrokerKit(core=Compared)))
