"""PADRES' notation for filters and events."""

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import EventError, Filter, FilterError, FilterLimits, attributes_from_padres
from holdfast.model import padres


@pytest.mark.parametrize(
    ("notation", "text"),
    [
        ("", ""),
        ("[class,eq,'STOCK']", "class = 'STOCK'"),
        ("[class,eq,'STOCK'],[price,>,100]", "class = 'STOCK' AND price > 100"),
        ("[a,=,1]", "a = 1"),
        ("[a,<>,1]", "a <> 1"),
        ("[a,!=,1]", "a <> 1"),
        ("[a,neq,'x']", "a <> 'x'"),
        ("[a,<,-1.5]", "a < -1.5"),
        ("[a,<=,1e3]", "a <= 1000.0"),
        ("[a,>,.5]", "a > 0.5"),
        ("[a,>=,+7]", "a >= 7"),
        ("[a,>=,-9223372036854775808]", "a >= -9223372036854775808"),
        ("[a,str-lt,'x']", "a < 'x'"),
        ("[a,str-le,'x']", "a <= 'x'"),
        ("[a,str-gt,'x']", "a > 'x'"),
        ("[a,str-ge,'x']", "a >= 'x'"),
        ("[a,str-prefix,'x']", "a LIKE 'x%'"),
        ("[a,str-postfix,'x']", "a LIKE '%x'"),
        ("[a,str-contains,'x']", "a LIKE '%x%'"),
        ("[a,str-contains,'']", "a LIKE '%'"),
        ("[a,str-prefix,'50%_']", "a LIKE '50!%!_%' ESCAPE '!'"),
        ("[a,isPresent,1]", "a IS NOT NULL"),
        ("[a,isPresent,'x']", "a IS NOT NULL"),
        ("[a,eq,bare word]", "a = 'bare word'"),
        ("[a,eq,28-Dec-04]", "a = '28-Dec-04'"),
        ("[a,eq,'']", "a = ''"),
        ("[a,eq,'a,b]']", "a = 'a,b]'"),
        (" [ a , eq , 'x' ] , [ b , < , 5 ] ", "a = 'x' AND b < 5"),
        ("[and,eq,1]", '"and" = 1'),
        ("[my name,eq,1]", '"my name" = 1'),
        ("[a,>,1],[a,<,5]", "a > 1 AND a < 5"),
    ],
)
def test_every_operator_has_its_meaning(notation: str, text: str) -> None:
    assert Filter.from_padres(notation) == Filter(text)


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("class,eq,'STOCK'", 0, "unexpected 'c'"),
        ("[a,eq,1", 7, "ends too early"),
        ("[a,eq,1]x", 8, "unexpected 'x'"),
        ("[a,eq,1],", 9, "ends too early"),
        ("[a,eq,1][b,eq,1]", 8, "unexpected '['"),
        ("[a,eq]", 1, "a tuple of 2 fields"),
        ("[a,eq,1,2]", 1, "a tuple of 4 fields"),
        ("[]", 1, "a field is empty"),
        ("[a,,1]", 3, "a field is empty"),
        ("[a,eq,'x]", 6, "a string is not closed"),
        ("[a,eq,'x'y]", 9, "unexpected 'y'"),
        ("[a,like,'x']", 3, "unknown operator 'like'"),
        ("[a,EQ,'x']", 3, "unknown operator 'EQ'"),
        ("[a,str-prefix,5]", 14, "compares strings"),
        ("[a,eq,$X]", 6, "variables"),
        ("[a,eq,1],[b,=,$S$symbol]", 14, "variables"),
    ],
)
def test_what_is_no_filter_of_padres_is_refused_where_it_stands(text: str, offset: int, problem: str) -> None:
    with pytest.raises(FilterError, match="line 1") as caught:
        Filter.from_padres(text)
    assert caught.value.offset == offset
    assert caught.value.text == text
    assert problem in caught.value.problem


def test_a_tuple_that_is_not_closed_may_go_on_or_end() -> None:
    with pytest.raises(FilterError) as caught:
        Filter.from_padres("[a,eq,1")
    assert (caught.value.problem, caught.value.expected) == ("the text ends too early", "',' or ']'")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9223372036854775808", "9" * 4000])
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


