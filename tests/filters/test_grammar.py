"""What is a filter, and how it is read: literals, names, keywords, precedence."""

import random
import unicodedata

import pytest

from holdfast import Filter, FilterError
from holdfast.model.lexer import END, NAME, tokens_of
from holdfast.model.limits import DEFAULT_LIMITS
from holdfast.model.rendering import name_text
from holdfast.model.syntax import Comparison, Literal
from tests.filters.reference import Value
from tests.filters.strategies import Choices, event

EVENTS = [event(Choices(random.Random(seed).randbytes(80))) for seed in range(60)] + [
    ({"a": a, "b": b, "c": c}, topic)
    for a, b, c, topic in [
        (1, 2, 3, "stock"),
        (6, 3, 2, ""),
        (True, False, True, "a"),
        (False, True, True, ""),
        (False, False, True, ""),
        (True, True, False, ""),
        (-1.5, 0.5, 2.0, "x"),
        (5, 2, 0, ""),
        ("a", "b", "ab", "a"),
        (2, True, "a", ""),
    ]
]


def literal(text: str) -> Value | None:
    """The value of a literal, found out by comparing it."""
    root = Filter(f"x = {text}").root
    assert isinstance(root, Comparison)
    return root.right.value if isinstance(root.right, Literal) else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("42", 42),
        ("-42", -42),
        ("+42", 42),
        ("- 42", -42),
        ("--42", 42),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("5L", 5),
        ("0l", 0),
        ("1_000__000", 1_000_000),
        ("0x1F", 31),
        ("0XfFL", 255),
        ("0x7fff_ffff_ffff_ffff", 2**63 - 1),
        ("-0x8000000000000000", -(2**63)),
        ("0b101", 5),
        ("-0B1_1l", -3),
        ("5d", 5.0),
        ("2.5D", 2.5),
        ("1e3d", 1000.0),
        ("1_0.2_5e0_1", 102.5),
        ("007.5", 7.5),
        ("09e1", 90.0),
        ("0.", 0.0),
        (".5", 0.5),
        ("7.", 7.0),
        ("1.25", 1.25),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("7.e-1", 0.7),
        (".5e1", 5.0),
        ("1e-400", 0.0),
        ("9223372036854775808.", 2.0**63),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("''", ""),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''''''", "''"),
        ("'\"'", '"'),
        ("'ä\U0001f600\n\0'", "ä\U0001f600\n\0"),
        ("TRUE", True),
        ("tRuE", True),
        ("False", False),
    ],
)
def test_a_literal_has_its_value_and_its_type(text: str, value: Value) -> None:
    assert (literal(text), type(literal(text))) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "x = 9223372036854775808",
        "x = -9223372036854775809",
        "x = -(9223372036854775808)",
        "x = 0-9223372036854775808",
        "x = +9223372036854775808",
        "x IN (9223372036854775808)",
        "x IN (-9223372036854775809)",
        "x = 1e309",
        "x = -1e309",
        "x = 1e",
        "x = 1e+",
        "x = 1.2.3",
        "x = 1..2",
        "x = 0x",
        "x = 0xg",
        "x = 0x_1",
        "x = 0x1_",
        "x = 0x1.8p1",
        "x = 0x8000000000000000",
        "x = 0xFFFFFFFFFFFFFFFFL",
        "x = 0b",
        "x = 0b2",
        "x = 0b1d",
        "x = 0o17",
        "x = 1_",
        "x = 1_.5",
        "x = 1._5",
        "x = 1e_5",
        "x = 5LL",
        "x = 5Ld",
        "x = 1.5L",
        "x = 1e5L",
        "x = 1f",
        "x = 1.5F",
        "x = 5€",
        "x = 5\u0301",
        f"x = 0x{'0' * 4000}",
        "x = 1e5.5",
        "x = .",
        "x = 1a",
        "x = '",
        "x = 'a",
        "x = 'a''",
        "x = \u0661\u0662",
        "x = 1\u0662",
        f"x = {'9' * 4000}",
    ],
)
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        Filter(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("035", "35, or 29 if it was meant as octal"),
        ("-035", "35, or 29 if it was meant as octal"),
        ("0_35", "35, or 29 if it was meant as octal"),
        ("007L", "7"),
        ("089", "89"),
        ("00", "0"),
    ],
)
def test_an_integer_with_a_leading_zero_is_refused_and_both_meanings_are_named(text: str, meant: str) -> None:
    for filter in (f"x = {text}", f"x IN ({text})", f"{text} < x"):
        with pytest.raises(FilterError) as caught:
            Filter(filter)
        assert (caught.value.problem, caught.value.expected) == ("an integer begins with 0", meant)
        assert filter[caught.value.offset] == "0"


