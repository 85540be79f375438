"""Real processes that fail: what is predicted, what could have been delivered, and what was.

    python -m experiments.qos.processes --level buffered --seconds 120 --seed 1
    python -m experiments.qos.processes --level bypass+buffered --json FILE

Four brokers in a ring, each a process of its own, with days scaled to seconds: they are on for 20 to 40 seconds on
average and off for 5 to 7, by a schedule that the seed draws, from a stationary start. They are killed (SIGKILL), and
started again. Events live for 3 s. One site file is run and predicted, and says all of this: it could be given to
`holdfast predict` as it is. Each broker has a publisher, which repeats nothing, so that what it publishes while its
broker is off is lost (D1-B4.4), and subscribers to the three others.

Each subscriber's share of events on time is compared with three things: an ideal replay of the outages as they were
observed; the model with these outages' availability and mean; and the model with what the site file says. The first
difference is what the brokers lose by noticing late, by starting up, and by mistakes; the second also holds chance, and
most of the third is chance: in two minutes a broker fails three or four times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from statistics import median

import msgspec

from benchmarks import machine
from experiments.d1.outages import Outage
from experiments.d1.replay import Replay
from experiments.qos.comparison import realised
from experiments.qos.failing_network import Measured, Setup, run
from experiments.qos.report import Agreement, agreement
from holdfast.broker.site import Site
from holdfast.cli.terminal import table
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.parts import NEVER_FAILS
from holdfast.qos.prediction import Model
from holdfast.qos.site_model import model_of
from holdfast.topology.graph import BrokerGraph

LEVELS = [level.value for level in Reliability if level is not Reliability.NONE]


class Row(msgspec.Struct, frozen=True):
    """Of one subscriber, as shares of events on time: as measured, in an ideal replay, by the model with the run's own
    parts and with nominal ones."""

    publisher: str
    subscriber: str
    events: int
    measured: float
    replayed: float
    own: float
    nominal: float


class Comparison(msgspec.Struct, frozen=True):
    """Of one run. `availabilities` and `off_s` are of each broker: as the site file says, and as it was."""

    setup: Setup
    starts_s: list[float]  # how long each start took until the broker was ready
    planned: dict[str, list[Outage]]
    realised: dict[str, list[Outage]]
    availabilities: dict[str, tuple[float, float]]
    off_s: dict[str, tuple[float, float]]
    outcomes: dict[str, int]
    twice: int
    rows: list[Row]

    def agreement(self, predicted: Callable[[Row], float]) -> Agreement:
        return agreement([(predicted(row), row.measured, 1) for row in self.rows])


def compare(setup: Setup) -> Comparison:
    site, measured = run(setup)
    return compared(setup, site, measured)


def compared(setup: Setup, site: Site, measured: Measured) -> Comparison:
    nominal = model_of(site)
    names = [entry.id for entry in site.brokers]
    parts = {name: realised(measured.realised[name], setup.length_s).part for name in names}
    own = Model(PartGraph(parts, dict.fromkeys(site.links, NEVER_FAILS)), site.quality.lifetime_s)
    lifetime_ms = round(site.quality.lifetime_s * 1_000)
    replay = Replay(BrokerGraph(names, site.links), measured.realised, {}, lifetime_ms)
    homes = {one.topic: one.home for one in nominal.publishers}
    rows = []
    for one in nominal.subscribers:
        source, target = homes[one.topic], one.home
        times = [round(at * 1_000) for at in measured.sent[one.topic]]
        rows.append(
            Row(
                source,
                target,
                len(times),
                measured=measured.on_time[one.topic, target] / len(times),
                replayed=replay.share(setup.level, source, target, times),
                own=own.pair(setup.level, source, target),
                nominal=nominal.model.pair(setup.level, source, target),
            )
        )
    graph = nominal.model.graph
    return Comparison(
        setup=setup,
        starts_s=measured.starts_s,
        planned=measured.planned,
        realised=measured.realised,
        availabilities={name: (graph.brokers[name].availability, parts[name].availability) for name in names},
        off_s={name: (_mean_off(graph, name), _mean_off(own.graph, name)) for name in names},
        outcomes=measured.outcomes,
        twice=measured.twice,
        rows=rows,
    )


def _mean_off(graph: PartGraph, name: str) -> float:
    off = graph.brokers[name].off
    return 0.0 if off is None else off.mean


def shown(found: Comparison) -> str:
    setup, starts = found.setup, found.starts_s
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(found.outcomes.items()))
    brokers = [["broker", "outages", "on: nominal", "as it was", "mean off: nominal, s", "as it was, s"]]
    for name, (nominal, own) in found.availabilities.items():
        off = [f"{seconds:.2f}" for seconds in found.off_s[name]]
        brokers.append([name, str(len(found.realised[name])), f"{nominal:.4f}", f"{own:.4f}", *off])
    rows = [["from", "to", "events", "measured", "replay", "own parts", "nominal"]]
    for row in found.rows:
        values = [f"{value:.4f}" for value in (row.measured, row.replayed, row.own, row.nominal)]
        rows.append([row.publisher, row.subscriber, f"{row.events:,}", *values])
    errors = [["measured against", "RMSE", "largest", "measured - predicted, mean"]]
    against: dict[str, Callable[[Row], float]] = {
        "replay": lambda row: row.replayed,
        "own parts": lambda row: row.own,
        "nominal": lambda row: row.nominal,
    }
    for what, get in against.items():
        how = found.agreement(get)
        errors.append([what, f"{how.rmse:.4f}", f"{how.largest:.4f}", f"{how.bias:+.4f}"])
    return "\n".join(
        [
            f"{setup.level.value}: {setup.seconds:g} s, seed {setup.seed}, {setup.rate:g} events/s of each publisher, "
            f"lifetime {setup.lifetime_s:g} s",
            f"a broker is ready {median(starts):.2f} s after its start (median of {len(starts)}; "
            f"{min(starts):.2f} to {max(starts):.2f} s)",
            f"publishers were told: {told}; {found.twice:,} events came twice",
            *("", table(brokers), "", table(rows), "", table(errors)),
        ]
    )


def page(every: Sequence[Comparison]) -> str:
    here = ", ".join(f"{name}: {value}" for name, value in machine.description().items())
    setup = every[0].setup
    shown_all = "\n\n".join(f"## {one.setup.level.value}\n\n```\n{shown(one)}\n```" for one in every)
    return f"""# Real processes that fail

