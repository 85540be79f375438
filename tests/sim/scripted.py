"""Tiny nodes that do what a test tells them, and a world for them to live in.

A scripted node is told what to do by requests whose command is a function of the outbox, and by reactions to types of
inputs. It writes down every turn. The messages are those of the catalogue that carry a number and a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar

from holdfast.kernel.inputs import Input, LinkUp, Received, Requested
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.core.commands import CoreState
from holdfast.protocols.sessions.messages import Subscribe
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from holdfast.sim import latency
from holdfast.sim.disk import Disk
from holdfast.sim.machine import Machine
from holdfast.sim.network import Adversary, Delays
from holdfast.sim.simulation import Simulation
from holdfast.trace.schema import Row

Do = Callable[[Outbox], None]
React = Callable[[Any, Outbox], None]

DELAY = MILLISECOND  # of every message, unless a test says otherwise
CONSTANT = latency.Constant(delay_us=1_000)

_T = TypeVar("_T")


def message(number: int, padding: int = 0) -> Message:
    return Subscribe(number, "x" * padding)


def record(number: int) -> Record:
    return CoreState(number, b"")


class Turn:
    """What a node was handed at once."""

    def __init__(self, time: int, life: int, inputs: list[Input]) -> None:
        self.time = time
        self.life = life
        self.inputs = inputs


class ScriptedNode:
    def __init__(self, place: Place, streams: StoredStreams) -> None:
        self._place = place
        self.streams = {name: [number_of(r) for r in records] for name, records in streams.items()}

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        place = self._place
        place.turns.append(Turn(out.now, place.host.life, list(inputs)))
        for event in inputs:
            if isinstance(event, Requested):
                event.command(out)
            react = place.reactions.get(type(event))
            if react is not None:
                react(event, out)

    def check_invariants(self) -> None:
        pass


def number_of(thing: Message | Record) -> int:
    if isinstance(thing, CoreState):
        return thing.number
    assert isinstance(thing, Subscribe)
    return thing.subscription


class Place:
    """A host, what its nodes do in all their lives, and what happened to them."""

    host: Machine

    def __init__(self, reactions: Mapping[type[Input], React]) -> None:
        self.reactions = dict(reactions)
        self.turns: list[Turn] = []
        self.nodes: list[ScriptedNode] = []

    def make(self, rng: Random, streams: StoredStreams) -> ScriptedNode:
        self.nodes.append(ScriptedNode(self, streams))
        return self.nodes[-1]

    def do(self, what: Do) -> None:
        self.host.request(0, what)

    def got(self, kind: type[_T], life: int | None = None) -> list[_T]:
        """The inputs of a type, in all lives or in one."""
        return [
            event
            for turn in self.turns
            if life in (None, turn.life)
            for event in turn.inputs
            if isinstance(event, kind)
        ]

    def times(self, kind: type[Input]) -> list[int]:
        return [turn.time for turn in self.turns for event in turn.inputs if isinstance(event, kind)]

    def numbers(self, link: int | None = None) -> list[int]:
        """The numbers of all messages received, on one link or on any."""
        return [number_of(m) for event in self.got(Received) if link in (None, event.link) for m in event.messages]

    @property
    def stored(self) -> dict[str, list[int]]:
        """What the node of this life found on its disk."""
        return self.nodes[-1].streams


class Rows:
    """Keeps every row."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def see(self, row: Row) -> None:
        self.rows.append(row)

    def of(self, kind: type[_T]) -> list[_T]:
        return [row for row in self.rows if isinstance(row, kind)]


class World:
    """A simulation with scripted nodes."""

    def __init__(
        self,
        seed: int = 0,
        model: latency.Latency = CONSTANT,
        adversary: Adversary | None = None,
        bytes_per_second: int = 0,
        tracing: bool = False,
        delays: Delays | None = None,
    ) -> None:
        self.rows = Rows()
        self.simulation = Simulation(
            MESSAGES,
            seed,
            delays or latency.build(model, Random(seed)),
            adversary,
            bytes_per_second,
            [self.rows] if tracing else [],
            checking=True,
        )
        self.network = self.simulation.network

    @property
    def now(self) -> int:
        return self.simulation.now

    def add(
        self,
        name: str,
        reactions: Mapping[type[Input], React] | None = None,
        sync_us: tuple[int, int] | None = None,
        start: bool = True,
    ) -> Place:
        place = Place(reactions or {})
        disk = None if sync_us is None else Disk(RECORDS, Random(f"disk of {name}"), sync_us)
        place.host = self.simulation.add_machine(name, Role.BROKER, place.make, disk)
        if start:
            place.host.start()
        return place

    def pair(self, **reactions: Mapping[type[Input], React]) -> tuple[Place, Place]:
        """Two hosts a and b with a link that a dialled."""
        a, b = self.add("a", reactions.get("a")), self.add("b", reactions.get("b"))
        self.link(a, "b")
        return a, b

    def link(self, place: Place, address: str) -> int:
        """Dials, waits for the link, and gives its number."""
        before = len(place.got(LinkUp))
        place.do(lambda out: out.connect("", address))
        self.simulation.run(self.now + 60 * SECOND, lambda: len(place.got(LinkUp)) > before)
        self.run_for(8 * DELAY)
        return place.got(LinkUp)[-1].link

    def run_for(self, time: int) -> None:
        self.simulation.run(self.simulation.now + time)

    def at(self, time: int, happen: Callable[[], None]) -> None:
        self.simulation.at(time, lambda _: happen(), None)


def sends(to: str, *numbers: int, padding: int = 0) -> Do:
    def do(out: Outbox) -> None:
        for number in numbers:
            out.send(to, message(number, padding))

    return do
