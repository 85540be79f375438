"""`holdfast sim`: a site under the simulator, with faults, by seed."""

from __future__ import annotations

import argparse
import gzip
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import ApplicationEntry, Site
from holdfast.cli.applications import application_of
from holdfast.cli.main import CHECK_FAILED, INTERRUPTED, OK
from holdfast.errors import ScenarioError
from holdfast.runtime.site_file import read_site
from holdfast.sim.campaign import Campaign, Source, run_campaign, scenario_for
from holdfast.sim.latency import RoundTripMatrix
from holdfast.sim.run import Factories, Outcome, header_of, run_scenario
from holdfast.sim.scenario import Broker, HostedApplication, Scenario
from holdfast.sim.scenario_file import scenario_from_json, scenario_to_json
from holdfast.sim.shrink import count_pieces, shrink
from holdfast.sim.swarm import Shape, swarm_of
from holdfast.trace.checkers import make_checker
from holdfast.trace.schema import Row
from holdfast.trace.writer import TraceWriter

BAR_CHARACTERS = 30
SHOWN_VIOLATIONS = 5
SHRUNK_FAILURES = 3
SHRINK_SECONDS = 20
SEEDS_MAX = 10**9

EXAMPLES = """\
examples:
  holdfast sim site.toml --seeds 1..1000 --jobs 2       break the site in a thousand ways
  holdfast sim site.toml --replay 17 --trace run.jsonl  one of them again, with its trace
  {drawn:52}  runs of brokers that each seed draws
  holdfast sim --replay failures/site-17.json           a failure that was saved
  holdfast sim --scenario mine.json --seeds 1..50       a scenario of your own, under fifty seeds
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to run, how often, and what to keep."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES.format(drawn=f"holdfast sim --system {[*_shapes()][-1]} --seeds 1..100")
    parser.add_argument("site", metavar="SITE", nargs="?", help="a site file (default: one broker, drawn by each seed)")
    parser.add_argument(
        "--system",
        choices=tuple(_shapes()),
        help=f"without a site file, what each seed draws (default {SCHEMES.kinds[0]}); {_shapes_told()}",
    )
    parser.add_argument("--seeds", type=_seeds, metavar="A..B", help="which seeds (default 1..100)")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="processes to use (default 1)")
    parser.add_argument("--scenario", metavar="FILE", help="run this scenario, instead of drawing one for each seed")
    parser.add_argument("--replay", metavar="SEED|FILE", help="run one seed, or one saved scenario, and say more")
    parser.add_argument("--trace", metavar="FILE", help="with --replay: write the trace here (.gz compresses it)")
    parser.add_argument(
        "--checkers", metavar="A,B", help="ask these checkers, instead of those that the scenario names"
    )
    parser.add_argument("--write-scenario", metavar="FILE", help="with --replay: write the scenario here")
    parser.add_argument(
        "--failures", metavar="FOLDER", default="failures", help="where failing scenarios are saved (default failures)"
    )
    parser.add_argument(
        "--no-shrink",
        action="store_true",
        help="leave failing scenarios as they are; else the first three are made small",
    )
    parser.set_defaults(run=_run)


def _shapes() -> dict[str, Shape]:
    """What is drawn without a site file, by name."""
    return {name: shape for kind in SCHEMES.kinds for name, shape in swarm_of(kind).shapes.items()}


def _shapes_told() -> str:
    return "; ".join(f"{', '.join(swarm_of(kind).shapes)}: {SCHEMES[kind].about}" for kind in SCHEMES.kinds)


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds: write 17 or 1..1000") from None
    if int(last if dots else first) - int(first) >= SEEDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} holds more than {SEEDS_MAX:,} seeds")
    if not seeds or seeds[0] < 0:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed: write the smaller number first, from 0 on")
    return seeds


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes: give 1 or more")
    return int(text)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.site and arguments.scenario:
        raise ScenarioError("a site and a scenario are given", "holdfast sim", "a scenario names its own brokers")
    if arguments.system and (arguments.site or arguments.scenario):
        given = "a site" if arguments.site else "a scenario"
        raise ScenarioError(f"--system and {given} are given", "holdfast sim", f"{given} says itself what it is")
    if arguments.replay is not None:
        if arguments.seeds is not None:
            raise ScenarioError("--replay and --seeds are given", "holdfast sim", "use one of them")
        return _replay(arguments)
    for option in ("trace", "write_scenario"):
        if getattr(arguments, option) is not None:
            raise ScenarioError(f"--{option.replace('_', '-')} is for one run", "holdfast sim", "use it with --replay")
    return _campaign(arguments)


# ---------------------------------------------------------------------------------------------------------- sources
def _source(arguments: argparse.Namespace) -> Source:
    if arguments.scenario:
        return _with_checkers(_read_scenario(arguments.scenario), arguments)
    if not arguments.site:
        return _shapes()[arguments.system or SCHEMES.kinds[0]]
    site = read_site(arguments.site)
    shape, make_application = shape_of(site), application_of(site.application, arguments.site)
    if site.application is None or make_application is None:
        return shape
    topics = tuple(sorted(make_application().topics))
    hosted = HostedApplication(factory=site.application.factory, settings=site.application.settings, topics=topics)
    return replaced(shape, application=hosted)


def _factories(source: Source) -> Factories | None:
    """With what makes the application that is hosted, if one is."""
    named = source.application
    if named is None:
        return None
    entry = ApplicationEntry(factory=named.factory, settings=named.settings)
    return Factories(application=application_of(entry, source.name))


def shape_of(site: Site) -> Shape:
    """What is drawn for a site: its brokers as they are described, everything around them by seed."""
    brokers = [
        Broker(
            id=entry.id,
            durable=entry.durable,
            sessions=site.limits.sessions,
            subscriptions_per_session=site.limits.subscriptions_per_session,
            backlog_events=site.limits.backlog_events,
            backlog_bytes=site.limits.backlog_bytes,
        )
        for entry in site.members
    ]
    return swarm_of(site.scheme.kind).shape_of(site, brokers)


def replaced(shape: Shape, **changes: Any) -> Shape:
    """The shape with other values in some of its fields."""
    changed: Shape = msgspec.structs.replace(shape, **changes)  # type: ignore[type-var]
    return changed


def _read_scenario(name: str) -> Scenario:
    scenario = scenario_from_json(Path(name).read_bytes(), name)
    latency = scenario.network.latency
    if isinstance(latency, RoundTripMatrix):
        # A table is looked for beside the scenario that names it, and found again wherever a failure is saved.
        latency = msgspec.structs.replace(latency, path=str((Path(name).parent / latency.path).resolve()))
        network = msgspec.structs.replace(scenario.network, latency=latency)
        scenario = msgspec.structs.replace(scenario, network=network)
    return scenario


def _with_checkers(scenario: Scenario, arguments: argparse.Namespace) -> Scenario:
    if arguments.checkers is None:
        return scenario
    names = [name.strip() for name in arguments.checkers.split(",")]
    for name in names:
        make_checker(name, swarm_of(scenario.system).checkers)  # refuses what does not exist
    return msgspec.structs.replace(scenario, checkers=names)


# --------------------------------------------------------------------------------------------------------- campaign
def _campaign(arguments: argparse.Namespace) -> int:
    source = _source(arguments)
    if arguments.checkers is not None and not isinstance(source, Scenario):
        names = _with_checkers(scenario_for(source, 0), arguments).checkers
        source = replaced(source, checkers=tuple(names))
    default = range(source.seed, source.seed + 1) if isinstance(source, Scenario) else range(1, 101)
    seeds = default if arguments.seeds is None else arguments.seeds
    folder = Path(arguments.failures)
    bar = _Bar(len(seeds))
    started = time.monotonic()
    campaign = run_campaign(source, seeds, arguments.jobs, bar.show, _factories(source))
    bar.clear()
    print(_summary(campaign, len(seeds), time.monotonic() - started))
    for outcome in campaign.failed:
        _report_failure(outcome, source, folder)
    if not arguments.no_shrink and not campaign.interrupted:
        for outcome in campaign.failed[:SHRUNK_FAILURES]:
            _shrink_failure(outcome, source, folder)
    if campaign.interrupted:
        return INTERRUPTED
    return OK if campaign.clean else CHECK_FAILED


def _summary(campaign: Campaign, wanted: int, seconds: float) -> str:
    verdict = "all clean" if campaign.clean else f"{len(campaign.failed)} FAILED"
    if campaign.interrupted:
        verdict += " (interrupted)"
    elif campaign.runs < wanted:
        verdict += f" (stopped after {len(campaign.failed)} failures)"
    return (
        f"{campaign.runs:,} runs, {verdict}: {campaign.events_published:,} events published, "
        f"{campaign.events_delivered:,} delivered, {campaign.faults:,} faults, {campaign.steps:,} steps, "
        f"{seconds:.1f} s"
    )


def _report_failure(outcome: Outcome, source: Source, folder: Path) -> None:
    print(f"\nseed {outcome.seed} failed")
    _print_problems(outcome)
    _save(scenario_for(source, outcome.seed), folder)


def _save(scenario: Scenario, folder: Path) -> None:
    """Saves a failing scenario and says how to run it again. A folder that can't be written loses no more than that."""
    path = folder / f"{scenario.name}-{scenario.seed}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(scenario_to_json(scenario))
    except OSError as error:
        print(f"holdfast: {path}: {error.strerror}; the seed is {scenario.seed}", file=sys.stderr)
    else:
        print(f"  replay it with: holdfast sim --replay {shlex.quote(str(path))}")


