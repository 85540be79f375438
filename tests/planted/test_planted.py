"""Every planted mistake is seen by the seed that is recorded for it, and by about as many of the next as ever."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.planted.mistakes import MISTAKES
from tests.planted.records import MORE, SEED_MAX, SLACK, Record, read, seen_as_often
from tests.repository import ROOT

RECORDS = read()

# Fewer than these would mean that some were dropped.
LEAST = {
    "one broker": 25,
    "names": 19,
    "hosted applications": 2,
    "networks": 22,
    "changing networks": 23,
    "groups": 16,
    "names in groups": 16,
    "viewership": 8,
    "replicas": 41,
    "fast rounds": 33,
    "changing groups": 16,
    "stand-ins": 2,
    "replacements": 19,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_seen_by_its_seed_and_nothing_is_seen_without_it(name: str) -> None:
    mistake, record = MISTAKES[name], RECORDS[name]
    said = mistake.seen(record.seed)
    assert said, f"seed {record.seed} does not see it; `python -m tests.planted` finds another"
    # A mutant that does not fit the code any more is stopped by its first call, and would count as seen for ever.
    assert not re.search(r"\b(TypeError|NameError|AttributeError): ", said), said
    assert mistake.sound(record.seed) == "", "the same run, without the mistake"


# Of a mistake that hardly any other seed saw, as few may see it now as there are.
SEEN_OFTEN = [name for name in MISTAKES if RECORDS.get(name, Record(0, 0)).more > SLACK]


@pytest.mark.full
@pytest.mark.parametrize("name", SEEN_OFTEN)
def test_a_mistake_is_seen_about_as_often_as_it_was(name: str) -> None:
    record = RECORDS[name]
    seen = seen_as_often(MISTAKES[name], record)
    assert seen >= record.more - SLACK, f"{record.more} of {MORE} seeds behind {record.seed} saw it, now {seen} do"


@pytest.mark.parametrize(
    ("sees", "more", "played", "seen"),
    [
        (lambda seed: True, 20, 18, 18),
        (lambda seed: seed % 2 == 0, 10, 16, 8),
        (lambda seed: seed % 4 == 0, 10, 17, 4),  # three are left, and with them it would be seven of eight
        (lambda seed: False, 3, 20, 0),
        (lambda seed: False, 2, 0, 0),
    ],
)
def test_no_more_is_played_than_has_to_be_known(sees: Callable[[int], bool], more: int, played: int, seen: int) -> None:
    seeds: list[int] = []

    class Counted:
        swarm = mistake = "counted"

        def seen(self, seed: int) -> str:
            seeds.append(seed)
            return "seen" if sees(seed) else ""

        def sound(self, seed: int) -> str:
            return ""

    assert seen_as_often(Counted(), Record(100, more)) == seen
    assert seeds == [*range(101, 101 + played)]


def test_every_mistake_has_its_record() -> None:
    assert list(RECORDS) == list(MISTAKES)
    assert all(0 <= record.seed <= SEED_MAX and 0 <= record.more <= MORE for record in RECORDS.values())


def test_the_page_of_checks_names_every_mistake() -> None:
    """`python -m tests.planted.page` writes it."""
    page = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
    assert [name for name in MISTAKES if name not in page] == []


def test_no_swarm_has_lost_a_mistake() -> None:
    planted = Counter(mistake.swarm for mistake in MISTAKES.values())
    assert planted.keys() == LEAST.keys()
    assert {swarm: count for swarm, count in planted.items() if count < LEAST[swarm]} == {}
