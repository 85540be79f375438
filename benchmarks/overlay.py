"""Networks of brokers: how fast events get through chains, and what tables and messages cost.

    python -m benchmarks.overlay --chain                         # real processes: 1, 2 and 4 brokers, all levels
    # the simulator: 10 to 100 brokers, 50 to 500 subscriptions
    python -m benchmarks.overlay --tables
    python -m benchmarks.overlay --tables --brokers 10,50,100,500 --subscriptions 50,500,5000 --to docs
    python -m benchmarks.overlay --read docs/overlay-results/overlay.json       # draws it again, measures nothing

`overlay_chain` and `overlay_tables` say what is measured. Rounds of a chain take the levels in turn, so that a ratio
is of runs that stand side by side; the best round of each counts. A broker alone has no level, and is measured once.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from matplotlib.figure import Figure

from benchmarks.machine import description
from benchmarks.overlay_chain import Chain, best, measure_chain
from benchmarks.overlay_plot import Diagram, draw
from benchmarks.overlay_tables import Tables, measure_tables
from experiments.drawing import as_svg
from holdfast.protocols.routing.settings import Reliability

ROUNDS = 5
EVENTS = 50_000
LENGTHS = (1, 2, 4)
BUFFERED_WANTED = 0.6  # of what `none` carries
NAMES = {True: "with covering", False: "without"}


def run_chains(levels: Sequence[Reliability], lengths: Sequence[int], rounds: int, events: int) -> list[Chain]:
    chains = [
        measure_chain(level, brokers, events, number)
        for number in range(rounds)
        for brokers in lengths
        for level in (levels if brokers > 1 else levels[:1])
    ]
    found = best(chains)
    print(f"\nevents a second through a chain, {events:,} events, best of {rounds}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':16}" + "".join(f"{f'{brokers} brokers':>20}" for brokers in lengths))
    for level in levels:
        cells = []
        for brokers in lengths:
            per_s, base = found.get((level.value, brokers)), found.get((Reliability.NONE.value, brokers))
            share = f" ({per_s / base:.0%})" if per_s and base else ""
            cells.append(f"{per_s:,.0f}{share}" if per_s else "")
        print(f"{level.value:16}" + "".join(f"{cell:>20}" for cell in cells))
    if Reliability.NONE in levels and Reliability.BUFFERED in levels:
        print(f"in brackets: of what `none` carries; `buffered` is wanted to keep {BUFFERED_WANTED:.0%}")
    return chains


def run_tables(brokers: Sequence[int], subscriptions: Sequence[int]) -> list[Tables]:
    """All brokers with the most subscriptions, and the most brokers with all subscriptions."""
    pairs = dict.fromkeys(
        [*((count, subscriptions[-1]) for count in brokers), *((brokers[-1], n) for n in subscriptions)]
    )
    print(
        "\nbrokers  subscriptions  covering  forwards/event  deliveries/event  messages of routes  entries, mean  max"
    )
    tables = []
    for count, wanted in pairs:
        for covering in (True, False):
            one = measure_tables(count, wanted, covering)
            tables.append(one)
            print(
                f"{count:7}  {wanted:13}  {'yes' if covering else 'no':8}  {one.forwards_per_event:14.2f}  "
                f"{one.deliveries_per_event:16.2f}  {one.routes_messages:18,}  {one.entries_mean:13,.1f}  "
                f"{one.entries_max:,}",
                flush=True,
            )
    return tables


def picture(tables: Sequence[Tables]) -> Figure:
    brokers, subscriptions = max(one.brokers for one in tables), max(one.subscriptions for one in tables)
    by_brokers = [one for one in tables if one.subscriptions == subscriptions]
    by_subscriptions = [one for one in tables if one.brokers == brokers]

    def lines(of: Sequence[Tables], x: str, y: str) -> dict[str, list[tuple[float, float]]]:
        return {
            name: sorted((float(getattr(one, x)), float(getattr(one, y))) for one in of if one.covering is covering)
            for covering, name in NAMES.items()
        }

    at_brokers, at_subscriptions = f"brokers; {subscriptions:,} subscriptions", f"subscriptions; {brokers:,} brokers"
    return draw(
        "Random trees: what events and subscriptions cost",
        [
            Diagram("forwards per event", at_brokers, lines(by_brokers, "brokers", "forwards_per_event")),
            Diagram("entries of a table, mean", at_brokers, lines(by_brokers, "brokers", "entries_mean")),
            Diagram(
                "entries of a table, mean", at_subscriptions, lines(by_subscriptions, "subscriptions", "entries_mean")
            ),
            Diagram(
                "messages of routes", at_subscriptions, lines(by_subscriptions, "subscriptions", "routes_messages")
            ),
        ],
    )


def _write_picture(tables: Sequence[Tables], folder: Path) -> Path:
    path = folder / "overlay-tables.svg"
    path.write_text(as_svg(picture(tables)))
    return path


def _numbers(text: str) -> list[int]:
    return sorted(int(word) for word in text.split(","))


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.overlay", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chain", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--lengths", type=_numbers, default=list(LENGTHS), help="of chains, in brokers")
    parser.add_argument("--levels", default=",".join(level.value for level in Reliability))
    parser.add_argument("--brokers", type=_numbers, default=[10, 30, 100])
    parser.add_argument("--subscriptions", type=_numbers, default=[50, 150, 500])
    parser.add_argument("--to", type=Path, help="a folder for overlay-tables.svg and overlay.json")
    parser.add_argument("--read", type=Path, metavar="FILE", help="an overlay.json: draws it again, measures nothing")
    arguments = parser.parse_args(words)
    if arguments.read:
        read = msgspec.convert(msgspec.json.decode(arguments.read.read_bytes())["tables"], list[Tables])
        print(f"written: {_write_picture(read, arguments.read.parent)}")
        return
    print(", ".join(f"{name}: {value}" for name, value in description().items()))
    chains: list[Chain] = []
    tables: list[Tables] = []
    if arguments.chain:
        levels = [Reliability(level) for level in arguments.levels.split(",")]
        chains = run_chains(levels, arguments.lengths, arguments.rounds, arguments.events)
    if arguments.tables:
        tables = run_tables(arguments.brokers, arguments.subscriptions)
    if arguments.to:
        arguments.to.mkdir(parents=True, exist_ok=True)
        found = {"machine": description(), "chains": chains, "tables": tables}
        (arguments.to / "overlay.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        if tables:
            _write_picture(tables, arguments.to)
        print(f"written: {arguments.to}")


if __name__ == "__main__":
    main()
