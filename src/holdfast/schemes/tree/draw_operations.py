"""What operators ask for in networks that change: drawn one after the other on the map that the changes before leave.

So most of it makes sense, also where several are asked for at once. Some of it does not, and has to be refused. A
broker is declared lost only where a fault takes it for ever before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import NamedTuple

from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    Link,
    Move,
    NetworkMap,
    RemoveBroker,
    RemoveLink,
    done,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.schemes.tree.asked_changes import operation_of
from holdfast.sim.scenario import Operate


class Plan(NamedTuple):
    """What operators ask for, and whom it concerns."""

    operations: list[Operate]
    pairs: list[Link]  # brokers that are joined at some time, if all goes well
    lost: dict[str, int]  # who is declared lost → when it is lost
    moves: list[tuple[int, Move]]  # what is carried out, and when that was asked for


def draw_plan(
    rng: Random,
    founding: NetworkMap,
    spares: list[str],
    most: int,
    between: tuple[int, int],
    detours: bool,
    losses: bool,
) -> Plan:
    """One to so many changes, within those milliseconds; with `losses`, of a broker that is lost, too."""
    return _Changes(rng, founding, spares, detours).draw(most, between, losses)


class _Changes:
    """Draws what operators ask for, on the map that all before leaves."""

    def __init__(
        self,
        rng: Random,
        founding: NetworkMap,
        spares: list[str],
        detours: bool,
    ) -> None:
        self._rng = rng
        self._detours = detours
        self._spares = spares
        self._map = founding
        self._pairs = {frozenset(link): link for link in self._map.graph.links}
        self._lost: dict[str, int] = {}
        self._moves: list[tuple[int, Move]] = []

    def draw(self, most: int, between: tuple[int, int], losses: bool) -> Plan:
        rng, (first, last) = self._rng, between
        operations: list[Operate] = []
        at = rng.randint(first, first + 2_000)
        for _ in range(rng.randint(1, most)):
            if at > last:
                break
            change = self._sensible(at, losses) if rng.random() < 0.85 else self._any()
            if change is not None:
                ends = rng.choice((2_000, 2_000, 6_000, None))
                refused = objection(self._map, change, self._detours)
                operations.append(operation_of(change, at, None if refused else ends))
                self._apply(change, at)
            at += rng.choice((0, 5, 50, 400, 1_500, 3_000))
        return Plan(operations, list(self._pairs.values()), self._lost, self._moves)

    def _apply(self, change: Change, at: int) -> None:
        if objection(self._map, change, self._detours):
            return
        self._map = planned(self._map, change)
        self._remember(self._map)
        while self._map.steps:
            if isinstance(self._map.step, Move):
                self._moves.append((at, self._map.step))
            self._map = done(self._map)
            self._remember(self._map)

    def _remember(self, network: NetworkMap) -> None:
        for link in network.graph.links:
            self._pairs.setdefault(frozenset(link), link)
        for step in network.steps:
            if isinstance(step, Move):
                self._pairs.setdefault(frozenset((step.broker, step.new)), (step.broker, step.new))

    def _sensible(self, at: int, losses: bool) -> Change | None:
        """Something that nothing is against, if all before is done by then; None if none is found soon."""
        kinds: list[Callable[[], Change]] = [
            self._join,
            self._join,
            self._go,
            self._go,
            self._link,
            self._link,
            self._cut,
        ]
        for _ in range(20):
            if losses and not self._lost and len(self._map.members) > 3 and self._rng.random() < 0.05:
                change: Change = self._lose(at)
            else:
                change = self._rng.choice(kinds)()
            if not objection(self._map, change, self._detours):
                if isinstance(change, RemoveBroker) and change.lost:
                    self._lost[change.name] = at - self._rng.choice((1, 20, 300, 2_000))
                return change
        return None

    def _member(self) -> str:
        return self._rng.choice(self._map.names)

    def _join(self) -> AddBroker:
        fresh = [name for name in self._spares if self._map.find(name) is None and name not in self._map.former]
        name, at = self._rng.choice(fresh or self._spares or ["b1"]), self._member()
        near = self._map.spanning_tree.neighbours(at)
        between = self._rng.choice(near) if near and self._rng.random() < 0.5 else ""
        return AddBroker(name, name, name, at, between)

    def _go(self) -> RemoveBroker:
        name = self._member()
        near = self._map.spanning_tree.neighbours(name)
        return RemoveBroker(name, False, self._rng.choice(near) if self._rng.random() < 0.5 else "")

    def _lose(self, at: int) -> RemoveBroker:
        name = self._map.keeper if self._rng.random() < 0.3 else self._member()
        # Behind others that may not be done by then, nobody knows who its neighbours are.
        near = self._map.spanning_tree.neighbours(name) if not self._map.number else ()
        return RemoveBroker(name, True, self._rng.choice(near) if near and self._rng.random() < 0.5 else "")

    def _link(self) -> AddLink:
        one, other = self._member(), self._member()
        if self._detours and self._rng.random() < 0.4:
            return AddLink(one, other)
        path = self._map.spanning_tree.path(one, other)
        crossed = list(pairwise(path))
        return AddLink(one, other, self._rng.choice(crossed) if crossed else None)

    def _cut(self) -> RemoveLink:
        links = self._map.graph.links
        return RemoveLink(*self._rng.choice(links))

    def _any(self) -> Change:
        """What may make no sense."""
        rng = self._rng
        names = [*self._map.names, *self._map.former, "b99"]
        match rng.choice(("join", "go", "link", "instead", "cut")):
            case "join":
                name = rng.choice([*self._spares, *self._map.names, *self._map.former])
                return AddBroker(name, name, name, rng.choice(names), rng.choice(("", rng.choice(names))))
            case "go":
                return RemoveBroker(rng.choice(names), False, rng.choice(("", rng.choice(names))))
            case "link":
                return AddLink(rng.choice(names), rng.choice(names))
            case "instead":
                return AddLink(rng.choice(names), rng.choice(names), (rng.choice(names), rng.choice(names)))
            case _:
                return RemoveLink(rng.choice(names), rng.choice(names))
