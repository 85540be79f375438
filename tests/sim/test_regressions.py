"""Scenarios that once failed, shrunk and saved, stay clean."""

from pathlib import Path

import pytest

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario_file import scenario_from_json
from tests.sim.network_mutants import BY_NAME

SAVED = sorted((Path(__file__).parent / "regressions").glob("*.json"))

# Scenarios that were made to show a mistake, which still do.
SHOWN = {
    "network-introduction-tells-what-the-disk-has-not": "introduces-before-storing",
    "network-gate-hands-an-event-to-its-clients-next-life": "holds-over-a-lost-link",
}


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_scenario_that_once_failed_is_clean(path: Path) -> None:
    outcome = run_scenario(scenario_from_json(path.read_bytes(), path.name))
    assert outcome.broken == ""
    assert [str(violation) for violation in outcome.violations] == []


@pytest.mark.parametrize("path", [path for path in SAVED if path.stem in SHOWN], ids=lambda path: path.stem)
def test_a_scenario_shows_the_mistake_that_it_was_made_for(path: Path) -> None:
    mutant = BY_NAME[SHOWN[path.stem]]
    assert not run_scenario(scenario_from_json(path.read_bytes(), path.name), mutant.factories).clean