def is_plain(name: str) -> bool:
    """Whether a name needs no quotes, by Unicode's categories: what docs/filters.md says, in other words."""
    start = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Pc", "Sc"}
    part = start | {"Nd", "No", "Mn", "Mc"}
    return unicodedata.category(name[0]) in start and all(unicodedata.category(c) in part or c == "." for c in name)


def test_names_are_what_the_page_says_and_every_name_can_be_written() -> None:
    """Over all characters: a sample would miss the scripts that nobody here writes."""
    wrong = []
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF or (code > 0x1FFFF and code % 97):
            continue
        for name in (chr(code), "a" + chr(code)):
            text = name_text(name)
            if (text == name) is not is_plain(name) or tokens_of(text, DEFAULT_LIMITS) != [
                (NAME, name, 0),
                (END, "", len(text)),
            ]:
                wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize("character", ["\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad"])
def test_a_character_that_nobody_sees_is_taken_in_quotes_only(character: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(f"pri{character}ce = 1")
    assert caught.value.problem == f"unexpected character {character!r}"
    assert caught.value.expected == "double quotes around a name that holds it"
    assert Filter(f'"pri{character}ce" = 1').matches({f"pri{character}ce": 1})


@pytest.mark.parametrize(
    ("text", "kind", "column"),
    [
        ("3+5", "number", 1),
        ("1", "number", 1),
        ("-1", "number", 1),
        ("'a'", "string", 1),
        ("''", "string", 1),
        ("price + 1", "number", 1),
        ("-price", "number", 1),
        ("+TRUE", "number", 1),
        ("(price * 2)", "number", 2),
        ("NOT 5", "number", 5),
        ("NOT (a + 1)", "number", 6),
        ("price = 1 AND 3 + 5", "number", 15),
        ("price = 1 OR 'a' OR b", "string", 14),
        ("a + 1 AND b", "number", 1),
        ("a AND NOT b - 1 OR c", "number", 11),
        ("a BETWEEN 1 AND 2 AND 3", "number", 23),
        ("(a AND 1) = TRUE", "number", 8),
    ],
)
def test_what_can_not_be_a_boolean_is_no_condition(text: str, kind: str, column: int) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(text)
    assert (caught.value.problem, caught.value.column) == (f"a {kind} is no condition", column)


def test_an_attribute_and_a_boolean_are_conditions() -> None:
    assert Filter("open AND NOT closed OR FALSE").matches({"open": True, "closed": False})
    assert Filter("(a = 1) = (b = 2) AND TRUE").matches({"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ('country = "UK"', ("column 11: \"UK\" is the name of an attribute; if it is a text, write 'UK'",)),
        ('"UK" <> country', ("column 1: \"UK\" is the name of an attribute; if it is a text, write 'UK'",)),
        (
            'a = 1 AND x >= "it\'s"',
            ("column 16: \"it's\" is the name of an attribute; if it is a text, write 'it''s'",),
        ),
        ("country = 'UK'", ()),
        ("country = UK", ()),
        ('"unit price" > limit', ()),
        ('"price" > 5', ()),
        ('"a b" IS NULL AND c IN (\'"\')', ()),
        ("", ()),
    ],
)
def test_a_name_where_a_text_is_probably_meant_gets_a_hint(text: str, hints: tuple[str, ...]) -> None:
    assert Filter(text).hints == hints


