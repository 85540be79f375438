"""`holdfast sim`: campaigns, replays, saved failures, and what becomes of wrong usage."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim import run as run_module
from holdfast.sim.scenario_file import scenario_from_json
from tests.cli.test_main import run
from tests.repository import ROOT
from tests.sim.mutants import MUTANTS

SITE = 'name = "quotes"\n[[broker]]\nid = "b1"\ndata = "var/b1"\n'


def documented_scenario() -> str:
    """The scenario that docs/simulator.md shows."""
    text = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    return str(re.findall(r"```json\n(.*?)```", text, flags=re.DOTALL)[0])


def far_apart(latency: str) -> str:
    """The same over a slower network: everything happens later, and the power is cut with the event under way."""
    text = documented_scenario().replace('"faults"', f'"network": {{"latency": {latency}}}, "faults"')
    return text.replace("500", "2500").replace("501", "2501").replace('"safety_ms": 2000', '"safety_ms": 5000')


def test_a_campaign_ends_with_a_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    assert run("sim", str(site), "--seeds", "1..12", "--jobs", "2") == 0
    out = capsys.readouterr().out
    assert re.fullmatch(
        r"12 runs, all clean: [\d,]+ events published, [\d,]+ delivered, \d+ faults, [\d,]+ steps, [\d.]+ s\n", out
    )


def test_a_seed_is_replayed_with_the_same_digest_and_its_trace(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    digests = set()
    for trace in ("one.jsonl", "two.jsonl.gz"):
        assert run("sim", "--replay", "17", "--trace", str(tmp_path / trace)) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert first.startswith("one-broker, seed 17: clean; ")
        digests.add(second)
    assert len(digests) == 1
    for trace in ("one.jsonl", "two.jsonl.gz"):
        assert run("trace", "check", "--trace", str(tmp_path / trace)) == 0
        assert "ok      no-loss" in capsys.readouterr().out


def test_a_scenario_of_ones_own_is_run_under_many_seeds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(documented_scenario())
    assert run("sim", "--scenario", str(path)) == 0
    assert capsys.readouterr().out.startswith("1 runs, all clean: 1 events published, 1 delivered, 1 faults")
    assert run("sim", "--scenario", str(path), "--seeds", "1..20") == 0
    assert capsys.readouterr().out.startswith("20 runs, all clean: 20 events published, 20 delivered, 20 faults")


def test_a_seeds_scenario_can_be_written_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    assert run("sim", "--replay", "3", "--write-scenario", str(path)) == 0
    drawn = capsys.readouterr().out
    assert run("sim", "--replay", str(path)) == 0
    assert capsys.readouterr().out == drawn


def test_a_failure_is_shrunk_saved_and_replayed_by_the_command_that_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.checker == "only-matching")
    monkeypatch.setattr(run_module, "Factories", lambda: mutant.factories)
    folder = tmp_path / "saved here"
    assert run("sim", "--seeds", "1", "--failures", str(folder)) == 1
    out = capsys.readouterr().out
    assert re.match(r"1 runs, 1 FAILED: ", out)
    assert "only-matching, at " in out
    command = re.findall(r"replay it with: holdfast sim --replay '(.*)'", out)[0]
    assert len(json.loads(Path(command).read_text())["actions"]) == 2
    assert run("sim", "--replay", command) == 1
    assert ": FAILED; 1 events published, 1 delivered" in capsys.readouterr().out


def test_failures_are_saved_whole_if_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.checker == "only-matching")
    monkeypatch.setattr(run_module, "Factories", lambda: mutant.factories)
    assert run("sim", "--seeds", "1..60", "--failures", str(tmp_path), "--no-shrink") == 1
    out = capsys.readouterr().out
    assert re.match(r"\d+ runs, \d+ FAILED \(stopped after \d+ failures\): ", out)
    assert out.count("replay it with") == len(re.findall(r"^seed \d+ failed$", out, flags=re.MULTILINE))
    saved = sorted(tmp_path.glob("one-broker-*.json"))
    assert saved
    for path in saved:
        scenario = scenario_from_json(path.read_bytes(), path.name)
        assert scenario == OneBrokerShape().draw(scenario.seed)


def test_groups_of_brokers_are_run_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("sim", "--system", "paxos", "--seeds", "1..4") == 0
    assert capsys.readouterr().out.startswith("4 runs, all clean: ")
    path = tmp_path / "group.json"
    assert run("sim", "--system", "paxos", "--replay", "3", "--write-scenario", str(path)) == 0
    first = capsys.readouterr().out
    assert first.startswith("group, seed 3: clean; ")
    assert run("sim", "--replay", str(path)) == 0
    assert capsys.readouterr().out == first


def test_checkers_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sim", "--seeds", "1..3", "--checkers", "at-most-once, liveness") == 0
    assert run("sim", "--replay", "1", "--checkers", "exactly-once") == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--seeds", "x"), "'x' is no range of seeds: write 17 or 1..1000"),
        (("--seeds", "9..3"), "'9..3' holds no seed: write the smaller number first"),
        (("--seeds", "-1..3"), "expected one argument"),
        (("--jobs", "0"), "'0' is no number of processes: give 1 or more"),
        (("--replay", "absent.json"), "absent.json: No such file or directory"),
        (("absent.toml",), "absent.toml: No such file or directory"),
        (("--replay", "1", "--seeds", "1..2"), "--replay and --seeds are given; use one of them"),
        (("--seeds", "1..2", "--trace", "t"), "--trace is for one run; use it with --replay"),
        (("--seeds", "1..2", "--write-scenario", "t"), "--write-scenario is for one run; use it with --replay"),
        (("site.toml", "--scenario", "s.json"), "a site and a scenario are given"),
        (("site.toml", "--replay", "s.json"), "--replay s.json names a file, and another source is given"),
        (("--system", "star"), "invalid choice: 'star'"),
        (("site.toml", "--system", "paxos"), "--system and a site are given; a site says itself what it is"),
        (("--scenario", "s.json", "--system", "tree"), "--system and a scenario are given"),
        (("--replay", "s.json", "--system", "paxos"), "--replay s.json names a file, and another source is given"),
        (("--checkers", "nothing"), "there is no checker 'nothing'"),
    ],
)
def test_wrong_usage_is_explained(arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sim", *arguments) == 2
    assert problem in capsys.readouterr().err


def test_a_broken_site_or_scenario_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    site, scenario = tmp_path / "site.toml", tmp_path / "scenario.json"
    site.write_text('[[broker]]\nid = "b1"\nport = 3\n')
    assert run("sim", str(site)) == 2
    assert (
        capsys.readouterr().err
        == f"holdfast: {site}:3: 'port' is not known in [broker]; known are id, address, advertise, "
        "peer_address, peer_advertise, data, "
        "spare, mtbf, mttr, availability, period, observed, class\n"
    )
    scenario.write_text(documented_scenario().replace('"price > 10"', '"price > 10", "colour": 1'))
    assert run("sim", "--replay", str(scenario)) == 2
    assert "unknown field `colour`" in capsys.readouterr().err


def test_a_latency_that_cannot_be_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    latency = '"network": {"latency": {"model": "uniform", "low_us": 9, "high_us": 1}}, "faults"'
    path.write_text(documented_scenario().replace('"faults"', latency))
    assert run("sim", "--replay", str(path)) == 2
    assert "low_us" in capsys.readouterr().err


def test_a_table_of_round_trips_is_found_beside_the_scenario(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data_file: Callable[[str], Path]
) -> None:
    (tmp_path / "table.tsv.xz").symlink_to(data_file("planetlab-rtt-490.tsv.xz"))
    path = tmp_path / "scenario.json"
    path.write_text(far_apart('{"model": "matrix", "path": "table.tsv.xz", "jitter_percent": 5}'))
    assert run("sim", "--scenario", str(path), "--seeds", "1..20", "--jobs", "2") == 0
    assert capsys.readouterr().out.startswith("20 runs, all clean: 20 events published, 20 delivered, 20 faults")


def test_a_scenario_runs_over_a_transit_stub_network(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(far_apart('{"model": "transit-stub", "seed": 3}'))
    assert run("sim", "--scenario", str(path), "--seeds", "1..5") == 0
    assert capsys.readouterr().out.startswith("5 runs, all clean: 5 events published, 5 delivered, 5 faults")