def _shrink_failure(outcome: Outcome, source: Source, folder: Path) -> None:
    """Puts something smaller that fails alike in the place of what was saved."""
    print(f"\nshrinking seed {outcome.seed}, for up to {SHRINK_SECONDS} s …", flush=True)
    factories = _factories(source)
    broken = {violation.checker for violation in outcome.violations}

    def fails_alike(scenario: Scenario) -> bool:
        found = run_scenario(scenario, factories)
        return bool(found.broken) if outcome.broken else any(v.checker in broken for v in found.violations)

    scenario = scenario_for(source, outcome.seed)
    try:
        smaller = shrink(scenario, fails_alike, seconds=SHRINK_SECONDS)
    except ScenarioError as error:
        print(f"not shrunk: {error}", file=sys.stderr)
        return
    print(f"  {count_pieces(smaller)} of {count_pieces(scenario)} actions, events and faults are needed")
    _print_problems(run_scenario(smaller, factories))
    _save(smaller, folder)


def _print_problems(outcome: Outcome) -> None:
    if outcome.broken:
        print(f"  a node found itself broken: {outcome.broken}")
    for violation in outcome.violations[:SHOWN_VIOLATIONS]:
        print(f"  {violation}")
    if len(outcome.violations) > SHOWN_VIOLATIONS:
        print(f"  … and {len(outcome.violations) - SHOWN_VIOLATIONS} more")


