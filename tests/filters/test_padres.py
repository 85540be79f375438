"""PADRES' notation for filters and events."""

import pytest

from holdfast import EventError, Filter, FilterError, attributes_from_padres


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9223372036854775808", "9" * 5000])
def test_a_number_beyond_the_range_is_refused_where_it_stands(number: str) -> None:
    text = f"[class,eq,'STOCK'],[price,>,{number}]"
    with pytest.raises(FilterError, match="beyond 64 bits or a double") as caught:
        Filter.from_padres(text)
    assert caught.value.offset == text.index(number)
    with pytest.raises(EventError) as event_caught:
        attributes_from_padres(f"[price,{number}]")
    assert event_caught.value.attribute == "price"


@pytest.mark.parametrize("word", ["-inf", "+nan", "inf", "1_000", "١٢", "28-Dec-04", "-", "."])
def test_a_bare_word_that_only_python_takes_for_a_number_is_a_string(word: str) -> None:
    assert attributes_from_padres(f"[a,{word}]") == {"a": word}
    assert Filter.from_padres(f"[a,eq,{word}]") == Filter(f"a = '{word}'")


def test_a_name_in_quotes_is_refused() -> None:
    with pytest.raises(FilterError, match="name of an attribute is in quotes"):
        Filter.from_padres("['class',eq,'STOCK']")
    with pytest.raises(EventError, match="name of an attribute is in quotes"):
        attributes_from_padres("['class','STOCK']")
