"""What a filter means: three-valued logic, kinds, numbers, strings, the topic. Oracle and both engines alike."""

from enum import Enum, IntEnum

from tests.filters.conftest import Matches


class Colour(str, Enum):  # noqa: UP042 - str() of a StrEnum's member is its value; here it is not
    RED = "red"


class Level(IntEnum):
    HIGH = 3


def test_a_member_of_an_enumeration_counts_as_its_value(matches: Matches) -> None:
    assert matches("colour = 'red' AND level > 2", {"colour": Colour.RED, "level": Level.HIGH})
    assert not matches("colour = 'Colour.RED'", {"colour": Colour.RED})
