"""Groups whose replicas count viewers: runs drawn from seeds, in which all states are compared at equal positions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from hashlib import sha256
from random import Random

from msgspec.structs import replace

from holdfast.apps.zapviewers.generator import ZapSettings, generate
from holdfast.apps.zapviewers.viewership import TOP, ZAP, Viewership
from holdfast.broker.kit import BrokerKit
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Making, Told
from holdfast.kernel.application import Derived, Hosted
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams
from holdfast.model.values import Value
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.hosting import PUBLISHER
from holdfast.protocols.core.judgement import Known
from holdfast.protocols.core.outputs import Logged, Output
from holdfast.schemes.paxos.draw import group_shape
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import HostedApplication, Publish, Scenario, ScenarioEvent
from holdfast.trace.schema import Control, Row

EVERY_MS = 100
CHANNELS = ("A", "B", "C", "D", "E", "F")  # few, so that many have equally many viewers
FACTORY = "holdfast.apps.zapviewers.viewership:Viewership"
APPLICATION = HostedApplication(factory=FACTORY, settings={"every_ms": EVERY_MS}, topics=(ZAP,))
GROUP = replace(group_shape(name="zapviewers"), application=APPLICATION)
NONSENSE = ("", "no line", "2026-02-30,20:00:00,10.0.0.1,A,B", "2026-01-01,20:00:00,10.0.0.1,volume 101", "ü" * 40)


def with_lines(scenario: Scenario) -> Scenario:
    """The same scenario, with lines of few boxes in the events that the application sees, and some that are none."""
    rng = Random(f"lines/{scenario.seed}")
    settings = ZapSettings(seed=scenario.seed, boxes=40, rate=0.4, channels=CHANNELS)
    lines = (line for turn in generate(settings) for line in turn.text.decode().splitlines())

    def filled(event: ScenarioEvent) -> ScenarioEvent:
        if event.topic != ZAP:
            return event
        some = list(itertools.islice(lines, rng.randint(1, 6)))
        if rng.random() < 0.3:
            some.insert(rng.randint(0, len(some)), rng.choice(NONSENSE))
        return replace(event, payload_text="\n".join(some), payload_bytes=0)

    actions = [
        replace(action, events=[filled(event) for event in action.events]) if isinstance(action, Publish) else action
        for action in scenario.actions
    ]
    return replace(scenario, actions=actions)


class World:
    """One run: what each replica's viewership was after each event, and what one says that is fed with the log."""

    def __init__(self, wanted: Scenario, viewership: type[Viewership], reference: type[Viewership]) -> None:
        self.wanted = wanted
        self.differing: list[int] = []  # events after which two replicas had different states
        self.wrong: list[int] = []  # and those after which they were not the reference's
        self.compared = 0
        self.restored = 0  # states that were taken over
        self.leaders = 0
        self.top_lists = 0
        self._viewership = viewership
        self._reference = reference(every_ms=EVERY_MS)
        self._head = 0  # up to which the reference was fed
        self._due: list[Derived] = []  # what the reference derived, and the log has to have next
        self._states: dict[int, str] = {}

    def play(self) -> None:
        factories = Factories(node=self._node, application=self._make)
        outcome = run_scenario(self.wanted, factories, sinks=[self])
        assert outcome.clean, f"seed {self.wanted.seed}: {outcome.broken or outcome.violations[0]}"
        assert not self.differing, f"seed {self.wanted.seed}: replicas differ after {self.differing}"
        assert not self.wrong, f"seed {self.wanted.seed}: the reference differs after {self.wrong}"

    @property
    def malformed(self) -> int:
        return self._reference.audience.malformed

    def see(self, row: Row) -> None:
        self.leaders += isinstance(row, Control) and row.what == "leader"

    def compare(self, position: int, state: bytes) -> None:
        digest = sha256(state).hexdigest()
        self.compared += 1
        if self._states.setdefault(position, digest) != digest:
            self.differing.append(position)

    def feed(self, wall: int, logged: Logged) -> None:
        """What the log has, in its order, to the reference; whichever replica is the first to have it."""
        for position, event in enumerate(logged.batch.events, logged.first):
            if position <= self._head:
                continue
            assert position == self._head + 1
            self._head = position
            if event.publisher == PUBLISHER:
                made = Derived(event.topic, event.attributes, event.payload)
                if not self._due or made != self._due.pop(0):
                    self.wrong.append(position)
                self.top_lists += event.topic == TOP
            elif event.topic == ZAP:
                self._due += self._reference.observe(position, wall, event.topic, event.attributes, event.payload)
                if sha256(self._reference.get_state()).hexdigest() != self._states.get(position):
                    self.wrong.append(position)

    def _make(self) -> Hosted:
        world = self

        class Watched(self._viewership):  # type: ignore[name-defined, misc]
            def observe(
                self, number: int, wall: int, topic: str, attributes: Mapping[str, Value], payload: bytes
            ) -> Sequence[Derived]:
                derived: Sequence[Derived] = super().observe(number, wall, topic, attributes, payload)
                world.compare(number, self.get_state())
                return derived

            def set_state(self, state: bytes) -> None:
                super().set_state(state)
                world.restored += 1

        return Watched(every_ms=EVERY_MS)

    def _node(self, told: Told, rng: Random, streams: StoredStreams, application: Hosted | None) -> Node:
        world = self

        class Logging(BrokerCore):
            def apply(self, number: int, wall: int, command: Command, known: Known | None = None) -> list[Output]:
                outputs = super().apply(number, wall, command, known)
                for output in outputs:
                    if isinstance(output, Logged):
                        world.feed(wall, output)
                return outputs

        return SCHEMES[self.wanted.system].make_node(Making(told, rng, streams, application, BrokerKit(core=Logging)))


def world_of(seed: int, viewership: type[Viewership] = Viewership, reference: type[Viewership] = Viewership) -> World:
    return World(with_lines(GROUP.draw(seed)), viewership, reference)
