"""The canonical form: equal filters are equal, ranges are merged, contradictions are recognised."""

from holdfast import Filter, FilterLimits


def test_the_canonical_form_is_not_held_to_the_limits_of_the_text() -> None:
    merged = Filter("x IN (1, 2) OR x IN (3, 4)", limits=FilterLimits(in_values=2))
    assert str(merged.canonical) == "x IN (1, 2, 3, 4)"
    prefix = Filter("x >= 'a' AND x < 'b'", limits=FilterLimits(like_percents=0))
    assert str(prefix.canonical) == "x LIKE 'a%'"


def test_in_lists_of_a_text_within_all_default_limits_merge() -> None:
    numbers = [*range(100), *range(-9, 0), *(f".{n}" for n in range(1, 10)), *range(100, 1000)]
    numbers += [f"{m}e{e}" for m in range(1, 10) for e in range(3, 5)]
    halves = [",".join(map(str, numbers[i::2])) for i in range(2)]
    filter = Filter(f"x IN({halves[0]})OR x IN({halves[1]})")
    assert len(set(map(float, numbers))) > 1024
    assert filter.canonical == filter