def test_a_filter_of_padres_is_held_to_the_limits() -> None:
    with pytest.raises(FilterError, match="predicates = 1"):
        Filter.from_padres("[a,eq,1],[b,eq,2]", limits=FilterLimits(predicates=1))


def test_a_text_of_padres_beyond_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Filter.from_padres("[a,eq,1]" + " " * 4088)
    monkeypatch.setattr(padres, "filter_text", None)
    for text in ["[a,eq,1]" + " " * 4089, ",".join(["[a,eq,1]"] * 100_000), "[" * 1_000_000]:
        with pytest.raises(FilterError, match="limit text_bytes = 4096"):
            Filter.from_padres(text)


def test_an_event_of_padres_has_its_attributes() -> None:
    text = "[class,'STOCK'],[open,63.30],[volume,10924200],[date,'28-Dec-04'],[note,bare word],[empty,''],[low,-1e-3]"
    attributes = attributes_from_padres(text)
    expected: dict[str, Any] = {
        "class": "STOCK",
        "open": 63.3,
        "volume": 10924200,
        "date": "28-Dec-04",
        "note": "bare word",
        "empty": "",
        "low": -0.001,
    }
    assert attributes == expected
    assert list(map(type, attributes.values())) == list(map(type, expected.values()))
    assert attributes_from_padres("") == {}


@pytest.mark.parametrize(
    ("text", "problem", "attribute"),
    [
        ("[a,1],[a,2]", "given twice", "a"),
        ("[topic,'x']", "topic", "topic"),
        ("[a,'\ud800']", "surrogate", "a"),
        ("[a,1", "ends too early", ""),
        ("[a,eq,1]", "a tuple of 3 fields", ""),
        ("[a,$X]", "variables", ""),
        ("a,1", "unexpected 'a'", ""),
    ],
)
def test_what_is_no_event_of_padres_is_refused(text: str, problem: str, attribute: str) -> None:
    with pytest.raises(EventError, match=problem) as caught:
        attributes_from_padres(text)
    assert caught.value.attribute == attribute


def test_the_stock_quotes_of_padres_are_events_that_filters_find(data_file: Callable[[str], Path]) -> None:
    with lzma.open(data_file("stock-quotes-20.txt.xz"), "rt", encoding="utf-8") as lines:
        # Where one symbol's quotes end and the next one's begin, the file has two events in a line.
        texts = [text for line in lines if line.strip() for text in line.strip().replace("][", "]\n[").split("\n")]
    events = [attributes_from_padres(text) for text in texts]
    assert len(events) == len(texts) > 40_000
    types = {"class": str, "symbol": str, "open": float, "high": float, "low": float, "close": float, "date": str}
    for event in events:
        assert event["class"] == "STOCK"
        assert {name: type(event[name]) for name in types} == types

    def count(filter: Filter) -> int:
        return sum(map(filter.matches, events))

    symbols = {event["symbol"] for event in events}
    assert len(symbols) == 20
    assert count(Filter.from_padres("[class,eq,'STOCK']")) == len(events)
    assert count(Filter("class = 'BOND' OR price > 0 OR symbol IS NULL")) == 0
    for symbol in sorted(map(str, symbols))[::7]:
        expected = sum(f"[symbol,'{symbol}']" in text for text in texts)
        assert count(Filter.from_padres(f"[class,eq,'STOCK'],[symbol,eq,'{symbol}']")) == expected > 0
    dear, cheap = count(Filter.from_padres("[close,>,100]")), count(Filter("NOT close > 100"))
    assert dear + cheap == len(events)
    assert 0 < dear < cheap
    december = sum("-Dec-" in text for text in texts)
    assert count(Filter.from_padres("[date,str-contains,'-Dec-']")) == count(Filter("date LIKE '%-Dec-__'")) == december
    assert count(Filter("low <= high")) == len(events)


def test_a_limit_that_the_translation_meets_is_shown_in_the_text_as_written() -> None:
    text = f"[{'a' * 200},>,5]"
    with pytest.raises(FilterError, match="name_bytes") as caught:
        Filter.from_padres(text)
    assert caught.value.text == text
