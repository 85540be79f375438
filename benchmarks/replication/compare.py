"""The protocols of a group side by side, in processes of their own on loopback.

    .venv/bin/python -m benchmarks.replication.compare [--rounds 3] [--quick] [--write]

As `benchmarks.replication` measures, with 1 and with 24 publishers, for groups of 3 and 5. With fast rounds publishers
talk to all replicas, as clients do if nobody forbids it. On loopback a message costs next to nothing to wait for and a
lot to handle, so that fast rounds are at their worst here; `benchmarks.replication.delays` has what a network changes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.machine import description
from benchmarks.replication.__main__ import groups_in_turn
from benchmarks.replication.document import with_block
from benchmarks.replication.loads import Job
from benchmarks.replication.measure import Offered, Saturated, offer, running, saturate
from benchmarks.replication.paper import OFFERED
from benchmarks.replication.report import BUSY_LOAD
from benchmarks.replication.side_by_side import Table, markdown_table
from benchmarks.replication.zaps import prepare
from holdfast.apps.zapviewers.generator import BOXES
from holdfast.schemes.paxos.settings import Protocol

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"
BLOCK = "benchmarks.replication.compare"
REPLICAS = (3, 5)
PUBLISHERS = (1, 24)
ROUNDS = 3
SECONDS = 4.0
EVENTS = 48_000
PROTOCOLS = tuple(protocol.value for protocol in Protocol)  # those that there are, whichever they are


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A group with one number of publishers, in all rounds."""

    replicas: int
    protocol: str
    publishers: int
    offered: list[Offered]
    saturated: list[Saturated]

    @property
    def p50_ms(self) -> float:
        return min(run.p50_ms for run in self.offered)

    @property
    def p99_ms(self) -> float:
        return statistics.median(run.p99_ms for run in self.offered)

    @property
    def per_s(self) -> float:
        return max(run.per_s for run in self.saturated)

    @property
    def lost(self) -> int:
        return sum(run.lost for run in self.offered)


def compare(
    rounds: int,
    seconds: float,
    events: int,
    replicas: Sequence[int] = REPLICAS,
    protocols: Sequence[str] = PROTOCOLS,
    tell: Callable[[str], None] = lambda _: None,
    boxes: int = BOXES,
) -> list[Compared]:
    places = [(size, protocol, count) for size in replicas for protocol in protocols for count in PUBLISHERS]
    found = {
        place: Compared(replicas=place[0], protocol=place[1], publishers=place[2], offered=[], saturated=[])
        for place in places
    }
    groups = range(len(replicas) * len(protocols))
    with tempfile.TemporaryDirectory(prefix="holdfast-zaps-") as zaps:
        prepare(Path(zaps), PUBLISHERS[-1], round(OFFERED[1] * seconds), boxes)
        for number in range(rounds):
            for group in groups_in_turn(number, groups):
                size, protocol = replicas[group // len(protocols)], protocols[group % len(protocols)]
                tell(f"round {number + 1} of {rounds}: {size} replicas, {protocol}, load {os.getloadavg()[0]:.1f}")
                with running(size, protocol) as (url, pids):
                    offer(Job(url, 3, 100.0, 0.5, zaps=zaps), size, number)  # to warm up
                    for count in PUBLISHERS:
                        one = found[size, protocol, count]
                        one.offered.append(offer(Job(url, count, OFFERED[count], seconds, zaps=zaps), size, number))
                        one.saturated.append(saturate(Job(url, count, 0.0, 0.0, events), pids, protocol, number))
    return list(found.values())


def table(compared: Sequence[Compared]) -> Table:
    columns = []
    for count in PUBLISHERS:
        columns += [f"#p={count}: p50, p99 in ms", f"#p={count}: saturated, events/s"]
    rows: dict[str, list[str]] = {}
    for one in compared:
        cells = rows.setdefault(f"{one.replicas}, {one.protocol}", [])
        cells += [f"{one.p50_ms:.2f}, {one.p99_ms:.2f}", f"{one.per_s:,.0f}"]
    return Table(
        "Publications at the paper's rates, and small events as fast as they are taken", columns, [*rows.items()]
    )


def markdown(compared: Sequence[Compared], rounds: int, load: float) -> Iterator[str]:
    machine = description()
    yield (
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['date']}; "
        f"rounds: {rounds}; load {load:.1f} before the first. p50 and saturated are of the best round, p99 is the "
        f"median of the rounds. Deliveries lost: {sum(one.lost for one in compared)}."
    )
    if load >= BUSY_LOAD * int(machine["cores"]) or rounds < ROUNDS:
        yield f"\n**Preliminary**: the machine was busy with other work, or there were fewer than {ROUNDS} rounds."
    yield from markdown_table(table(compared))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=BLOCK, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--write", action="store_true", help="puts the table into docs/performance.md")
    arguments = parser.parse_args(words)
    load = os.getloadavg()[0]
    seconds, events = (SECONDS / 4, EVENTS // 10) if arguments.quick else (SECONDS, EVENTS)

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    compared = compare(arguments.rounds, seconds, events, REPLICAS, arguments.protocols, tell)
    text = "\n".join(markdown(compared, arguments.rounds, load))
    if arguments.write:
        DOCUMENT.write_text(with_block(DOCUMENT.read_text(), text, BLOCK))
    else:
        print(text)


if __name__ == "__main__":
    main()
