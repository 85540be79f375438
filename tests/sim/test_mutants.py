"""Every checker has a mistake that it sees; tests/planted holds that it does."""

from holdfast.trace.checkers import CHECKERS
from tests.sim.mutants import MUTANTS

# Promises about events that keep clear of one broker say nothing where there is only one; tests/trace has the mutants.
# Those of a scheme are with its mutants: tests/sim/network_mutants.py.
NEED_MORE_BROKERS = {"weak-complete", "weak-ordered"}


def test_every_checker_has_a_mutant() -> None:
    assert {mutant.checker for mutant in MUTANTS} == set(CHECKERS) - NEED_MORE_BROKERS
