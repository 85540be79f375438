"""Settings say themselves how they are written, and what may be."""

from __future__ import annotations

import enum
import tomllib
from typing import Annotated

import msgspec
import pytest

from holdfast.broker.settings_table import check_order, default_lines, read_settings
from holdfast.broker.site_text import SiteText
from holdfast.errors import SiteError
from holdfast.kernel.settings import Setting, choices, chosen, milliseconds, written
from holdfast.kernel.time import MILLISECOND, SECOND


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, frozen=True):
    beat: Annotated[int, milliseconds("beat_ms", "between beats")] = 2 * SECOND


class Outer(msgspec.Struct, frozen=True):
    name: str  # the program's own
    colour: Annotated[Colour, Setting("colour", "how it looks")] = Colour.RED
    loud: Annotated[bool, Setting("loud", "how it sounds")] = False
    inner: Inner = Inner()
    count: Annotated[int, Setting("count", "how many", least=2, most=9)] = 3


PLAIN = Outer("x")


def read(text: str) -> Outer:
    whole = f"[part]\n{text}"
    return read_settings(SiteText(whole, "site.toml"), tomllib.loads(whole)["part"], "part", PLAIN)


def test_settings_of_parts_inside_count() -> None:
    assert list(choices(Outer)) == ["colour", "loud", "beat_ms", "count"]
    assert written(PLAIN) == {"colour": "red", "loud": False, "beat_ms": 2_000, "count": 3}


def test_what_may_be_chosen_is_looked_up_once_and_nobody_can_change_it() -> None:
    known = choices(Outer)
    assert choices(Outer) is known
    with pytest.raises(TypeError):
        known["colour"] = known["loud"]  # type: ignore[index]


def test_what_is_written_is_read_back() -> None:
    said = chosen(PLAIN, {"beat_ms": 7, "colour": "blue", "loud": True})
    assert said == Outer("x", Colour.BLUE, True, Inner(7 * MILLISECOND))
    assert chosen(PLAIN, written(said)) == said
    assert read('beat_ms = 7\ncolour = "blue"\nloud = true\n') == said


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('colour = "green"', "there is no colour 'green'; there is red, blue"),
        ("count = 1", "'count' is 1, and has to be 2 to 9"),
        ("count = 10", "'count' is 10, and has to be 2 to 9"),
        ("beat_ms = 0", "'beat_ms' is 0, and has to be 1 or more"),
        ("beat_ms = 9999999999", "'beat_ms' is 9999999999, and has to be 2592000000 or less"),
        ("loud = 3", "'loud' is 3, and has to be true or false"),
        ("speed = 3", "'speed' is not known in [part]; known are colour, loud, beat_ms, count"),
    ],
)
def test_what_may_not_be_is_refused_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(SiteError) as refused:
        read(f"\n{line}\n")
    assert (refused.value.problem, refused.value.line) == (problem, 3)


def test_two_settings_that_do_not_compare_are_refused() -> None:
    text = SiteText("[part]\ncount = 9\n", "site.toml")
    check_order(text, {}, "part", PLAIN, "beat_ms", "count", "more")
    with pytest.raises(SiteError, match=r"'count' is 3 \(the default\), and has to be more than 'beat_ms', 2000"):
        check_order(text, {"beat_ms": 2_000}, "part", PLAIN, "count", "beat_ms", "more")


def test_a_file_to_start_from_shows_defaults_and_meanings() -> None:
    assert list(default_lines(PLAIN, frozenset({"loud"}))) == [
        ('colour = "red"', "how it looks"),
        ("beat_ms = 2000", "between beats"),
        ("count = 3", "how many"),
    ]
