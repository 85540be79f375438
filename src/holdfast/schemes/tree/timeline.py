"""Which maps of a network were in effect when, as a trace tells it.

A map is in effect from when the first broker adopts it until all have a later one. The network is *settled* while
nothing is under way and every member has the latest map, but for those that are not well: they get it when they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast.topology.graph import BrokerGraph
from holdfast.trace.schema import Control, Fault

FOR_EVER = 2**63
SLOW = "disk slow"
GONE = "gone"  # for ever
FORGETTING = ("wiped", GONE)
# States that do not keep a broker from working, by themselves.
HARMLESS = (SLOW, *FORGETTING)
WELL = ("up", "healed")
ADOPTED = "map-adopted"

Link = frozenset[str]


def is_failure(state: str) -> bool:
    return state not in WELL and state not in HARMLESS and not state.startswith("clock")


class Layout:
    """A map, as far as ways and members go."""

    __slots__ = ("_inside", "_tree", "joined", "links", "members", "near", "number", "steps")

    def __init__(
        self,
        number: int,
        members: Sequence[str],
        tree: Sequence[tuple[str, str]],
        beside: Sequence[tuple[str, str]],
        steps: Sequence[str],
        sharing: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.number = number
        self.members = tuple(members)
        self.links = {frozenset(link) for link in (*tree, *beside)}
        # Who shares another's work is joined with that one's neighbours, and no part of the tree.
        for by, faulty in sharing:
            self.links |= {frozenset((by, *(link - {faulty}))) for link in map(frozenset, tree) if faulty in link}
        self.steps = tuple(steps)
        # Whom a step brings together works on it before the link is one of the map's.
        self.joined = self.links | {link for step in steps for link in _links_of(step)}
        self.near: dict[str, list[str]] = {member: [] for member in members}
        for one, other in (tuple(link) for link in sorted(self.links, key=sorted)):
            self.near[one].append(other)
            self.near[other].append(one)
        apart = [by for by, _ in sharing]
        self._inside = [member for member in self.members if member not in apart]
        self._tree = BrokerGraph(self._inside, [(one, other) for one, other in tree]).spanning_tree()

    def path(self, source: str, target: str) -> list[str]:
        """All brokers from one to the other; empty if one is no member, or shares another's work."""
        if source not in self._inside or target not in self._inside:
            return []
        return [source] if source == target else self._tree.path(source, target)


def _links_of(step: str) -> list[Link]:
    """Of "b3 moves from b1 to b2": the link that is to be."""
    words = step.split()
    return [frozenset((words[0], words[-1]))] if "moves" in words else []


def replaced_by(step: str) -> tuple[str, str]:
    """Of "b7 learns the tables of b3 (synch)": who is replaced, and by whom; empty of other steps."""
    words = step.split()
    return (words[5], words[0]) if words[1:5] == ["learns", "the", "tables", "of"] else ("", "")


def layout_of(detail: dict[str, Any]) -> Layout:
    """What a broker says of a map that it adopts; TopologyError if its links make no tree."""
    tree, beside = ([(one, other) for one, other in detail.get(key, ())] for key in ("tree", "beside"))
    return Layout(detail["number"], detail["members"], tree, beside, detail.get("steps", ()), detail.get("sharing", ()))


class Span(NamedTuple):
    start: int
    end: int


