"""Every scheme in the simulator: what it promises holds by seed, and by scripts that all pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.broker.kit import BrokerKit
from holdfast.broker.registry import SCHEMES
from holdfast.cli.main import main
from holdfast.sim.run import Factories, header_of, run_scenario
from holdfast.sim.scenario import Action, Client, Kill, PowerCut, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.sim.scenario_file import scenario_from_json, scenario_to_json
from holdfast.sim.swarm import swarm_of
from holdfast.trace.schema import Row
from holdfast.trace.writer import TraceWriter
from tests.repository import ROOT
from tests.schemes.sites import KINDS, brokers_of, initial_site, scenario_of
from tests.sim.clean import check_block
from tests.sim.mutants import DeliversToEveryone
from tests.tiers import blocks

every_kind = pytest.mark.parametrize("kind", KINDS)
SEEDS = 100  # of every shape; what the shapes of this repository are drawn for has swarms of its own
EVENTS = 12


@every_kind
@pytest.mark.parametrize("seeds", blocks(SEEDS, 25, first=70_001))
def test_drawn_runs_keep_what_is_promised(kind: str, seeds: range) -> None:
    for shape in swarm_of(kind).shapes.values():
        check_block(shape, seeds, delivered=5, faults=1)


@every_kind
def test_runs_that_are_drawn_for_a_site_have_its_brokers_and_keep_what_is_promised(kind: str) -> None:
    site = initial_site(kind)
    shape = swarm_of(kind).shape_of(site, brokers_of(site))
    for seed in range(1, 11):
        drawn = shape.draw(seed)
        assert [broker.id for broker in drawn.brokers] == [entry.id for entry in site.brokers]
        assert run_scenario(drawn).problem == ""


def test_processes_of_a_campaign_know_the_schemes_that_their_parent_knows(tmp_path: Path) -> None:
    """Also of a package that nothing in the scenario has them import."""
    program = (
        "from holdfast.broker.registry import SCHEMES; SCHEMES.add('flood', 'tests.schemes.flood')\n"
        "import sys; from holdfast.cli.main import main\n"
        "if __name__ == '__main__': sys.exit(main())"
    )
    script, scenario = tmp_path / "with_flood.py", tmp_path / "a.json"
    script.write_text(program)
    scenario.write_bytes(scenario_to_json(next(iter(swarm_of("flood").shapes.values())).draw(3)))
    command = [sys.executable, str(script), "sim", "--scenario", str(scenario), "--seeds", "1..20", "--jobs", "2"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.returncode == 0, done.stderr


@every_kind
def test_a_seed_gives_one_run_also_by_way_of_a_file(kind: str) -> None:
    drawn = next(iter(swarm_of(kind).shapes.values())).draw(3)
    again = scenario_from_json(scenario_to_json(drawn), "a.json")
    assert run_scenario(again).digest == run_scenario(drawn).digest


@every_kind
def test_the_promises_are_not_empty(kind: str) -> None:
    """A broker that delivers everything to everyone is seen, whatever the scheme."""
    mutant = Factories(kit=BrokerKit(core=DeliversToEveryone))
    shape = next(iter(swarm_of(kind).shapes.values()))
    assert any(not run_scenario(shape.draw(seed), mutant).clean for seed in range(1, 41))


# -------------------------------------------------------------------------------------------------------------- scripts
def scripted(kind: str, actions: list[Action], **fields: object) -> Scenario:
    """The initial site, with a publisher and a subscriber at each broker."""
    site = initial_site(kind)
    names = tuple(entry.id for entry in site.brokers)
    clients = []
    for name in names:
        known = (name, *(other for other in names if other != name)) if site.scheme.is_one_broker else (name,)
        clients += [Client(id=f"p-{name}", brokers=known), Client(id=f"s-{name}", brokers=known)]
    wanted = {"clients": clients, "actions": actions, "safety_ms": 20_000, "checkers": ["only-matching"], **fields}
    scenario = scenario_of(site, **wanted)
    promised = swarm_of(kind).promises(scenario)
    # All of them keep this, where nothing fails that is not drawn.
    return replace(scenario, checkers=[*dict.fromkeys((*promised, "exactly-once", "publisher-order", "in-time"))])


def traffic(kind: str, lifetime_ms: int = 0) -> list[Action]:
    """Everyone wants even numbers; every publisher says some, one every 300 ms."""
    names = [entry.id for entry in initial_site(kind).brokers]
    actions: list[Action] = [
        Subscribe(at_ms=0, client=f"s-{name}", name="even", filter="topic = 't' AND even") for name in names
    ]
    for number in range(EVENTS):
        event = ScenarioEvent(attributes={"n": number, "even": number % 2 == 0}, topic="t", lifetime_ms=lifetime_ms)
        at = 5_000 + 300 * number
        actions += [Publish(at_ms=at, client=f"p-{name}", events=[event]) for name in names]
    return sorted(actions, key=lambda action: action.at_ms)


@every_kind
def test_every_subscriber_gets_what_it_wants_once_whoever_published_it(kind: str) -> None:
    outcome = run_scenario(scripted(kind, traffic(kind)))
    brokers = len(initial_site(kind).brokers)
    assert outcome.problem == ""
    assert outcome.events_delivered == brokers * brokers * EVENTS // 2


@every_kind
def test_events_whose_time_is_over_reach_nobody(kind: str) -> None:
    """While all brokers but one are down, nothing with a lifetime of 10 ms is in time there."""
    _, *others = [entry.id for entry in initial_site(kind).brokers]
    faults = [Kill(at_ms=4_000, for_ms=8_000, host=name) for name in others]
    scenario = scripted(kind, traffic(kind, lifetime_ms=10), faults=faults)
    outcome = run_scenario(replace(scenario, checkers=["only-matching", "at-most-once", "in-time"]))
    assert outcome.problem == ""
    assert outcome.events_delivered <= EVENTS // 2, "those at the broker that stays, at most"


@every_kind
@pytest.mark.parametrize("fault", [Kill, PowerCut])
def test_brokers_that_restart_one_after_the_other_keep_what_is_promised(
    kind: str, fault: type[Kill | PowerCut]
) -> None:
    site = initial_site(kind)
    faults = [
        fault(at_ms=5_500 + 1_500 * place, for_ms=1_000, host=entry.id) for place, entry in enumerate(site.brokers)
    ]
    scenario = scripted(kind, traffic(kind), faults=faults)
    checkers = [name for name in scenario.checkers if name in (*swarm_of(kind).promises(scenario), "in-time")]
    outcome = run_scenario(replace(scenario, checkers=checkers))
    assert outcome.problem == ""
    assert outcome.events_delivered > len(site.brokers) * EVENTS // 2


def test_scripts_run_on_every_scheme_that_there_is() -> None:
    assert {"tree", "paxos", "flood"} <= set(SCHEMES.kinds)


@every_kind
def test_a_trace_of_the_scheme_is_checked_by_all_that_it_may_be_held_to(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, trace = next(iter(swarm_of(kind).shapes.values())).draw(5), tmp_path / "run.jsonl"
    with trace.open("wb") as file:
        run_scenario(drawn, sinks=[_Written(TraceWriter(header_of(drawn), file))])
    assert main(["trace", "check", "--trace", str(trace)]) == 0
    assert capsys.readouterr().out.split()[1::2] == drawn.checkers


class _Written:
    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer

    def see(self, row: Row) -> None:
        self._writer.write(row)
