"""Perfect runs break no promise; broken ones break those that the definitions name, and no others."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.trace.checkers import CHECKERS, check_trace, make_checker
from holdfast.trace.schema import Row
from tests.filters.strategies import Choices
from tests.trace.mutations import MUTATIONS, mutated
from tests.trace.perfect import BROKER, PerfectRun
from tests.trace.reference import broken_promises
from tests.trace.runs import HEADER

# The perfect runs have brokers that may forget a subscription, and say so.
JUDGED = {name: entry for name, entry in CHECKERS.items() if name != "no-forgetting"}
ALL = [f"{name}:{BROKER}" if entry.argument else name for name, entry in JUDGED.items()]
WEAK_COMPLETE, WEAK_ORDERED = f"weak-complete:{BROKER}", f"weak-ordered:{BROKER}"

SOURCES = st.binary(min_size=30, max_size=240)

LOSS = {"no-loss", "exactly-once", "complete", WEAK_COMPLETE}
TWICE = {"at-most-once", "exactly-once"}
ORDER = {"publisher-order", "total-order", WEAK_ORDERED}

# Mutation → the checkers that find it always, and those that may.
FOUND_BY: dict[str, tuple[set[str], set[str]]] = {
    "a delivery is lost": (set(), LOSS),
    "a delivery is doubled": (TWICE, TWICE),
    "a delivery is doubled later": (TWICE, TWICE | {"only-matching"}),
    "two deliveries change places": (set(), ORDER | TWICE | {"only-matching"}),
    "an event appears from nowhere": ({"only-matching"}, {"only-matching"} | LOSS),
    "a delivery goes to the wrong subscriber": ({"only-matching"}, {"only-matching"}),
    "a delivery goes to the wrong subscription": (set(), {"only-matching"} | LOSS | TWICE | ORDER),
    "a delivery goes to no subscription": ({"only-matching"}, {"only-matching"} | LOSS),
    "a delivery comes before the publication": ({"only-matching"}, {"only-matching", "total-order"}),
    "a delivery claims to be another attempt": (set(), TWICE),
    "an acknowledgement is lost": (set(), {"liveness"}),
    "a confirmation is lost": (set(), {"liveness"}),
    "a gap is kept silent": (set(), LOSS),
    "a gap is said to be smaller": (set(), LOSS),
    "a publication is not recorded": (set(), {"only-matching"}),
    "a crash is not recorded": (set(), {"liveness", "no-loss", "exactly-once"}),
    "a queue passes its limit": ({"bounded-queues"}, {"bounded-queues"}),
    "a delivery says that it is late": (set(), {"in-time"}),
    "an event lives shorter": (set(), {"in-time"}),
}


def found(rows: list[Row]) -> set[str]:
    return {violation.checker for violation in check_trace(HEADER, rows, [make_checker(name) for name in ALL])}


@given(SOURCES)
def test_a_perfect_run_breaks_no_promise(source: bytes) -> None:
    rows = PerfectRun(source).rows
    assert found(rows) == set()
    assert broken_promises(rows, BROKER) == set()


@settings(max_examples=250)
@given(SOURCES, st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=3), st.binary(max_size=12))
def test_a_mutated_run_breaks_what_the_definitions_say(source: bytes, names: list[str], choices: bytes) -> None:
    rows = PerfectRun(source).rows
    for name in names:
        rows = mutated(name, rows, Choices(choices)) or rows
    assert found(rows) == broken_promises(rows, BROKER)


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_mutation_is_found_by_the_right_checkers(name: str) -> None:
    always, sometimes = FOUND_BY[name]
    random = Random(name)
    caught: Counter[str] = Counter()
    for _ in range(40):
        rows = mutated(name, PerfectRun(random.randbytes(240)).rows, Choices(random.randbytes(8)))
        if rows is None:
            continue
        checkers = found(rows)
        assert always <= checkers <= sometimes
        caught.update(checkers)
        caught["runs"] += 1
    assert caught["runs"] > 10
    assert sum(caught.values()) > caught["runs"]  # it is not always harmless
