"""`map-history`: the maps of a network have one history, and every change that has begun is done.

- In each life of a broker the numbers of the maps that it adopts rise.
- No two brokers adopt different maps under one number.
- A map is a tree without flaw, and follows from the one before it: its first step is done, or it is what an operator
  asked for.
- Who is no member by its own map takes in no publications, and forwards nothing but what waited for its disk when it
  came to be none.
- At the end of a healed run all members that are there have the last map, nothing is under way in it, unless a broker
  that is not there would have to take part, and each change that an operator saw begin is part of the history. Who was
  replaced and runs knows that it is none.

A map that only its maker had, and lost before anyone else heard of it, never was; a broker that was declared lost keeps
nothing from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import (
    LOST_ABOVE,
    Change,
    HandBack,
    Learn,
    Link,
    Move,
    NetworkMap,
    NetworkMember,
    ReplaceBroker,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.schemes.tree.asked_changes import change_of
from holdfast.schemes.tree.timeline import ADOPTED, FORGETTING, GONE, WELL, is_failure
from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.schema import Accepted, Control, Fault, Header, Hop

FORWARD = "Forward"
DISK_WITHIN = 200_000_000  # longer than any disk takes here
WANTED = "change-wanted"  # by a broker, and not by an operator


class _Seen:
    """A map as a broker says it, in a form that can be compared."""

    __slots__ = ("beside", "members", "number", "steps", "tree")

    def __init__(self, detail: dict[str, Any]) -> None:
        self.number: int = detail["number"]
        self.members = tuple(detail["members"])
        self.tree = {frozenset(link) for link in detail["tree"]}
        self.beside = {frozenset(link) for link in detail.get("beside", ())}
        self.steps = tuple(detail.get("steps", ()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Seen) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self.number)

    def _all(self) -> tuple[Any, ...]:
        return (self.number, self.members, self.tree, self.beside, self.steps)


def _seen(network: NetworkMap) -> _Seen:
    tree, beside = network.tree, network.beside
    steps = [str(step) for step in network.steps]
    return _Seen(
        {"number": network.number, "members": network.names, "tree": tree, "beside": beside, "steps": steps},
    )


class MapHistory(Checker):
    """Keeps the maps as values: each follows from the one before it."""

    def __init__(self, name: str = "map-history") -> None:
        handlers: Handlers = {
            Accepted: self._on_accepted,
            Control: self._on_control,
            Fault: self._on_fault,
            Hop: self._on_hop,
        }
        super().__init__(name, handlers)
        self._detours = False
        self._forgetful: frozenset[str] = frozenset()
        self._maps: dict[int, NetworkMap] = {}
        self._has: dict[str, int] = {}  # broker → the number of its map, if it is not the first
        self._lived: dict[str, int] = {}  # … and the highest in this life
        self._off: set[str] = set()
        self._gone: set[str] = set()
        self._asked: dict[str, Change | None] = {}  # operator → what it asked for
        self._begun: dict[str, int] = {}  # operator → when it was told so
        self._followed: dict[int, set[str]] = {}  # number → operators who asked for just that
        self._left_at: dict[str, int] = {}  # broker → when it came to be no member
        self._last = 0

    def begin(self, header: Header) -> None:
        said = header.settings
        self._detours = "bypass" in said.get("reliability", "none")
        self._forgetful = frozenset(said.get("forgetful", ()))
        members = [NetworkMember(name, name, name) for name in said.get("brokers", ())]
        links: list[Link] = [(one, other) for one, other in said.get("links", ())]
        if members:
            self._maps = {0: founding_map(members, links)}

    # ------------------------------------------------------------------------------------------------------- history
    def _on_control(self, row: Control) -> None:
        self._last = row.t
        if row.what == ADOPTED:
            self._adopt(row)
        elif row.what == "change-asked":
            change = change_of(row.detail["action"], row.detail["told"])
            is_named = not isinstance(change, ReplaceBroker) or bool(change.by)
            self._asked[row.node] = change if is_named else None  # who stands in, a broker finds out: then it wants it
        elif row.what == WANTED:
            self._asked[f"{row.node} {row.t}"] = change_of(row.detail["action"], row.detail["told"])
        elif row.what == "change-begun":
            self._begun[row.node] = row.t

    def _adopt(self, row: Control) -> None:
        seen, node = _Seen(row.detail), row.node
        if seen.number <= self._lived.get(node, -1):
            self.violate(row.t, f"{node} adopts map {seen.number}, and had {self._lived[node]} before")
        self._lived[node] = seen.number
        lost_some = seen.number < self._has.get(node, 0)
        was_member = self._is_member(node)
        self._has[node] = seen.number
        if was_member and node not in seen.members:
            self._left_at[node] = row.t
        if lost_some:
            self._forget_what_nobody_has()
        known = self._maps.get(seen.number)
        if known is not None:
            if _seen(known) != seen:
                others = [other for other, number in self._has.items() if number == seen.number and other != node]
                whose = ", ".join(others) or "the site"
                self.violate(row.t, f"{node} adopts another map {seen.number} than {whose}")
            return
        above = {seen.number - 1, seen.number - 1 - LOST_ABOVE}
        if earlier := [self._maps[number] for number in sorted(above) if number in self._maps]:
            self._follow(row, seen, earlier)
        else:
            self.violate(row.t, f"{node} adopts map {seen.number}, and nobody had the one before it")
            self._maps[seen.number] = self._as_said(row, seen, ())

    def _follow(self, row: Control, seen: _Seen, earlier: Sequence[NetworkMap]) -> None:
        """A new map, of which there has to be an explanation: by the one before it, or, if it is one without a lost
        member, by one that the broker had which made it."""
        explained = [map for before in earlier if before.steps and _seen(map := done(before)) == seen]
        served = {operator for asked in self._followed.values() if len(asked) == 1 for operator in asked}
        # Whoever heard nothing asks again, and who has its place back may be replaced once more.
        served -= {operator for operator in served if self._may_repeat(operator)}
        for operator, change in self._asked.items():
            for before in earlier:
                if operator in served or change is None or objection(before, change, self._detours):
                    continue
                wanted = planned(before, change)
                if _seen(wanted) == seen:
                    explained.append(wanted)
                    self._followed.setdefault(seen.number, set()).add(operator)
        if explained:
            found = explained[0]
        else:
            before = earlier[-1]
            problem = f"{row.node} adopts map {seen.number}, which does not follow from {before.number}: {row.detail}"
            self.violate(row.t, problem)
            found = self._as_said(row, seen, before.former)
        if problem := flaw(found):
            self.violate(row.t, f"{row.node} adopts map {seen.number}, and {problem}")
        self._maps[seen.number] = found

    def _may_repeat(self, operator: str) -> bool:
        return isinstance(self._asked[operator], ReplaceBroker | HandBack) and operator not in self._begun

    @staticmethod
    def _as_said(row: Control, seen: _Seen, former: tuple[str, ...]) -> NetworkMap:
        """So that what follows can be looked at, too."""
        members = tuple(NetworkMember(name, name, name) for name in seen.members)
        tree, beside = (tuple((one, other) for one, other in row.detail.get(key, ())) for key in ("tree", "beside"))
        return NetworkMap(seen.number, members, tree, beside, (), former)

    def _on_fault(self, row: Fault) -> None:
        self._last = row.t
        if row.state == GONE:
            self._gone.add(row.component)
        if row.component == "everything":
            self._off &= self._gone
        elif row.state in WELL:
            self._off.discard(row.component)
        elif is_failure(row.state):
            self._off.add(row.component)
        if row.state == "crashed":
            self._lived.pop(row.component, None)
        if row.state in FORGETTING or (row.state == "crashed" and row.component in self._forgetful):
            self._forget(row.component)

    def _forget(self, node: str) -> None:
        """A broker has lost its map. What nobody else had by then never was; what had begun is lost with a broker that
        is, or that has no disk, or another one."""
        self._has.pop(node, None)
        self._forget_what_nobody_has(with_begun=True)

    def _forget_what_nobody_has(self, with_begun: bool = False) -> None:
        known = max(self._has.values(), default=0)
        for number in [number for number in self._maps if number > known]:
            del self._maps[number]
            begun = self._followed.pop(number, set())
            for operator in begun if with_begun else ():
                self._begun.pop(operator, None)

    # ------------------------------------------------------------------------------------------------------- members
    def _is_member(self, node: str) -> bool:
        network = self._maps.get(self._has.get(node, 0))
        return network is None or network.find(node) is not None

    def _on_accepted(self, row: Accepted) -> None:
        if not self._is_member(row.node):
            self.violate(row.t, f"{row.node} takes in what is published there, and is no member", tuple(row.events))

    def _on_hop(self, row: Hop) -> None:
        if row.what != FORWARD or self._is_member(row.source):
            return
        if row.t - self._left_at.get(row.source, row.t - DISK_WITHIN) >= DISK_WITHIN:
            self.violate(row.t, f"{row.source} forwards to {row.target}, and is no member", tuple(row.events))

    # ----------------------------------------------------------------------------------------------------------- end
    def finish(self) -> None:
        if not self._maps:
            return
        # What only its maker has, which is not there, nobody can know.
        here = [self._has.get(name, 0) for name in (*self._maps[0].names, *self._has) if name not in self._off]
        latest = self._maps[max(here, default=0)]
        for name in latest.names:
            has = self._has.get(name, 0)
            if name not in self._off and has != latest.number:
                self.violate(self._last, f"{name} has map {has} at the end, and there is {latest.number}")
        if latest.steps and not self._needed(latest) & self._off:
            self.violate(self._last, f"a change is never done: {latest.under_way}")
        for name in [resting.name for resting in latest.resting]:
            if name in self._lived and name not in self._off and self._is_member(name):
                self.violate(self._last, f"{name} was replaced, and does not know that it is no member")
        followed = {operator for asked in self._followed.values() for operator in asked}
        for operator, t in self._begun.items():
            if operator not in followed and self._asked[operator] is not None:
                self.violate(t, f"{operator} was told that {self._asked[operator]} has begun, and no map comes of it")

    @staticmethod
    def _needed(latest: NetworkMap) -> set[str]:
        """Who has to take part in what is under way."""
        step = latest.step
        if isinstance(step, Move):
            return {step.broker, step.old, step.new}
        if isinstance(step, Learn):
            return {step.broker}  # which goes on without neighbours that are not there
        return set() if step is None else {step.broker, *latest.spanning_tree.neighbours(step.broker)}