@pytest.mark.parametrize("text", ['country IN ("UK")', 'country LIKE "U%"', "country LIKE 'a' ESCAPE \"!\""])
def test_a_name_in_quotes_where_none_can_stand_is_told_apart_from_a_string(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(text)
    assert "what stands in double quotes is a name, and a string is in single quotes" in caught.value.expected


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("a", "a"),
        ("A", "A"),
        ("_a", "_a"),
        ("$a", "$a"),
        ("a.b.c", "a.b.c"),
        ("a1$_.", "a1$_."),
        ("größe", "größe"),
        ("価格", "価格"),
        ("\U00010400x", "\U00010400x"),
        ("x\u0661", "x\u0661"),
        ("नमस्ते", "नमस्ते"),
        ("prix€", "prix€"),
        ("€", "€"),
        ("a\u0301", "a\u0301"),
        ("AND\u0308", "AND\u0308"),
        ("a‿b", "a‿b"),
        ("m²", "m²"),
        ('"a b"', "a b"),
        ('"it\'s"', "it's"),
        ('"a""b"', 'a"b'),
        ('""""', '"'),
        ('"1"', "1"),
        ('"AND"', "AND"),
        ('"select"', "select"),
        ("NULLS", "NULLS"),
        ("INN", "INN"),
        ("is_", "is_"),
        ("not.a", "not.a"),
        ("ORDER", "ORDER"),
        ('" "', " "),
    ],
)
def test_a_name_is_read_as_it_is_spelled(spelling: str, name: str) -> None:
    filter = Filter(f"{spelling} = 1")
    assert filter.attributes == (name,)
    assert filter.matches({name: 1})
    assert not filter.matches({name + "x": 1, name.swapcase() + "x": 1})


def test_names_are_case_sensitive() -> None:
    assert not Filter("price = 1").matches({"Price": 1, "PRICE": 1})


@pytest.mark.parametrize("name", ["l\u0131ke", "\u0131s", "\u0131n", "\u0131S", "fal\u017fe", "i\u017f"])
def test_a_name_whose_capitals_spell_a_keyword_is_a_name(name: str) -> None:
    assert Filter(f"{name} = 1").attributes == (name,)
    assert Filter(f"{name} = 1").matches({name: 1})
    with pytest.raises(FilterError, match="unexpected name"):
        Filter(f"a {name} NULL")


