"""The paper's four metrics, and what was lost, from the rows of a trace (D0-E2 to E5).

What came to a neighbour by the stand-in came when the stand-in put it on the link. What a neighbour handed on, in the
order in which its subscribers get it, it handed on when it first gave it to one of its clients. Events are known by
their values; a subscription by its neighbour and its threshold, and there may be many that are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from experiments.standin.setting import FAULTY, STAND_IN, Setting
from experiments.standin.workload import ATTRIBUTE
from holdfast.trace import schema
from holdfast.trace.schema import Row

SECOND: Final = 1_000_000_000


class Came(msgspec.Struct, frozen=True):
    """An event at a neighbour."""

    t: int
    event: str
    via: str


class Seen:
    """What metrics need of a trace."""

    def __init__(self, brokers: Iterable[str]) -> None:
        self.values: dict[str, int] = {}  # of events, in the order of their publication
        self.asks: dict[str, int] = {}  # neighbour → when the stand-in asked it …
        self.asked: dict[str, int] = {}  # … and when it was asked
        self.done = 0
        self.came: dict[str, list[Came]] = {}  # to a neighbour, each event once
        self.handed: dict[str, list[Came]] = {}
        self._brokers = frozenset(brokers)
        self._known: set[tuple[str, str, bool]] = set()

    def see(self, row: Row) -> None:
        match row:
            case schema.Published():
                self.values[row.event] = int(row.attributes[ATTRIBUTE])
            case schema.Hop() if row.events and row.source in self._brokers:
                if row.source in (STAND_IN, FAULTY) and row.target in self._brokers:
                    self._note(self.came.setdefault(row.target, []), row, row.target, False)
                elif row.target not in self._brokers:
                    self._note(self.handed.setdefault(row.source, []), row, row.source, True)
            case schema.Control(what="stand-in-asks"):
                self.asks.setdefault(row.detail["neighbour"], row.t)
            case schema.Control(what="stand-in-asked"):
                self.asked.setdefault(row.node, row.t)
            case schema.Control(what="stand-in-done"):
                self.done = row.t
            case _:
                pass

    def _note(self, among: list[Came], row: schema.Hop, broker: str, is_handed: bool) -> None:
        for event in row.events:
            key = (broker, event, is_handed)
            if key not in self._known:
                self._known.add(key)
                among.append(Came(row.t, event, row.source))

    @property
    def replication_ns(self) -> int:
        """From the first request of the stand-in until it has all subscriptions (D0-E5)."""
        return self.done - min(self.asks.values())


class Measured(msgspec.Struct, frozen=True):
    """Of one run; times in milliseconds. None: there is nothing to measure."""

    pdrd_ms: float | None
    lmpt_ms: float | None
    replication_ms: float | None
    rank: float | None  # ordering degree, of what came
    penalised: float | None  # … and with what did not
    dropped: float | None  # share of what subscriptions should have got
    per_s: float | None  # events handed on
    silent: float | None  # share of subscriptions that got nothing


def measure(setting: Setting, seen: Seen, handed: bool = False) -> Measured:
    """`handed`: events count as they are handed on, and not as they come: where neighbours put them in order."""
    streams = seen.handed if handed else seen.came
    groups = [(name, threshold, count) for name, wanted in setting.thresholds().items()
              for threshold, count in sorted(Counter(wanted).items())]  # fmt: skip
    pdrds: list[tuple[float, int]] = []
    lmpts: list[tuple[float, int]] = []
    ranks: list[tuple[float, int]] = []
    penalised: list[tuple[float, int]] = []
    expected = lacking = wanting = silent = 0
    order = {event: place for place, event in enumerate(seen.values)}
    for name, threshold, count in groups:
        wanted = [event for event, value in seen.values.items() if value > threshold]
        if not wanted:
            continue
        stream = streams.get(name, [])
        mine = [came for came in stream if seen.values.get(came.event, 0) > threshold]
        by = [came for came in seen.came.get(name, []) if came.via == STAND_IN]
        first = next((came.t for came in by if seen.values.get(came.event, 0) > threshold), None)
        wanting += count
        expected += count * len(wanted)
        lacking += count * (len(wanted) - len(mine))
        if first is None:
            silent += count
        else:
            pdrds.append(((first - seen.asked[name]) / 1e6, count))
            lmpts.append(((max(came.t for came in stream) - first) / 1e6, count))
        places = [order[came.event] for came in mine]
        if places:
            ranks.append((ordering_degree(places), count))
        full = {order[event]: number for number, event in enumerate(wanted)}
        penalised.append((ordering_degree_penalised([full[place] for place in places], len(wanted)), count))
    times = [came.t for stream in streams.values() for came in stream]
    return Measured(
        pdrd_ms=_mean(pdrds),
        lmpt_ms=_mean(lmpts),
        replication_ms=seen.replication_ns / 1e6 if seen.done and seen.asks else None,
        rank=_mean(ranks),
        penalised=_mean(penalised),
        dropped=lacking / expected if expected else None,
        per_s=len(times) * SECOND / max(1, max(times) - min(times)) if times else None,
        silent=silent / wanting if wanting else None,
    )


def _mean(weighed: Sequence[tuple[float, int]]) -> float | None:
    weight = sum(count for _, count in weighed)
    return sum(value * count for value, count in weighed) / weight if weight else None


def ordering_degree(places: Sequence[int]) -> float:
    """The paper's sum over displacements, normalised (D0-D5), of what came, by rank: 1 is perfect order, and nothing
    is below 0.5 (D0-D5.1). `places` says which in the order of publication came first, second, …"""
    ranks = {place: rank for rank, place in enumerate(sorted(places))}
    return ordering_degree_penalised([ranks[place] for place in places], len(places))


def ordering_degree_penalised(places: Sequence[int], count: int) -> float:
    """The same of all that should have come, `count`: what did not adds nothing, and what came behind it is displaced
    by it. `places` are among all that should have come."""
    if not count:
        return 1.0
    return sum(count - abs(place - number) for number, place in enumerate(places)) / count**2


def displacements(places: Sequence[int]) -> Mapping[int, int]:
    """f(D): how many were displaced by how much."""
    return Counter(abs(place - number) for number, place in enumerate(places))


def speed_from(seen: Seen, start_ms: int) -> float | None:
    """Events a second that neighbours handed on from then until the last."""
    times = [came.t / 1e6 - start_ms for stream in seen.handed.values() for came in stream]
    later = [t for t in times if t > 0]
    return 1_000 * len(later) / max(later) if later else None