class Timeline:
    """Fed with all faults and all maps of a run, in order. `forgetful` brokers have no disk: each of their lives begins
    with the map that the network was founded with."""

    def __init__(self, founding: Layout, forgetful: Sequence[str] = ()) -> None:
        self._forgetful = frozenset(forgetful)
        self._layouts = {founding.number: founding}
        self._first = {founding.number: -FOR_EVER}
        self._replaced: dict[str, list[tuple[int, int]]] = {}  # broker → the map by which it was, and when that came
        self._founding = founding.number
        self._has: dict[str, int] = {}  # broker → the map that it has, if it is another
        self._off: set[str] = set()
        self._gone: set[str] = set()
        self._unsettled: list[Span] = []
        self._unsettled_since: int | None = None
        self.version = 0  # of what is known

    @property
    def latest(self) -> Layout:
        return self._layouts[max(self._layouts)]

    @property
    def is_static(self) -> bool:
        return len(self._layouts) == 1

    def number_of(self, broker: str) -> int:
        return self._has.get(broker, self._founding)

    def replacements_of(self, broker: str) -> list[Span]:
        """When a broker was replaced: from when the first heard of it until all had done what they had to."""
        found = [t for number, t in self._replaced.get(broker, ()) if number in self._layouts]
        return [Span(t, self._settled_from(t)) for t in found]

    def _settled_from(self, t: int) -> int:
        return min((span.end for span in self.unsettled if span.start <= t <= span.end), default=t)

    # --------------------------------------------------------------------------------------------------------- rows
    def adopt(self, row: Control) -> None:
        layout = layout_of(row.detail)
        lost_some = layout.number < self.number_of(row.node)
        self._has[row.node] = layout.number
        if lost_some:
            self._forget_what_nobody_has()
        if layout.number not in self._layouts:
            self._layouts[layout.number] = layout
            self._first[layout.number] = row.t
            for faulty in [replaced_by(step)[0] for step in layout.steps]:
                if faulty and faulty not in layout.near:
                    self._replaced.setdefault(faulty, []).append((layout.number, row.t))
        self._look(row.t)

    def see(self, row: Fault) -> None:
        if row.state == GONE:
            self._gone.add(row.component)
        if row.component == "everything":
            self._off &= self._gone
        elif row.state in WELL:
            self._off.discard(row.component)
        elif is_failure(row.state):
            self._off.add(row.component)
        if row.state in FORGETTING or (row.state == "crashed" and row.component in self._forgetful):
            self._has.pop(row.component, None)
            self._forget_what_nobody_has()
        if not self.is_static:
            self._look(row.t)

    def _forget_what_nobody_has(self) -> None:
        """The last maps, if they were lost with their maker before anyone else had heard of them: they never were."""
        known = max(self._has.values(), default=self._founding)
        for number in [number for number in self._layouts if number > known]:
            del self._layouts[number], self._first[number]

    def _look(self, t: int) -> None:
        latest = self.latest
        settled = not latest.steps and all(
            self.number_of(member) == latest.number for member in latest.members if member not in self._off
        )
        if settled and self._unsettled_since is not None:
            self._unsettled.append(Span(self._unsettled_since, t))
            self._unsettled_since = None
        elif not settled and self._unsettled_since is None:
            self._unsettled_since = t
        self.version += 1

    # ------------------------------------------------------------------------------------------------------ in effect
    @property
    def unsettled(self) -> list[Span]:
        """When changes were under way; the last may still be."""
        now = [] if self._unsettled_since is None else [Span(self._unsettled_since, FOR_EVER)]
        return self._unsettled + now

    def at(self, t: int) -> Layout:
        """The latest of a time."""
        return self._layouts[max(number for number, first in self._first.items() if first <= t)]

    def next_after(self, t: int) -> int:
        """When the next map came."""
        return min((first for first in self._first.values() if first > t), default=FOR_EVER)

    def spans(self) -> Iterator[tuple[Layout, Span]]:
        """All maps, and when they were in effect."""
        numbers = sorted(self._layouts)
        for number, following in pairwise((*numbers, -1)):
            end = FOR_EVER
            if following >= 0:
                came = self._first[following]
                end = min((span.end for span in self.unsettled if span.start <= came <= span.end), default=came)
            yield self._layouts[number], Span(self._first[number], end)

    def in_effect(self, start: int, end: int) -> list[Layout]:
        """Between two times."""
        return [layout for layout, span in self.spans() if span.start <= end and span.end >= start]

    def spans_of(self, component: str) -> list[Span]:
        """When a broker was a member, or a link one of the network's, also one that is to be."""
        one, arrow, other = component.partition(">")
        link = frozenset((one, other))
        found: list[Span] = []
        for layout, span in self.spans():
            if link in layout.joined if arrow else one in layout.near:
                if found and found[-1].end >= span.start:
                    found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
                else:
                    found.append(span)
        return found
