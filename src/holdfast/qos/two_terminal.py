"""How likely it is, exactly, that there is a way between two brokers (D1-C4, D1-F5).

That is hard in general (#P-complete), and quick for networks of some dozens of brokers. First the graph is made smaller
without changing the answer: brokers that lead nowhere go, a broker between two others becomes a link with its own and
its links' availability, two links between the same brokers become one. Then the brokers that are left are taken one by
one. What is remembered of those taken so far is which of them, if they have neighbours to come, are on and joined with
each other: one probability for each such pattern (a frontier method).
"""

from __future__ import annotations

from holdfast.errors import PredictionError
from holdfast.qos.graph import Case, PartGraph

PATTERNS_MAX = 2_000_000  # that are remembered at once; more take minutes and gigabytes


class _Graph:
    """Brokers and links with availabilities, of which each end is certain to be on."""

    def __init__(self, graph: PartGraph, source: str, target: str, case: Case) -> None:
        self.ends = (source, target)
        self.brokers = {name: part.availability for name, part in graph.brokers.items() if name not in case.brokers}
        self.brokers[source] = self.brokers[target] = 1.0
        self.near: dict[str, dict[str, float]] = {name: {} for name in self.brokers}
        for (one, other), part in graph.links.items():
            if case.brokers.isdisjoint((one, other)) and frozenset((one, other)) not in case.links:
                self.join(one, other, part.availability)

    def join(self, one: str, other: str, availability: float) -> None:
        both = 1 - (1 - self.near[one].get(other, 0.0)) * (1 - availability)
        self.near[one][other] = self.near[other][one] = both

    def remove(self, name: str) -> None:
        for other in self.near.pop(name):
            del self.near[other][name]
        del self.brokers[name]

    def reduce(self) -> None:
        """Until nothing can be made smaller."""
        due = dict.fromkeys(self.near)
        while due:
            name = next(iter(due))
            del due[name]
            if name not in self.near or name in self.ends or len(self.near[name]) > 2:
                continue
            others = list(self.near[name])
            through = self.brokers[name]
            for other in others:
                through *= self.near[name][other]
            self.remove(name)
            if len(others) == 2:
                self.join(others[0], others[1], through)
            due.update(dict.fromkeys(others))

    def order(self) -> list[str]:
        """Brokers in an order in which few have neighbours on both sides of any cut: from one end on, always the one
        that leaves the fewest open."""
        chosen: dict[str, None] = {}
        open_: dict[str, None] = {}
        left = dict.fromkeys(self.near)
        while left:
            candidates = [name for name in left if name in open_] or [self.ends[0] if not chosen else next(iter(left))]

            def opened(name: str) -> tuple[int, int]:
                new = sum(other in left and other not in open_ and other != name for other in self.near[name])
                return new, -sum(other in chosen for other in self.near[name])

            name = min(candidates, key=opened)
            del left[name]
            chosen[name] = None
            open_.pop(name, None)
            open_.update({other: None for other in self.near[name] if other in left})
        return list(chosen)


def two_terminal(graph: PartGraph, source: str, target: str) -> float:
    """P[both brokers are on, and a way of brokers and links that are on joins them]."""
    graph.check(source)
    graph.check(target)
    if source == target:
        return graph.broker_is_on(source)
    ends = graph.brokers[source].availability * graph.brokers[target].availability
    joined = 0.0
    for case in graph.cases():
        if case.brokers.isdisjoint((source, target)):
            smaller = _Graph(graph, source, target, case)
            smaller.reduce()
            joined += case.probability * _joined(smaller)
    return ends * joined


# For each broker of the frontier, in order: the number of its block, counted as they appear; 0 is off. Which block the
# first end is in, and the last one: 0 if it is not taken yet, or left alone.
_Pattern = tuple[tuple[int, ...], int, int]


def _joined(graph: _Graph) -> float:
    order = graph.order()
    place = {name: number for number, name in enumerate(order)}
    last_use = {name: max([place[name], *(place[other] for other in graph.near[name])]) for name in order}
    frontier: list[str] = []
    patterns: dict[_Pattern, float] = {((), 0, 0): 1.0}
    success = 0.0
    source, target = graph.ends
    for number, name in enumerate(order):
        before = [(at, graph.near[name][other]) for at, other in enumerate(frontier) if other in graph.near[name]]
        grown = [*frontier, name]
        stays = [at for at, other in enumerate(grown) if last_use[other] > number]
        following: dict[_Pattern, float] = {}
        on = graph.brokers[name]
        for (blocks, first, last), probability in patterns.items():
            if on < 1:
                _take((*blocks, 0), first, last, probability * (1 - on), stays, following)
            fresh = max([*blocks, first, last]) + 1
            # Links to brokers taken before: each that is on joins the blocks.
            cases: dict[frozenset[int], float] = {frozenset(): probability * on}
            for at, availability in before:
                block = blocks[at]
                if not block:
                    continue
                grown_cases: dict[frozenset[int], float] = {}
                for joined, likely in cases.items():
                    if block in joined:
                        grown_cases[joined] = grown_cases.get(joined, 0.0) + likely
                        continue
                    more = joined | {block}
                    grown_cases[more] = grown_cases.get(more, 0.0) + likely * availability
                    if availability < 1:
                        grown_cases[joined] = grown_cases.get(joined, 0.0) + likely * (1 - availability)
                cases = grown_cases
            for joined, likely in cases.items():
                now = tuple(fresh if block in joined else block for block in (*blocks, fresh))
                begin = fresh if first in joined or name == source else first
                end = fresh if last in joined or name == target else last
                if begin and begin == end:
                    success += likely
                else:
                    _take(now, begin, end, likely, stays, following)
        if len(following) > PATTERNS_MAX:
            raise PredictionError(
                f"the exact probability needs more than {PATTERNS_MAX:,} patterns for {len(order)} brokers that are"
                " joined in many ways; take the bound"
            )
        frontier, patterns = [grown[at] for at in stays], following
    return success


def _take(
    blocks: tuple[int, ...],
    first: int,
    last: int,
    probability: float,
    stays: list[int],
    following: dict[_Pattern, float],
) -> None:
    """Adds a pattern, without the brokers that leave the frontier, unless an end is cut off by that."""
    kept = [blocks[at] for at in stays]
    if (first and first not in kept) or (last and last not in kept):
        return
    numbers: dict[int, int] = {0: 0}
    renamed = tuple(numbers.setdefault(block, len(numbers)) for block in kept)
    pattern = (renamed, numbers.get(first, 0), numbers.get(last, 0))
    following[pattern] = following.get(pattern, 0.0) + probability
