"""A broker with three neighbours, in the simulator: a publisher at n1, subscribers at n2 and n3, and a spare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.sim.run import Factories, header_of, run_scenario
from holdfast.sim.scenario import Action, Broker, Client, Fault, Operate, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema
from holdfast.trace.schema import Row

F, R, NEAR = "f", "r", ("n1", "n2", "n3")
CHECKERS: Final = ("only-matching", "at-most-once", "map-history", "understood")


def replace(at_ms: int, protocol: str = "synch", mode: str = "failover", by: str = R, faulty: str = F) -> Operate:
    told = {"id": faulty, "by": by, "address": by, "peer_address": by, "protocol": protocol, "mode": mode}
    return Operate(at_ms=at_ms, action="replace", told=told)


def relieve(at_ms: int, by: str = R, faulty: str = F) -> Operate:
    return Operate(at_ms=at_ms, action="relieve", told={"id": faulty, "by": by, "address": by, "peer_address": by})


def hand_back(at_ms: int, faulty: str = F) -> Operate:
    return Operate(at_ms=at_ms, action="hand-back", told={"id": faulty, "address": faulty, "peer_address": faulty})


class Played:
    """What came of a run."""

    def __init__(self, rows: list[Row], wrong: list[str], header: schema.Header) -> None:
        self.rows = rows
        self.wrong = wrong
        self.header = header

    def got(self, subscriber: str) -> list[int]:
        """Numbers of the events that a subscriber got, as they came."""
        mine = [row for row in self.rows if isinstance(row, schema.Delivered) and row.subscriber == subscriber]
        return [int(row.event.rpartition("/")[2]) for row in mine]

    def missing(self, subscriber: str) -> list[int]:
        published = sum(isinstance(row, schema.Published) for row in self.rows)
        got = set(self.got(subscriber))
        return [number for number in range(1, published + 1) if number not in got]

    def is_ordered(self, subscriber: str) -> bool:
        return self.got(subscriber) == sorted(self.got(subscriber))

    def carried(self, broker: str) -> int:
        """How many events a broker sent on to subscribers' brokers."""
        hops = [row for row in self.rows if isinstance(row, schema.Hop)]
        return sum(len(hop.events) for hop in hops if hop.source == broker and hop.target in NEAR[1:])

    def routes(self, broker: str, table: str, source: str) -> list[str]:
        """Entries that a broker has from a source at the end."""
        entries: dict[str, None] = {}
        for row in self.rows:
            if isinstance(row, schema.Routed) and (row.node, row.table, row.source) == (broker, table, source):
                if row.present:
                    entries[row.entry] = None
                else:
                    entries.pop(row.entry, None)
        return list(entries)

    def told(self, what: str) -> list[schema.Control]:
        return [row for row in self.rows if isinstance(row, schema.Control) and row.what == what]

    def steps(self, broker: str = "n1") -> list[list[str]]:
        """What was under way by each map that a broker adopted."""
        return [row.detail["steps"] for row in self.told("map-adopted") if row.node == broker]


def play(
    operations: Sequence[Operate],
    faults: Sequence[Fault] = (),
    *,
    level: str = "none",
    every_ms: int = 50,
    until_ms: int = 20_000,
    slow_us: int = 0,
    seed: int = 1,
    more: Sequence[Action] = (),
    settings: dict[str, Any] | None = None,
    factories: Factories | None = None,
    checkers: Sequence[str] = CHECKERS,
    spares: Sequence[str] = (R,),
    only: Sequence[str] = ("s2", "s3"),
    clients: Sequence[Client] = (),
) -> Played:
    """An event each `every_ms`, until 4 s before the end; `slow_us` for each message at the broker in the middle."""
    members = [
        Broker(id=name, durable=True, service_us_per_message=slow_us if name == F else 0)
        for name in ("n1", F, "n2", "n3")
    ]
    actions: list[Action] = [
        *(Subscribe(at_ms=500, client=name, name=name, filter="topic = 't'") for name in ("s2", "s3") if name in only),
        *more,
        *(
            Publish(at_ms=at, client="p", events=[ScenarioEvent(topic="t", attributes={"n": at})])
            for at in range(1_000, until_ms - 4_000, every_ms)
        ),
    ]
    scenario = Scenario(
        name="star",
        seed=seed,
        brokers=[*members, *(Broker(id=name, durable=True, spare=True) for name in spares)],
        links=[("n1", F), (F, "n2"), (F, "n3")],
        settings={"reliability": level, "stand_ins": True, "covering": False, **(settings or {})},
        clients=[
            Client(id="p", brokers=("n1",)), Client(id="s2", brokers=("n2",)), Client(id="s3", brokers=("n3",)),
            Client(id="s4", brokers=("n3",)), *clients,
        ],
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=list(faults),
        operations=list(operations),
        safety_ms=until_ms,
        liveness_ms=30_000,
        checkers=list(checkers),
    )  # fmt: skip
    rows: list[Row] = []

    class Rows:
        def see(self, row: Row) -> None:
            rows.append(row)

    outcome = run_scenario(scenario, factories, [Rows()], stop_at_violation=False)
    wrong = [outcome.broken] if outcome.broken else [str(violation) for violation in outcome.violations]
    return Played(rows, wrong, header_of(scenario))
