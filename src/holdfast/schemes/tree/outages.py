"""When brokers and links of a network were not well, as a trace tells it, and what that means for a path.

A failure counts from its first moment until `grace` after its end: the network has to come back from it. After `notice`
everyone knows of it. What is under way is under way for at most `TRANSIT`, where nothing holds it up. A slow disk is no
failure; but what waits for it may take any time.

Where the network changes, a failure counts while the broker, or the link, is one of the network's, and a path is that
of all maps that were in effect meanwhile. A change that no failure touches takes nothing away; a word that it overtakes
is told again, and has got there a while after the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.schemes.tree.timeline import (
    FOR_EVER,
    FORGETTING,
    GONE,
    SLOW,
    WELL,
    Layout,
    Link,
    Span,
    Timeline,
    is_failure,
)
from holdfast.topology.graph import BrokerGraph
from holdfast.trace.schema import Control, Fault

TRANSIT = 2_000_000_000
SOON = 1_500_000_000  # what a change overtook is known again, where nothing failed


class _Outage(NamedTuple):
    component: str
    start: int
    end: int


class _Ways(NamedTuple):
    """What something may have passed: brokers, and the links between them."""

    brokers: set[str]
    links: set[Link]

    def has(self, component: str) -> bool:
        one, arrow, other = component.partition(">")
        return frozenset((one, other)) in self.links if arrow else one in self.brokers


class Outages:
    """Fed with all faults of a run, and all maps, in order. `changes`: the network may change, also by brokers that
    are no members yet. `prompt` is how long a word takes at most to the next broker where nothing failed; 0 if that is
    not known."""

    def __init__(
        self,
        brokers: Sequence[str],
        links: Sequence[tuple[str, str]],
        grace: int,
        notice: int,
        changes: bool = False,
        forgetful: Sequence[str] = (),
        prompt: int = 0,
    ) -> None:
        self.grace = grace
        self.changes = changes
        self._notice = notice
        self._prompt = prompt
        tree = BrokerGraph(brokers, links).spanning_tree() if brokers else None
        routed = [(one, other) for one, other in links if tree is not None and other in tree.neighbours(one)]
        self.maps = Timeline(Layout(0, brokers, routed, links, ()), forgetful)
        self._since: dict[str, int] = {}  # what is not well now
        self._gone: set[str] = set()  # for ever
        self._past: list[_Outage] = []
        self._slow_since: dict[str, int] = {}
        self._slow: list[_Outage] = []
        self._wiped: dict[str, int] = {}  # broker → when its disk was last wiped, or lost
        self._known: list[_Outage] | None = None  # of the network, as far as they are known now

    @property
    def any_ever(self) -> bool:
        """Whether anything of the network ever failed."""
        return bool(self._all())

    def adopt(self, row: Control) -> None:
        """A broker says that it has another map."""
        self._known = None
        self.maps.adopt(row)

    def see(self, row: Fault) -> None:
        self._known = None
        if row.state in FORGETTING:
            self._wiped[row.component] = row.t
        if row.state == GONE:
            self._gone.add(row.component)
        if row.component == "everything":
            for component in [*self._since, *self._slow_since]:
                if component not in self._gone:
                    self._end(component, row.t)
        elif row.state in WELL:
            self._end(row.component, row.t)
        elif row.state == SLOW:
            self._slow_since.setdefault(row.component, row.t)
        elif is_failure(row.state):
            self._since.setdefault(row.component, row.t)
        self.maps.see(row)

    def _end(self, component: str, t: int) -> None:
        slow = self._slow_since.pop(component, None)
        if slow is not None:
            self._slow.append(_Outage(component, slow, t))
        start = self._since.pop(component, None)
        if start is not None:
            self._past.append(_Outage(component, start, t))

    def _all(self) -> list[_Outage]:
        """Those of the network, as long as they were."""
        if self._known is None:
            now = [_Outage(component, start, FOR_EVER) for component, start in self._since.items()]
            self._known = list(self._of_the_network(self._past + now))
        return self._known

    def _of_the_network(self, outages: Iterable[_Outage]) -> Iterable[_Outage]:
        for component, start, end in outages:
            for span in self.maps.spans_of(component):
                if start <= span.end and span.start <= end:
                    yield _Outage(component, max(start, span.start), min(end, span.end))

    # --------------------------------------------------------------------------------------------------------- words
    def reaches(self, source: str, target: str, t: int) -> int:
        """When a word that is said at `source`, and kept until it is told, has certainly got to `target`: each two
        brokers on the way have been well together, with their link, for long enough, one pair after the other. A disk
        that was wiped has forgotten it, and is told again by whoever knows; what a change overtook is told again."""
        if not self.changes:
            path = self.path(source, target)
            return self._arrives(path, max(t, *(self._wiped.get(broker, t) for broker in path)))
        while t < FOR_EVER:
            change = next((span for span in self.maps.unsettled if span.end > t), Span(FOR_EVER, FOR_EVER))
            path = self.maps.at(t).path(source, target)
            if change.start <= t:
                t = self._settled_after(change)
            elif not path:
                t = self.maps.next_after(t)
            else:
                arrival = self._arrives(path, t)
                wiped = [self._wiped[broker] for broker in path if t < self._wiped.get(broker, 0) < arrival]
                if change.start < arrival:
                    t = self._settled_after(change)
                elif wiped:
                    t = max(wiped)
                else:
                    return arrival
        return FOR_EVER

    def _arrives(self, path: list[str], t: int) -> int:
        outages = sorted(self._all() + self._slow_disks(), key=lambda outage: outage.start)
        for here, following in pairwise(path):
            needed = (here, following, f"{here}>{following}", f"{following}>{here}")
            concerned = [outage for outage in outages if outage.component in needed and outage.end > t - self.grace]
            if self._prompt and all(outage.start >= t + self._prompt for outage in concerned):
                t += self._prompt
                continue
            for _, start, end in concerned:
                if start < t + self.grace and end > t:
                    t = end
            t += self.grace
        return t

    def _slow_disks(self) -> list[_Outage]:
        return self._slow + [_Outage(component, start, FOR_EVER) for component, start in self._slow_since.items()]

    def _settled_after(self, change: Span) -> int:
        return min(FOR_EVER, change.end + (self.grace if self._is_troubled(change) else SOON))

    def _is_troubled(self, change: Span) -> bool:
        """Whether anything failed while a change was under way, or took its time."""
        outages = self._all() + self._slow_disks()
        return any(start <= change.end and end + self.grace >= change.start for _, start, end in outages)

    # --------------------------------------------------------------------------------------------------------- paths
    def path(self, source: str, target: str) -> list[str]:
        """As it is now; empty if one of them is no member."""
        return [source] if source == target else self.maps.latest.path(source, target)

    def _ways(self, source: str, target: str, start: int, end: int) -> _Ways:
        """All that may have been passed between two times, by any map that was in effect then."""
        found = _Ways(set(), set())
        for layout in self.maps.in_effect(start, end):
            path = layout.path(source, target)
            found.brokers.update(path)
            found.links.update(frozenset(pair) for pair in pairwise(path))
        return found

    def is_member(self, broker: str, t: int) -> bool:
        return broker in self.maps.at(t).near

    def is_former(self, broker: str) -> bool:
        """Whether it belongs to the network no more, or never did."""
        return broker not in self.maps.latest.near

    def is_replaced_since(self, broker: str, t: int) -> bool:
        """Whether a stand-in took a broker's place at that time or later, and is not done long before."""
        return any(span.end >= t for span in self.maps.replacements_of(broker))

    def was_lost_with(self, broker: str, accepted: int, touched: int) -> bool:
        """Whether what was accepted at one time, and came to a broker at another, may be lost with the broker, whose
        place a stand-in took meanwhile: nobody else had it (D0-F5)."""
        spans = self.maps.replacements_of(broker)
        return any(accepted <= span.end and touched <= span.end for span in spans)

    def rejoined(self, broker: str, t: int) -> int:
        """Since when a broker is a member, at a time; of one that was replaced and has its place back, since then."""
        return max((span.start for span in self.maps.spans_of(broker) if span.start <= t), default=t)

    def wiped_since(self, source: str, target: str, t: int) -> bool:
        """Whether a disk of the path was wiped from then on, or lost, with what was stored there; but for a broker that
        is replaced, of which it is known what it had."""
        return any(
            at >= t
            and not (broker in self._gone and self.is_replaced_since(broker, at))
            and any(broker in layout.near for layout in self.maps.in_effect(at, at))
            and broker in self._ways(source, target, t, at).brokers
            for broker, at in self._wiped.items()
        )

    # ------------------------------------------------------------------------------------------------- what is not well
    def is_settled(self, t: int) -> bool:
        """Whether all has been well for a while, now, and with every change that was made."""
        if any(end + self.grace > t for _, _, end in self._all()):
            return False
        return all(t - change.end >= self.grace or not self._is_troubled(change) for change in self.maps.unsettled)

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether something on the path is not well now."""
        path = self.path(source, target)
        if not path:  # one has left, and who knows which way is taken by what it left behind
            return any(end == FOR_EVER for _, _, end in self._all())
        links = {frozenset(pair) for pair in pairwise(path)}
        ways = _Ways(set(path), links)
        return any(ways.has(component) for component in self._since)

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
        ways = self._ways(source, target, t, t + self.grace)
        return any(
            ways.has(component) and start <= t + self.grace and t <= end + self.grace
            for component, start, end in self._all()
        )

    def was_quiet(self, source: str, target: str, t: int) -> bool:
        """Whether what was accepted at `t` has got there before anything of the path failed or changed, or a disk was
        slow, so that no failure that came later took it away."""
        soon = t + self.grace
        slow = any(start <= soon and end >= t for _, start, end in self._slow_disks())
        changing = any(span.start <= soon and span.end >= t for span in self.maps.unsettled)
        return not slow and not changing and not self.touched(source, target, t)

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
        if down and any(span.start < t + TRANSIT and span.end > t - self._notice for span in self.maps.unsettled):
            return True
        near = self.maps.at(t).near
        reached = {source}
        for here in (queue := [source]):
            for beside in near.get(here, ()):
                if beside not in reached and not {beside, f"{here}>{beside}", f"{beside}>{here}"} & down:
                    reached.add(beside)
                    queue.append(beside)
        return target not in reached