What subscribers of four broker processes got while these were killed and started again, and what was predicted from the
same site file. Made by `python -m experiments.qos.processes --seconds {setup.seconds:g} --seed {setup.seed}` with
`--page` on {here}. A day is a second: brokers are on for 20 to 40 s on average, and off for 5 to 7.

*replay* is what could have been delivered while brokers were on as they were observed to be; *own parts* are the
formulas with these outages' availability and mean; *nominal* with those of the site file, from which a run as short as
this differs by chance: a broker fails three or four times.

{shown_all}
"""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.qos.processes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--level", choices=LEVELS, default="buffered")
    parser.add_argument("--seconds", type=_seconds, default=120.0, help="for which events are published")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, metavar="FILE", help="all levels, one after the other, written as a page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes everything that was compared")
    arguments = parser.parse_args(words)
    if arguments.json and not arguments.json.parent.is_dir():
        parser.error(f"--json: there is no folder {str(arguments.json.parent)!r}")
    if arguments.page:
        every = [
            compare(Setup(level=Reliability(name), seconds=arguments.seconds, seed=arguments.seed)) for name in LEVELS
        ]
        arguments.page.write_text(page(every))
        print(f"written: {arguments.page}")
        return
    found = compare(Setup(level=Reliability(arguments.level), seconds=arguments.seconds, seed=arguments.seed))
    print(shown(found))
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        print(f"written: {arguments.json}")


if __name__ == "__main__":
    main()
