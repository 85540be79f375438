"""Scenarios that once failed, shrunk and saved, stay clean."""

from pathlib import Path

import pytest

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import scenario_from_json

SAVED = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_scenario_that_once_failed_is_clean(path: Path) -> None:
    outcome = run_scenario(scenario_from_json(path.read_bytes(), path.name))
    assert outcome.broken == ""
    assert [str(violation) for violation in outcome.violations] == []