@pytest.mark.parametrize("word", ["AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "null", "In"])
def test_a_reserved_word_is_no_name(word: str) -> None:
    with pytest.raises(FilterError):
        Filter(f"{word} = 1")


@pytest.mark.parametrize(
    "text", ['"" = 1', '"a = 1', ".a = 1", "1a = 1", "@a = 1", "#a = 1", "a;b", "a\\b", "\u0301a = 1", "²a = 1"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        Filter(text)


@pytest.mark.parametrize(
    "text",
    [
        "a BETWEEN 1 AND 5 OR NOT b IS NOT NULL AND c LIKE 'a!_' ESCAPE '!' OR a NOT IN (1, 'b') OR c = TRUE",
        "a between 1 and 5 or not b is not null and c like 'a!_' escape '!' or a not in (1, 'b') or c = true",
        "a Between 1 aNd 5 oR nOt b iS noT nUlL And c LiKe 'a!_' eScApE '!' Or a Not iN (1, 'b') or c = tRUe",
    ],
)
def test_keywords_are_read_in_any_case(text: str) -> None:
    canonical = (
        "a BETWEEN 1 AND 5 OR NOT (b IS NOT NULL) AND (c LIKE 'a!_' ESCAPE '!') OR NOT a IN (1, 'b') OR c = TRUE"
    )
    assert Filter(text) == Filter(canonical)


@pytest.mark.parametrize(
    ("text", "parenthesised"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("a AND b OR c", "(a AND b) OR c"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a OR b", "(NOT a) OR b"),
        ("NOT NOT a AND b", "(NOT (NOT a)) AND b"),
        ("a AND NOT b OR c", "(a AND (NOT b)) OR c"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a = b AND c", "(NOT (a = b)) AND c"),
        ("NOT a IN (1, 2)", "NOT (a IN (1, 2))"),
        ("NOT a BETWEEN 1 AND 2 AND c", "(NOT (a BETWEEN 1 AND 2)) AND c"),
        ("NOT topic LIKE 'a%' OR b", "(NOT (topic LIKE 'a%')) OR b"),
        ("NOT a IS NULL AND b", "(NOT (a IS NULL)) AND b"),
        ("a = b OR b = c AND a < c", "(a = b) OR ((b = c) AND (a < c))"),
        ("a + b * c = 7", "(a + (b * c)) = 7"),
        ("a * b + c = 5", "((a * b) + c) = 5"),
        ("a - b - c = 1", "((a - b) - c) = 1"),
        ("a - b + c = 2", "((a - b) + c) = 2"),
        ("a / b / c = 1", "((a / b) / c) = 1"),
        ("a / b * c = 4", "((a / b) * c) = 4"),
        ("a * b / c = 9", "((a * b) / c) = 9"),
        ("a % b * c = 0", "((a % b) * c) = 0"),
        ("a * b % c = 0", "((a * b) % c) = 0"),
        ("a - b * c - a = -6", "((a - (b * c)) - a) = (-6)"),
        ("-a + b = 1", "((-a) + b) = 1"),
        ("-a * b = -2", "((-a) * b) = (-2)"),
        ("a - -b = 3", "(a - (-b)) = 3"),
        ("a--b = 3", "(a - (-b)) = 3"),
        ("a*-b=-2", "(a * (-b)) = (-2)"),
        ("- -a = 1", "(-(-a)) = 1"),
        ("+-+a = -1", "(+(-(+a))) = (-1)"),
        ("a < b + c", "a < (b + c)"),
        ("a + b < c", "(a + b) < c"),
        ("a + b BETWEEN c - 1 AND c * 2 AND b = 2", "((a + b) BETWEEN (c - 1) AND (c * 2)) AND (b = 2)"),
        ("a BETWEEN b AND c OR c", "(a BETWEEN b AND c) OR c"),
        ("c AND a BETWEEN b AND c AND b", "(c AND (a BETWEEN b AND c)) AND b"),
        ("a NOT BETWEEN 1 AND 2 AND b NOT BETWEEN 1 AND 2", "NOT (a BETWEEN 1 AND 2) AND NOT (b BETWEEN 1 AND 2)"),
        ("a + b IN (3, 9)", "(a + b) IN (3, 9)"),
        ("a * b NOT IN (3, 9) AND c = 2", "(NOT ((a * b) IN (3, 9))) AND (c = 2)"),
        ("a NOT LIKE 'a%' AND b NOT LIKE 'b'", "(NOT (a LIKE 'a%')) AND (NOT (b LIKE 'b'))"),
        ("a LIKE 'a!%' ESCAPE '!' OR b", "(a LIKE 'a!%' ESCAPE '!') OR b"),
        ("a IS NOT NULL AND b IS NULL OR c", "((NOT (a IS NULL)) AND (b IS NULL)) OR c"),
        ("a != b", "a <> b"),
        ("a='a'AND(b='b')", "(a = 'a') AND (b = 'b')"),
        ("\t\r\na\u00a0=\f1\v", "a = 1"),
    ],
)
def test_precedence_is_that_of_sql(text: str, parenthesised: str) -> None:
    plain, explicit = Filter(text), Filter(parenthesised)
    assert plain == explicit
    assert [plain.matches(*event) for event in EVENTS] == [explicit.matches(*event) for event in EVENTS]


@pytest.mark.parametrize(
    ("text", "regrouped"),
    [
        ("a OR b AND c", "(a OR b) AND c"),
        ("NOT a AND b", "NOT (a AND b)"),
        ("NOT a OR b", "NOT (a OR b)"),
        ("a - b - c = 1", "a - (b - c) = 1"),
        ("a / b / c = 1", "a / (b / c) = 1"),
        ("a + b * c = 7", "(a + b) * c = 7"),
        ("a - b + c = 2", "a - (b + c) = 2"),
        ("a % b * c = 2", "a % (b * c) = 2"),
    ],
)
def test_the_events_tell_one_precedence_from_another(text: str, regrouped: str) -> None:
    """The check of the test above: another reading of the same text would have been seen."""
    events = [({"a": a, "b": b, "c": c}, "") for a in (1, 2, 5, 6, True, False) for b in (2, 3, True, False) for c in (
        2, 3, 1, True, False,
    )]  # fmt: skip
    assert Filter(text) != Filter(regrouped)
    assert [Filter(text).matches(*e) for e in events] != [Filter(regrouped).matches(*e) for e in events]


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "TRUE", "(TRUE)"])
def test_an_empty_filter_matches_every_event(text: str) -> None:
    assert all(Filter(text).matches(*event) for event in EVENTS)
    assert Filter(text) == Filter()


@pytest.mark.parametrize(
    "text",
    [
        "a =",
        "= a",
        "a = 1AND b = 2",
        "a = = b",
        "a = b = c",
        "a < b < c",
        "a = b IN (1)",
        "a IN (1) = TRUE",
        "a IN (1) + 1",
        "a LIKE 'x' LIKE 'y'",
        "a IS NULL IS NULL",
        "a = b BETWEEN 1 AND 2",
        "a BETWEEN 1 AND 2 BETWEEN 3 AND 4",
        "a BETWEEN 1 OR 2",
        "a BETWEEN 1",
        "(a BETWEEN 1) AND 2",
        "a BETWEEN 1 AND",
        "a BETWEEN AND 2",
        "a BETWEEN b = c AND d",
        "a NOT = 1",
        "a NOT 1",
        "a NOT",
        "a NOT NULL",
        "a NOT IS NULL",
        "a IN 1",
        "a IN ()",
        "a IN (1,)",
        "a IN (,1)",
        "a IN (1 2)",
        "a IN (b)",
        "a IN (TRUE)",
        "a IN (NULL)",
        "a IN (1",
        "a IN (1 + 2)",
        "a IN (-'b')",
        "a IN (- -1)",
        "a LIKE b",
        "a LIKE 1",
        "a LIKE",
        "a LIKE 'x' ESCAPE",
        "a LIKE 'x' ESCAPE ''",
        "a LIKE 'x' ESCAPE 'ab'",
        "a LIKE 'x' ESCAPE 1",
        "a LIKE 'x!' ESCAPE '!'",
        "a LIKE 'x!y' ESCAPE '!'",
        "a = 'x' ESCAPE '!'",
        "a IS",
        "a IS NOT",
        "a IS TRUE",
        "1 IS NULL",
        "a + 1 IS NULL",
        "NULL IS NULL",
        "a = NULL",
        "a AND",
        "AND a",
        "a OR OR b",
        "NOT",
        "a = NOT b",
        "a + NOT b",
        "-NOT a",
        "a NOT AND b",
        "(a",
        "a)",
        "()",
        "(a))",
        ")a(",
        "a b",
        "a 1",
        "'a' 'b'",
        "1 a",
        "a (b)",
        "a, b",
        "a =< 1",
        "a => 1",
        "a == 1",
        "a ! = 1",
        "a < > 1",
        "a <=> 1",
        "a & b",
        "a || b",
        "a ** b",
        "a // b = 1",
        "a = 1 -- a comment",
        "a = 1 /* a comment */",
        "a = 1;",
        "a = ?",
        "a = :b",
        "a = \ud800",
        "a = '\udfff'",
        "\0",
        "\ufeffa = 1",
    ],
)
def test_what_the_grammar_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        Filter(text)


@pytest.mark.parametrize("text", [None, 5, b"a = 1", ["a = 1"]])
def test_a_filter_is_written_as_str(text: object) -> None:
    with pytest.raises(TypeError, match="str"):
        Filter(text)  # type: ignore[arg-type]
