"""What a filter's error says, and the limits of the language, each at its edge and one beyond."""

import pytest

from holdfast import Filter, FilterError


def test_the_limit_of_bytes_is_passed_at_a_character_of_the_text() -> None:
    text = "x = '" + "\U0001f600" * 1200 + "'"
    with pytest.raises(FilterError, match="text_bytes = 4096") as caught:
        Filter(text)
    assert (caught.value.offset, caught.value.line, caught.value.column) == (5 + 4091 // 4, 1, 5 + 4091 // 4 + 1)
    excerpt, caret = str(caught.value).splitlines()[-2:]
    assert excerpt[caret.index("^")] == "\U0001f600"
