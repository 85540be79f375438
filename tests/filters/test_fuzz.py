"""Fuzzing: a fixed corpus, a short random run, and behind --long a guided one."""

import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from holdfast import Filter, FilterError, attributes_from_padres
from holdfast.errors import EventError
from holdfast.model import parser
from tests.filters.fuzzing import CORPUS, check, mutated, random_text

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("text", CORPUS)
def test_a_text_of_the_corpus_is_a_filter_or_a_filter_error(text: str) -> None:
    check(text)


def test_a_random_text_is_a_filter_or_a_filter_error() -> None:
    chance = random.Random(20)
    valid = sum(is_filter(random_text(chance)) for _ in range(18_000))
    assert 2_000 < valid < 16_000  # both sides of the border are worth visiting


def is_filter(text: str) -> bool:
    try:
        filter = Filter(text)
        assert Filter(str(filter)).root == filter.root
    except FilterError as error:
        str(error)
        return False
    return True


def test_a_random_text_that_is_a_filter_means_what_the_reference_says() -> None:
    chance = random.Random(21)
    assert sum(check(random_text(chance)) for _ in range(2_000)) > 200


def test_a_random_text_in_the_notation_of_padres_raises_nothing_but_its_error() -> None:
    chance = random.Random(22)
    filters = ("[class,eq,'STOCK'],[price,>,100]", "[a,str-prefix,'x'],[b,isPresent,1],[c,neq,-1.5e3]", "[a,=,$x]")
    events = ("[class,'STOCK'],[price,101.5]", "[a,x y],[b,-7],[c,'']")
    for _ in range(2_000):
        try:
            Filter.from_padres(mutated(chance.choice(filters), chance))
        except FilterError as error:
            str(error)
        try:
            attributes_from_padres(mutated(chance.choice(events), chance))
        except EventError as event_error:
            str(event_error)


def test_random_bytes_are_a_filter_or_a_filter_error() -> None:
    chance = random.Random(23)
    for _ in range(2_000):
        data = chance.randbytes(chance.randrange(12))
        try:
            Filter.from_msgpack(data)
        except FilterError as error:
            str(error)


def test_another_exception_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of the checks: a parser with a bug is caught."""

    def broken(symbol: str, left: object, right: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(parser, "calculate", broken)
    with pytest.raises(ZeroDivisionError):
        check("a = 1 / 0")


@pytest.mark.long
def test_guided_fuzzing_finds_nothing() -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed (pip install atheris)")
    command = [sys.executable, str(ROOT / "scripts" / "fuzz_filters.py"), "-runs=200000", "-max_len=200", "-seed=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
