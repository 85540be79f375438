"""Every checker catches a broker or a client that breaks its promise; and the real ones keep it."""

import msgspec
import pytest

from holdfast.sim.draw import draw_scenario
from holdfast.sim.run import run_scenario
from holdfast.trace.checkers import CHECKERS
from tests.sim.mutants import MUTANTS, Mutant

# Promises about events that keep clear of one broker say nothing where there is only one; tests/trace has the mutants.
# Those of networks are in tests/sim/network_mutants.py.
NEED_MORE_BROKERS = {"weak-complete", "weak-ordered", "network"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.checker}: {mutant.mistake}")
def test_a_mutant_is_caught_by_the_checker_of_the_promise_that_it_breaks(mutant: Mutant) -> None:
    for seed in range(1, mutant.seeds + 1):
        scenario = draw_scenario(seed, mutant.shape)
        promised = set(scenario.checkers) | ({"exactly-once"} if "no-loss" in scenario.checkers else set())
        if mutant.checker not in promised:
            continue
        scenario = msgspec.structs.replace(scenario, checkers=[mutant.checker])
        outcome = run_scenario(scenario, mutant.factories)
        if outcome.violations:
            assert {violation.checker for violation in outcome.violations} == {mutant.checker}
            assert run_scenario(scenario).clean, "the same scenario, without the mistake"
            return
    pytest.fail(f"not caught within {mutant.seeds} seeds")


def test_every_checker_has_a_mutant() -> None:
    assert {mutant.checker for mutant in MUTANTS} == set(CHECKERS) - NEED_MORE_BROKERS
