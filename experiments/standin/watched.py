"""A run in which somebody listens: every message on every link, who dials whom, and all rows of the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.kernel.messages import Message
from holdfast.kernel.queues import Queued
from holdfast.schemes.tree.standin.messages import STAND_IN_MESSAGES
from holdfast.sim.machine import Machine
from holdfast.sim.network import End, Network
from holdfast.sim.run import Factories, Outcome, run_scenario
from holdfast.sim.scenario import Scenario
from holdfast.sim.simulation import Simulation
from holdfast.trace import schema
from holdfast.trace.schema import Row

CONVERSATION: Final = tuple(STAND_IN_MESSAGES.values())
MILLISECOND: Final = 1_000_000


# Broker → (table, entry) → by whom it was told that; empty: the broker's own clients.
Tables = dict[str, dict[tuple[str, str], set[str]]]


class Said(NamedTuple):
    """A message that was put on a link."""

    t: int
    source: str
    target: str
    message: Message


class Listening(Simulation):
    """Of one run; `watched` is set by whoever makes the type."""

    watched: Watched

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.watched.simulation = self
        dialled, connect = self.watched.dialled, self.network.connect

        def dial(station: Any, *rest: Any) -> None:
            dialled[station.name, rest[1]] += 1
            connect(station, *rest)

        setattr(self.network, Network.connect.__name__, dial)

    def note_hops(self, machine: Machine, end: End, entries: list[Queued]) -> None:
        super().note_hops(machine, end, entries)
        target = end.other.station.name
        self.watched.said += [Said(self.now, machine.name, target, entry.message) for entry in entries]


class Watched:
    """What was seen of one run."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.said: list[Said] = []
        self.dialled: Counter[tuple[str, str]] = Counter()  # who dialled which address, and how often
        self.simulation: Simulation | None = None
        self.outcome: Outcome | None = None

    def see(self, row: Row) -> None:
        self.rows.append(row)

    def play(self, scenario: Scenario, factories: Factories | None = None) -> Outcome:
        """To its end, whatever is violated."""
        listening = type("ListeningHere", (Listening,), {"watched": self})
        watched = msgspec.structs.replace(factories or Factories(), simulation=listening)
        self.outcome = run_scenario(scenario, watched, [self], stop_at_violation=False)
        return self.outcome

    # ---------------------------------------------------------------------------------------------------- questions
    def conversation(self, *types: type[Message]) -> list[Said]:
        """What a stand-in and its neighbours said to each other."""
        return [said for said in self.said if isinstance(said.message, types or CONVERSATION)]

    def between(self, start_ms: int, end_ms: int, among: Callable[[str], bool]) -> Iterator[Said]:
        """What was said between two times on links between these."""
        for said in self.said:
            in_time = start_ms * MILLISECOND <= said.t < end_ms * MILLISECOND
            if in_time and among(said.source) and among(said.target):
                yield said

    def delivered(self, subscriber: str) -> list[int]:
        """The numbers of the events that it got, in their order; of one publisher."""
        found = [row for row in self.rows if isinstance(row, schema.Delivered) and row.subscriber == subscriber]
        return [number_of(row.event) for row in found]

    def published(self, publisher: str) -> list[int]:
        found = [row for row in self.rows if isinstance(row, schema.Published) and row.publisher == publisher]
        return [number_of(row.event) for row in found]

    def happened(self, what: str) -> list[schema.Control]:
        return [row for row in self.rows if isinstance(row, schema.Control) and row.what == what]

    def hops(self, source: str, target: str) -> list[schema.Hop]:
        """Messages with events."""
        rows = [row for row in self.rows if isinstance(row, schema.Hop) and row.events]
        return [row for row in rows if (row.source, row.target) == (source, target)]

    def tables(self) -> Tables:
        """At the end."""
        tables: Tables = {}
        for row in self.rows:
            follow(tables, row)
        return tables

    def part(self, broker: str, name: str) -> Any:
        """A part of a broker's node, as it is at the end."""
        assert self.simulation is not None
        node: Any = self.simulation.machines[broker].node
        (part,) = [part for part in node.parts if part.name == name]
        return part


def follow(tables: Tables, row: Row) -> None:
    """What a row of the trace says of tables."""
    if isinstance(row, schema.Fault) and row.state == "crashed":
        tables.pop(row.component, None)
    elif isinstance(row, schema.Routed):
        entries, key = tables.setdefault(row.node, {}), (row.table, row.entry)
        if row.present:
            entries.setdefault(key, set()).add(row.source)
        elif key in entries:
            entries[key].discard(row.source)
            if not entries[key]:
                del entries[key]


def number_of(event: str) -> int:
    return int(event.rpartition("/")[2])


def doubled(tables: Tables) -> list[tuple[str, str, str]]:
    """Entries that a broker has from two sides (D0-C19)."""
    return [
        (node, table, entry)
        for node, entries in tables.items()
        for (table, entry), sources in entries.items()
        if len(sources) > 1
    ]


def circular(tables: Tables) -> list[tuple[str, str, str]]:
    """Entries whose sources, followed from broker to broker, lead back to one that was met before (D0-C19)."""
    return [
        (node, table, entry)
        for node, entries in tables.items()
        for table, entry in entries
        if _comes_around(tables, node, (table, entry), (node,))
    ]


def _comes_around(tables: Tables, node: str, key: tuple[str, str], met: tuple[str, ...]) -> bool:
    for source in sorted(tables.get(node, {}).get(key, ())):
        if source in met or (source and _comes_around(tables, source, key, (*met, source))):
            return True
    return False
