"""Brokers made of a failure detector, news of links and detours, joined by links in memory: no driver is needed.

What they carry is a `Parcel`: given to one broker, it goes along the tree to all of them, as an event that everyone
wants does. Time is counted; a link is FIFO, takes a moment, and loses what is under way when it is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any, ClassVar

from holdfast.codec import Registry
from holdfast.kernel.inputs import Input, LinkDown, LinkUp, Received, Started, TimerFired, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Disconnect, Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.failure.detector import FailureDetector
from holdfast.protocols.failure.messages import FAILURE_MESSAGES
from holdfast.protocols.failure.settings import DetectorSettings
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.notices import BecameReady, Detoured
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.detours import Detours
from holdfast.schemes.tree.bypass.link_state import LinkStateNews
from holdfast.schemes.tree.bypass.messages import BYPASS_MESSAGES
from holdfast.schemes.tree.bypass.view import View
from holdfast.topology.graph import BrokerGraph, SpanningTree
from tests.topology.rosters import roster_of

DELAY = 10 * MILLISECOND
EVER = 1 << 60


class Parcel(Message, frozen=True):
    number: int


CARRIED = Registry[Message]({1: Parcel})
MESSAGES = Registry[Message]({1: Parcel, **FAILURE_MESSAGES, **BYPASS_MESSAGES})


class Postman(Part):
    """Gives every parcel to all neighbours in the tree but the one that it came from, and keeps what came."""

    name: ClassVar[str] = "postman"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Parcel: frozenset({Role.BROKER})}
    notices: ClassVar[tuple[type[Notice], ...]] = (Detoured,)

    def __init__(self, detours: Detours) -> None:
        self.detours = detours
        self.got: list[int] = []

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        self.on_parcel(detoured.source, detoured.message, out)

    def on_parcel(self, source: str, message: Message, out: Outbox) -> None:
        assert isinstance(message, Parcel)
        self.got.append(message.number)
        self.give(source, message, out)

    def give(self, source: str, parcel: Parcel, out: Outbox) -> None:
        view = self.detours.view
        for neighbour in view.tree.neighbours(view.own):
            if neighbour != source:
                self.detours.send(neighbour, parcel, Lane.USER, out)


class Machine:
    """One life of a broker."""

    def __init__(
        self, name: str, graph: BrokerGraph, tree: SpanningTree, incarnation: int, settings: DetectorSettings
    ) -> None:
        self.incarnation = incarnation
        self.database = Database(graph, name)
        self.view = View(self.database, tree)
        self.detector = FailureDetector(settings, graph.neighbours(name))
        roster, known = roster_of(name, graph, tree), Acquaintances(graph.brokers)
        self.news = LinkStateNews(roster, self.database, self.view, self.detector, known)
        self.detours = Detours(self.database, self.view, CARRIED, self.detector, known)
        self.postman = Postman(self.detours)
        # News come before the detector: a neighbour that was met anew is known to be, before it is said to be up.
        self.node = Assembly([self.news, self.detector, self.detours, self.postman])
        self.out = Outbox()
        self.timers: dict[TimerKey, int] = {}
        self.links: dict[str, int] = {}


class Network:
    """`sent` counts messages by type; brokers are ready as soon as they are started, unless told otherwise."""

    def __init__(self, graph: BrokerGraph, tree: SpanningTree | None = None) -> None:
        self.graph = graph
        self.tree = tree or graph.spanning_tree()
        self.settings = DetectorSettings()
        self.now = 0
        self.machines: dict[str, Machine] = {}
        self.sent: Counter[str] = Counter()
        self._order = 0
        self._link = 0
        self._joined: dict[tuple[str, str], int] = {}  # both ways → the number of the link
        self._silent: frozenset[int] = frozenset()
        self._coming: list[tuple[int, int, int, str, str, Message]] = []  # a heap: when, order, link, from, to, what
        for broker in graph.brokers:
            self.start(broker, 1)
        for one, other in graph.links:
            self.join(one, other)
        self.run(2 * SECOND)
        self.sent.clear()

    # ------------------------------------------------------------------------------------------------------- faults
    def start(self, broker: str, incarnation: int, ready: bool = True) -> None:
        machine = self.machines[broker] = Machine(broker, self.graph, self.tree, incarnation, self.settings)
        self.give(broker, [Started(incarnation)])
        if ready:
            machine.news.on_became_ready(BecameReady(), machine.out)

    def join(self, one: str, other: str) -> None:
        self._link += 1
        for near, far in ((one, other), (other, one)):
            self._joined[near, far] = self.machines[near].links[far] = self._link
            up = LinkUp(self._link, far, self.machines[far].incarnation, Role.BROKER, near == one)
            self.give(near, [up])

    def cut(self, one: str, other: str) -> None:
        link = self._joined.pop((one, other))
        del self._joined[other, one]
        for near, far in ((one, other), (other, one)):
            if near in self.machines:
                del self.machines[near].links[far]
                self.machines[near].out.drop_queue(far)
                self.give(near, [LinkDown(link, far, "cut")])

    def crash(self, broker: str) -> None:
        del self.machines[broker]
        for near in self.graph.neighbours(broker):
            if (broker, near) in self._joined:
                self.cut(broker, near)

    def silence(self, one: str, other: str) -> None:
        """From now on nothing gets through, and nobody is told."""
        self._silent |= {self._joined[one, other]}

    # -------------------------------------------------------------------------------------------------------- work
    def publish(self, broker: str, number: int) -> None:
        machine = self.machines[broker]
        machine.postman.give("", Parcel(number), machine.out)
        self._collect(broker)

    def got(self, number: int) -> list[str]:
        """Who got a parcel, in the order of brokers, as often as it did."""
        return [
            broker
            for broker in self.graph.brokers
            if broker in self.machines
            for got in self.machines[broker].postman.got
            if got == number
        ]

    def measured(self, name: str) -> int:
        return sum(machine.node.measure()[name] for machine in self.machines.values())

    def give(self, broker: str, inputs: list[Input]) -> None:
        machine = self.machines[broker]
        machine.out.now = self.now
        machine.node.handle(inputs, machine.out)
        machine.node.check_invariants()
        self._collect(broker)

    def _collect(self, broker: str) -> None:
        machine = self.machines[broker]
        for key, after in machine.out.timers:
            machine.timers[key] = EVER if after is None else self.now + after
        machine.out.timers.clear()
        for queue in machine.out.touched:
            if queue.peer in machine.links:
                for entry in queue.take(EVER, EVER)[0]:
                    self._transmit(broker, queue.peer, entry.message)
        machine.out.touched.clear()
        closed = [action for action in machine.out.actions if isinstance(action, Disconnect)]
        machine.out.actions.clear()
        for action in closed:
            for peer, link in list(machine.links.items()):
                if link == action.link:
                    self.cut(broker, peer)

    def _transmit(self, source: str, target: str, message: Message) -> None:
        self.sent[type(message).__name__] += 1
        self._order += 1
        read: Any = MESSAGES.decode(*MESSAGES.encode(message))
        heappush(self._coming, (self.now + DELAY, self._order, self._joined[source, target], source, target, read))

    def run(self, time: int) -> None:
        """Lets time pass."""
        until = self.now + time
        while True:
            timers = [
                (due, broker, key) for broker in self.machines for key, due in self.machines[broker].timers.items()
            ]
            due, broker, key = min(timers)
            if self._coming and self._coming[0][0] <= due:
                if self._coming[0][0] > until:
                    break
                self.now, _, link, source, target, message = heappop(self._coming)
                if self._joined.get((source, target)) == link and link not in self._silent:
                    self.give(target, [Received(link, source, [message])])
            elif due <= until:
                self.now = due
                del self.machines[broker].timers[key]
                self.give(broker, [TimerFired(key)])
            else:
                break
        self.now = until