class _Bar:
    """A progress bar on standard error, if a person is looking."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._shown = sys.stderr.isatty()

    def show(self, campaign: Campaign) -> None:
        if self._shown:
            done = BAR_CHARACTERS * campaign.runs // self._total
            failed = f", {len(campaign.failed)} failed" if campaign.failed else ""
            bar = "█" * done + "·" * (BAR_CHARACTERS - done)
            print(f"\r{bar} {campaign.runs:,} of {self._total:,} seeds{failed} ", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            print("\r" + " " * (width - 1) + "\r", end="", file=sys.stderr, flush=True)


# ----------------------------------------------------------------------------------------------------------- replay
def _replay(arguments: argparse.Namespace) -> int:
    if arguments.replay.isdecimal():
        scenario = scenario_for(_source(arguments), int(arguments.replay))
    elif arguments.site or arguments.scenario or arguments.system:
        problem = f"--replay {arguments.replay} names a file, and another source is given"
        raise ScenarioError(problem, "holdfast sim", "replay a file alone, or a seed of a site or scenario")
    else:
        scenario = _read_scenario(arguments.replay)
    scenario = _with_checkers(scenario, arguments)
    if arguments.write_scenario is not None:
        Path(arguments.write_scenario).write_bytes(scenario_to_json(scenario))
    factories = _factories(scenario)
    if arguments.trace is None:
        outcome = run_scenario(scenario, factories, stop_at_violation=False)
    else:
        with _open_for_writing(arguments.trace) as file:
            writer = TraceWriter(header_of(scenario), file)
            outcome = run_scenario(scenario, factories, sinks=[_Tee(writer)], stop_at_violation=False)
    verdict = "clean" if outcome.clean else "FAILED"
    print(
        f"{scenario.name}, seed {scenario.seed}: {verdict}; {outcome.events_published} events published, "
        f"{outcome.events_delivered} delivered, {outcome.faults} faults, {outcome.steps} steps"
    )
    print(f"digest {outcome.digest}")
    _print_problems(outcome)
    return OK if outcome.clean else CHECK_FAILED


def _open_for_writing(name: str) -> BinaryIO:
    return gzip.open(name, "wb") if name.endswith(".gz") else open(name, "wb")  # type: ignore[return-value]


class _Tee:
    """Writes what it sees."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer

    def see(self, row: Row) -> None:
        self._writer.write(row)
