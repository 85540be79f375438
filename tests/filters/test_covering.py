"""`covers` and `intersects`: safe always, exact for conjunctions over one attribute each."""

from holdfast import Filter


def test_no_string_lies_between_the_last_character_before_the_surrogates_and_the_first_behind_them() -> None:
    prefix, interval = Filter("x LIKE '\ud7ff%'"), Filter("x >= '\ud7ff' AND x < '\ue000'")
    assert prefix == interval
    assert prefix.covers(interval)
    assert interval.covers(prefix)
    assert not Filter("x > '\ud7ff' AND NOT x LIKE '\ud7ff%'").intersects(Filter("x < '\ue000'"))
