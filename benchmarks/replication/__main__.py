"""Measures all groups and prints the report: `.venv/bin/python -m benchmarks.replication`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import replication
from benchmarks.machine import description
from benchmarks.replication.document import with_block
from benchmarks.replication.loads import Job
from benchmarks.replication.measure import Offered, Saturated, offer, running, saturate
from benchmarks.replication.paper import OFFERED, PUBLISHERS, REPLICAS
from benchmarks.replication.report import markdown_lines, text_lines
from benchmarks.replication.results import PROTOCOLS, ROUNDS, SECONDS, Results
from benchmarks.replication.zaps import prepare
from holdfast.schemes.paxos.settings import Protocol

EVENTS = 96_000  # as many for each of 1, 3, 6, 12 and 24 publishers
DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"


def groups_in_turn(number: int, replicas: Sequence[int] = REPLICAS) -> list[int]:
    """The groups in the order of a round: each round is begun by another."""
    first = number % len(replicas)
    return [*replicas[first:], *replicas[:first]]


def run(arguments: argparse.Namespace) -> Results:
    seconds, events = (SECONDS / 4, EVENTS // 5) if arguments.quick else (SECONDS, EVENTS)
    offered: list[Offered] = []
    saturated: list[Saturated] = []
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="holdfast-zaps-") as zaps:
        prepare(Path(zaps), PUBLISHERS[-1], round(OFFERED[1] * seconds))
        for number in range(arguments.rounds):
            _tell(f"round {number + 1} of {arguments.rounds}, load {os.getloadavg()[0]:.1f}")
            for replicas in groups_in_turn(number):
                if arguments.only != "saturated":
                    offered += _offer_all(replicas, arguments.protocol, seconds, number, arguments.folder, zaps)
                if arguments.only != "offered":
                    for protocol in PROTOCOLS if replicas > 1 else ("",):
                        saturated += _saturate_all(replicas, protocol, events, number, arguments.folder)
    return Results(
        machine=description(),
        load_before=load_before,
        rounds=arguments.rounds,
        seconds=seconds,
        protocol=arguments.protocol,
        events=events,
        offered=offered,
        saturated=saturated,
    )


def _offer_all(
    replicas: int, protocol: str, seconds: float, number: int, folder: str | None, zaps: str
) -> list[Offered]:
    runs = []
    with running(replicas, protocol, folder) as group:
        warm_up = Job(group.url, 3, 100.0, 0.5, zaps=zaps)
        offer(warm_up, replicas, number)
        for publishers in PUBLISHERS:
            runs.append(offer(Job(group.url, publishers, OFFERED[publishers], seconds, zaps=zaps), replicas, number))
            _tell(f"  {replicas} replicas, {publishers:2} publishers: p50 {runs[-1].p50_ms:.2f} ms")
    return runs


def _saturate_all(replicas: int, protocol: str, events: int, number: int, folder: str | None) -> list[Saturated]:
    runs = []
    with running(replicas, protocol, folder) as group:
        for publishers in PUBLISHERS:
            runs.append(saturate(Job(group.url, publishers, 0.0, 0.0, events), group.pids, protocol, number))
            costs = ", ".join(f"{cost:.2f}" for cost in runs[-1].cpu_us)
            load = f"{replicas} replicas {protocol:5}, {publishers:2} publishers"
            _tell(f"  {load}: {runs[-1].per_s:,.0f} events/s, {costs} µs each")
    return runs


def read(path: str) -> Results:
    return msgspec.json.decode(Path(path).read_bytes(), type=Results)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.replication", description=(replication.__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of everything; {ROUNDS} if not said")
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--only", choices=["offered", "saturated"], help="one of the two parts")
    parser.add_argument(
        "--protocol",
        choices=[protocol.value for protocol in Protocol],
        default="multi",
        help="with offered loads (the paper's: multi)",
    )
    parser.add_argument("--folder", help="where replicas keep their data (default: a temporary folder)")
    parser.add_argument("--read", metavar="FILE", help="report what an earlier run with --json printed")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every round, as JSON")
    form.add_argument("--markdown", action="store_true", help="the block of docs/performance.md")
    form.add_argument("--write", action="store_true", help="puts that block into docs/performance.md")
    arguments = parser.parse_args(words)
    results = read(arguments.read) if arguments.read else run(arguments)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(results)).decode())
    elif arguments.write:
        DOCUMENT.write_text(with_block(DOCUMENT.read_text(), "\n".join(markdown_lines(results))))
    else:
        print("\n".join((markdown_lines if arguments.markdown else text_lines)(results)))


if __name__ == "__main__":
    main()
