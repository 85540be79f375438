"""The newest that each broker said of its links: the same, sooner or later, at all who can reach each other (D1-A13).

Pure: what to tell to whom is computed here, and a part carries it. A link loses nothing while it is up, so that each
neighbour is told everything when its link comes up, and after that what is new, once, unless it said so itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from holdfast.errors import ProtocolError
from holdfast.kernel.node import broken, require
from holdfast.schemes.tree.bypass.messages import LinkState
from holdfast.topology.graph import BrokerGraph

COUNT_MAX: Final = 2**62
SHOWN: Final = 64  # characters of a name that somebody made up


class Database:
    """One broker's. `changes` counts every change of what is known, so that what was derived from it can be kept."""

    def __init__(self, graph: BrokerGraph, own: str) -> None:
        self.graph = graph
        self.own = own
        self.changes = 0
        self._states = {own: LinkState(own, 0, 0)}
        self._up: dict[str, None] = {}  # our neighbours that are up for us
        self._owed: dict[str, dict[str, None]] = {}  # neighbours with a link → the brokers to be told of

    def change(self, graph: BrokerGraph) -> None:
        """The network has other brokers, or other links. Everyone is told anew: who had the new map later may have
        dropped what it could not know."""
        self.graph = graph
        near = self.near
        self._states = {origin: state for origin, state in self._states.items() if origin in (*graph.brokers, self.own)}
        self._up = {neighbour: None for neighbour in self._up if neighbour in near}
        self._owed = {neighbour: dict.fromkeys(self._states) for neighbour in self._owed if neighbour in near}
        self._say(self._states[self.own].ready)

    @property
    def near(self) -> tuple[str, ...]:
        """This broker's neighbours in the graph."""
        return self.graph.neighbours(self.own) if self.own in self.graph.brokers else ()

    def state(self, broker: str) -> LinkState | None:
        """The newest that is known of a broker."""
        return self._states.get(broker)

    @property
    def states(self) -> list[LinkState]:
        """Of all that something is known of, in the order of the brokers."""
        return [self._states[broker] for broker in self.graph.brokers if broker in self._states]

    def is_ready(self, broker: str) -> bool:
        state = self._states.get(broker)
        return state is not None and state.ready

    # ----------------------------------------------------------------------------------------------------- our own
    def start(self, incarnation: int) -> None:
        self._put(LinkState(self.own, incarnation, 1))

    def set_up(self, neighbour: str, is_up: bool) -> bool:
        """Whether that is news."""
        if is_up == (neighbour in self._up):
            return False
        if is_up:
            self._up[neighbour] = None
        else:
            del self._up[neighbour]
        self._say(self._states[self.own].ready)
        return True

    def set_ready(self, ready: bool) -> bool:
        """Whether that is news."""
        if ready == self._states[self.own].ready:
            return False
        self._say(ready)
        return True

    def _say(self, ready: bool, above: tuple[int, int] = (0, 0)) -> None:
        incarnation, number = max(self._states[self.own].version, above)
        if number + 1 >= COUNT_MAX:
            incarnation, number = incarnation + 1, 0
        up = tuple(near for near in self.near if near in self._up)
        self._put(LinkState(self.own, incarnation, number + 1, up, ready))

    def _put(self, state: LinkState) -> None:
        self._states[state.origin] = state
        self.changes += 1
        for owed in self._owed.values():
            owed[state.origin] = None

    # -------------------------------------------------------------------------------------------------- neighbours
    def link_up(self, neighbour: str, incarnation: int) -> bool:
        """A link to a neighbour, which knows nothing of what it was told before. Whether it was met anew: what it said
        in an earlier life holds no more, neither here nor anywhere."""
        known = self._states.get(neighbour)
        is_new = known is None or known.incarnation < incarnation
        if is_new:
            self._put(LinkState(neighbour, incarnation, 0))
        self._owed[neighbour] = {state.origin: None for state in self.states}
        if known is None or known.incarnation <= incarnation:
            del self._owed[neighbour][neighbour]  # it knows that best, unless its clock was put back
        return is_new

    def link_down(self, neighbour: str) -> None:
        self._owed.pop(neighbour, None)

    def merge(self, source: str, states: Sequence[LinkState]) -> bool:
        """Takes in what a neighbour said; whether something of it is news. ProtocolError, and nothing is changed, if
        it can't have been said by a broker of this network."""
        self._check(source, states)
        before = self.changes
        for state in states:
            if state.origin not in self.graph.brokers:
                continue  # of a map that this broker does not have yet, or not any more: it is told anew with the other
            known = self._states.get(state.origin)
            if known is None or state.version > known.version:
                if state.origin == self.own:
                    # A clock that was put back gave us a lower incarnation than we had before: go on from there.
                    self._say(self._states[self.own].ready, state.version)
                else:
                    self._put(state)
            if source in self._owed and state.version == self._states[state.origin].version:
                self._owed[source].pop(state.origin, None)  # it knows what we know
        return self.changes != before

    def take_owed(self, known: Container[str]) -> list[tuple[str, tuple[LinkState, ...]]]:
        """What each neighbour is to be told now that is known to be one; it counts as told."""
        told = []
        for neighbour, owed in self._owed.items():
            if owed and neighbour in known:
                told.append((neighbour, tuple(self._states[origin] for origin in owed)))
                self._owed[neighbour] = {}
        return told

    # ------------------------------------------------------------------------------------------------------- checks
    def _check(self, source: str, states: Sequence[LinkState]) -> None:
        if source not in self.near:
            raise ProtocolError(f"LinkStates from {source[:SHOWN]!r}, which no link joins with {self.own}")
        if len(states) > 2 * len(self.graph.brokers):
            raise ProtocolError(f"LinkStates of {len(states)} brokers; the network has {len(self.graph.brokers)}")
        for state in states:
            if not _differ((state.origin, *state.up)) or len(state.up) > 2 * len(self.graph.brokers):
                raise ProtocolError(f"LinkStates of {state.origin[:SHOWN]!r} name links that no map can have")
            if state.number >= COUNT_MAX or state.incarnation >= COUNT_MAX:
                # Whoever it is about: told on, it would end the links of those who only passed it on.
                raise ProtocolError(f"LinkStates of {state.origin[:SHOWN]!r} have a number that it can't have come to")

    def check_invariants(self) -> None:
        up = self._states[self.own].up
        if up != tuple([near for near in self.near if near in self._up]):
            broken("we say it all", up=up)
        for neighbour, owed in self._owed.items():
            if owed:
                require(owed.keys() <= self._states.keys(), "what is owed is known", neighbour=neighbour)


def _differ(names: Iterable[str]) -> bool:
    seen = list(names)
    return len(set(seen)) == len(seen)
