"""When fast rounds win and when they lose, over links of 20 ms: simulated, so that it comes out alike everywhere.

    .venv/bin/python -m benchmarks.replication.delays [--write]

The brokers are those that are deployed; time is the simulator's, and only messages (20 ms one way) and disks (0.2 ms)
take any. So a latency is a number of messages in a row: in classic rounds four (to the leader, to the acceptors, their
votes, the answer), in a fast one three, since publishers say what they publish to all replicas (D4-B4). Where several
publish at once, a message takes 15 to 25 ms, drawn for each: what is said at the same time arrives in another order at
each replica, and collides.

`--write` puts the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.replication.document import with_block
from benchmarks.replication.side_by_side import Table, markdown_table
from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.settings import Protocol
from holdfast.sim.latency import Constant, Latency, Uniform
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import (
    Broker,
    Client,
    Fault,
    Kill,
    Network,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.trace import schema
from holdfast.trace.schema import Row
from holdfast.trace.summary import percentile

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"
BLOCK = "benchmarks.replication.delays"
REPLICAS = (3, 5)
QUICK_MS = 70  # between three messages in a row and four
TOGETHER = Constant(delay_us=20_000)
SPREAD = Uniform(low_us=15_000, high_us=25_000)
SYNC_US = (200, 200)
DOWN_AT_MS, BEGIN_MS, REST_MS = 3_000, 5_000, 2_000
TOPIC = "zap"
IDLE = {"Heartbeat", "HeartbeatSeen", "Ping", "Pong"}  # are said whether anybody publishes or not


class Situation(NamedTuple):
    """`per_s` is of each publisher."""

    name: str
    publishers: int
    per_s: float
    seconds: float
    latency: Latency = TOGETHER
    is_one_down: bool = False


ONE = Situation("1 publisher, 2/s", 1, 2.0, 20.0)
ONE_DOWN = Situation("the same, one replica down", 1, 2.0, 20.0, is_one_down=True)
FEW = Situation("3 publishers, 1/s each", 3, 1.0, 20.0, SPREAD)
MANY = Situation("24 publishers, 1/s each", 24, 1.0, 10.0, SPREAD)
CROWD = Situation("24 publishers, 10/s each", 24, 10.0, 5.0, SPREAD)
SITUATIONS = (ONE, ONE_DOWN, FEW, MANY, CROWD)


class Delays(NamedTuple):
    """From publishing to the acknowledgement."""

    p50_ms: float
    p99_ms: float
    quick: float  # the share of publications that took less than QUICK_MS
    messages: float  # of all kinds but idle ones, for each publication

    def __str__(self) -> str:
        return f"{self.p50_ms:.0f}, {self.p99_ms:.0f}; {100 * self.quick:.0f}%; {self.messages:.0f}"


class _Times:
    """What a run's rows say about publications."""

    def __init__(self) -> None:
        self.published: dict[str, int] = {}
        self.took: list[int] = []
        self.messages = 0

    def see(self, row: Row) -> None:
        match row:
            case schema.Published(event=event, t=t):
                self.published[event] = t
            case schema.Acknowledged(event=event, t=t):
                self.took.append(t - self.published[event])
            case schema.Hop(what=what, t=t) if t >= BEGIN_MS * MILLISECOND and what not in IDLE:
                self.messages += 1


def scenario_of(situation: Situation, replicas: int, protocol: Protocol) -> Scenario:
    names = tuple(f"r{number}" for number in range(1, replicas + 1))
    publishers = [f"p{number}" for number in range(situation.publishers)]
    drawn = Random(situation.name)
    moments = sorted(
        (BEGIN_MS + int((turn + drawn.random()) * 1_000 / situation.per_s), publisher)
        for publisher in publishers
        for turn in range(round(situation.per_s * situation.seconds))
    )
    end = BEGIN_MS + int(situation.seconds * 1_000) + REST_MS
    faults: list[Fault] = [Kill(at_ms=DOWN_AT_MS, for_ms=end - DOWN_AT_MS, host=names[-1])]
    event = ScenarioEvent(topic=TOPIC)
    return Scenario(
        name="delays",
        seed=1,
        system="paxos",
        brokers=[Broker(id=name, durable=True, sync_us=SYNC_US) for name in names],
        settings={"protocol": protocol.value},
        network=Network(latency=situation.latency),
        clients=[Client(id=name, brokers=names) for name in ("subscriber", *publishers)],
        actions=[
            Subscribe(at_ms=0, client="subscriber", name="all", filter=f"topic = '{TOPIC}'"),
            *(Publish(at_ms=at, client=publisher, events=[event]) for at, publisher in moments),
        ],
        faults=faults if situation.is_one_down else [],
        safety_ms=end,
        checkers=["exactly-once", "total-order", "complete"],
    )


def measure(situation: Situation, replicas: int, protocol: Protocol) -> Delays:
    """RuntimeError if a promise was broken, or a publication was not acknowledged."""
    times = _Times()
    outcome = run_scenario(scenario_of(situation, replicas, protocol), sinks=[times])
    if not outcome.clean or len(times.took) != len(times.published):
        raise RuntimeError(f"{situation.name}, {replicas}, {protocol.value}: {outcome}")
    took = sorted(times.took)
    return Delays(
        p50_ms=percentile(took, 0.5) / MILLISECOND,
        p99_ms=percentile(took, 0.99) / MILLISECOND,
        quick=sum(each < QUICK_MS * MILLISECOND for each in took) / len(took),
        messages=times.messages / len(took),
    )


def table(replicas: Iterable[int] = REPLICAS, situations: Iterable[Situation] = SITUATIONS) -> Table:
    """The protocols that there are, whichever they are."""
    columns = [situation.name for situation in situations]
    rows = []
    for size in replicas:
        for protocol in Protocol:
            print(f"{size} replicas, {protocol.value}", file=sys.stderr, flush=True)
            rows.append((f"{size}, {protocol.value}", [str(measure(each, size, protocol)) for each in situations]))
    title = (
        f"From publishing to the acknowledgement, p50 and p99 in ms; the share that took less than {QUICK_MS} ms; "
        "messages sent for each publication"
    )
    return Table(title, columns, rows)


def markdown(made: Table) -> Iterator[str]:
    yield "Simulated, the same on every machine; 20 ms one way, or 15 to 25 with several publishers."
    yield from markdown_table(made)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=BLOCK, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="puts the table into docs/performance.md")
    arguments = parser.parse_args(words)
    text = "\n".join(markdown(table()))
    if arguments.write:
        DOCUMENT.write_text(with_block(DOCUMENT.read_text(), text, BLOCK))
    else:
        print(text)


if __name__ == "__main__":
    main()
