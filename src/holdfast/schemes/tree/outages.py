"""When brokers and links of a network were not well, as a trace tells it, and what that means for a path.

A failure counts from its first moment until `grace` after its end: the network has to come back from it. After `notice`
everyone knows of it. What is under way is under way for at most `TRANSIT`, where nothing holds it up. A slow disk is no
failure; but what waits for it may take any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.topology.graph import BrokerGraph
from holdfast.trace.schema import Fault

FOR_EVER = 2**63
TRANSIT = 2_000_000_000
# States that do not keep a broker from working.
SLOW = "disk slow"
HARMLESS = (SLOW, "wiped")
WELL = ("up", "healed")


class _Outage(NamedTuple):
    component: str
    start: int
    end: int


class Outages:
    """Fed with all faults of a run, in order."""

    def __init__(self, brokers: Sequence[str], links: Sequence[tuple[str, str]], grace: int, notice: int) -> None:
        self.grace = grace
        self._notice = notice
        self._graph = BrokerGraph(brokers, links)
        self._tree = self._graph.spanning_tree() if brokers else None
        self._links = {f"{a}>{b}": frozenset((a, b)) for one, other in links for a, b in ((one, other), (other, one))}
        self._since: dict[str, int] = {}  # what is not well now
        self._past: list[_Outage] = []
        self._slow_since: dict[str, int] = {}
        self._slow: list[_Outage] = []
        self._wiped: dict[str, int] = {}  # broker → when its disk was last wiped
        self._last = -FOR_EVER  # when something of the network was last not well

    @property
    def any_ever(self) -> bool:
        """Whether anything of the network ever failed."""
        return bool(self._since or self._past)

    def see(self, row: Fault) -> None:
        if row.state == "wiped":
            self._wiped[row.component] = row.t
        if row.component == "everything":
            for component in [*self._since, *self._slow_since]:
                self._end(component, row.t)
        elif row.component not in self._graph.brokers and row.component not in self._links:
            return
        elif row.state in WELL:
            self._end(row.component, row.t)
        elif row.state == SLOW:
            self._slow_since.setdefault(row.component, row.t)
        elif row.state not in HARMLESS and not row.state.startswith("clock"):
            self._since.setdefault(row.component, row.t)

    def _end(self, component: str, t: int) -> None:
        slow = self._slow_since.pop(component, None)
        if slow is not None:
            self._slow.append(_Outage(component, slow, t))
        start = self._since.pop(component, None)
        if start is not None:
            self._past.append(_Outage(component, start, t))
            self._last = t

    def _all(self) -> list[_Outage]:
        return self._past + [_Outage(component, start, FOR_EVER) for component, start in self._since.items()]

    def reaches(self, source: str, target: str, t: int) -> int:
        """When a word that is said at `source`, and kept until it is told, has certainly got to `target`: each two
        brokers on the way have been well together, with their link, for long enough, one pair after the other. A disk
        that was wiped has forgotten it, and is told again by whoever knows."""
        t = max(t, *(self._wiped.get(broker, t) for broker in self.path(source, target)))
        slow = [_Outage(component, start, FOR_EVER) for component, start in self._slow_since.items()]
        outages = sorted(self._all() + self._slow + slow, key=lambda outage: outage.start)
        for here, following in pairwise(self.path(source, target)):
            needed = (here, following, f"{here}>{following}", f"{following}>{here}")
            for component, start, end in outages:
                if component in needed and start < t + self.grace and end > t:
                    t = end
            t += self.grace
        return t

    def wiped_since(self, source: str, target: str, t: int) -> bool:
        """Whether a disk of the path was wiped from then on, with what was stored there."""
        return any(self._wiped.get(broker, -FOR_EVER) >= t for broker in self.path(source, target))

    def path(self, source: str, target: str) -> list[str]:
        return [source] if self._tree is None or source == target else self._tree.path(source, target)

    def is_settled(self, t: int) -> bool:
        """Whether all has been well for a while."""
        return not self._since and t - self._last >= self.grace

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether something on the path is not well now."""
        path = self.path(source, target)
        links = {frozenset(pair) for pair in pairwise(path)}
        return any(component in path or self._links.get(component) in links for component in self._since)

    def is_off(self, broker: str) -> bool:
        """Whether a broker is not well now."""
        return broker in self._since

    def is_down(self, broker: str, t: int) -> bool:
        """Whether a broker is not well now, or was not a short while ago."""
        return broker in self._since or any(
            outage.component == broker and outage.start <= t < outage.end + self.grace for outage in self._past
        )

    def touched(self, source: str, target: str, t: int) -> bool:
        """Whether something on the path was not well while what was accepted at `t` was under way."""
        path = self.path(source, target)
        links = {frozenset(pair) for pair in pairwise(path)}
        for component, start, end in self._all():
            if (component in path or self._links.get(component) in links) and (
                start <= t + self.grace and t <= end + self.grace
            ):
                return True
        return False

    def is_cut_off(self, source: str, target: str, t: int) -> bool:
        """Whether, when something was accepted at `t`, there was no way between two brokers, or no one could know
        of one, since anything had changed shortly before, or did while it was under way."""
        down: set[str] = set()
        for component, start, end in self._all():
            if end + self.grace <= t or start >= t + TRANSIT:
                continue
            if start > t - self._notice or end < t + TRANSIT:
                return True  # it came or went meanwhile
            down.add(component)
        if source in down or target in down:
            return True
        reached = {source}
        for here in (queue := [source]):
            for near in self._graph.neighbours(here):
                if near not in reached and not {near, f"{here}>{near}", f"{near}>{here}"} & down:
                    reached.add(near)
                    queue.append(near)
        return target not in reached
