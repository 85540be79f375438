"""What is a filter, and how it is read: literals, names, keywords, precedence."""

import pytest

from holdfast import Filter


@pytest.mark.parametrize("name", ["l\u0131ke", "\u0131s", "\u0131n", "\u0131S", "fal\u017fe", "i\u017f"])
def test_a_name_whose_capitals_spell_a_keyword_is_a_name(name: str) -> None:
    assert Filter(f"{name} = 1").attributes == (name,)
    assert Filter(f"{name} = 1").matches({name: 1})
    with pytest.raises(ValueError, match="unexpected name"):
        Filter(f"a {name} NULL")
