"""Hypothesis strategies: texts of valid filters that use every operator, and events that come close to them.

Everything grows from a run of bytes, each of which makes one choice; behind the last byte the first choice is
taken. That is many times faster than a strategy for every part, and shrinks as well: fewer, smaller bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from tests.filters.reference import Value

T = TypeVar("T")

NAMES = ("a", "b", "c", "größe", "$x_1.y", "topic", "quoted name", 'a"b', "Select", "or", "नमस्ते", "€_²", "a\u200db")
QUOTED_NAMES = frozenset({"quoted name", 'a"b', "or", "a\u200db"})
INTEGERS = (1, 0, 2, 3, 5, 7, 10, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1)
FLOATS = (0.5, 0.0, 1.0, 2.0, 2.5, 1e-3, 5e-324, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, 1e16, 1e308, 1.7e308)
NUMBER_TEXTS = (
    *(".5", "7.", "1E3", "1e-2", "2.5E+1", "007.5", "5L", "0l", "7d", "2.5D", "1e3d"),
    *("0x1F", "0XaL", "0b101", "1_000", "0x7fff_ffff_ffff_ffff", "1_0.2_5e0_1"),
)
STRINGS = ("a", "", "b", "ab", "aa", "abc", "it's", "%", "_", "a_b", "a%", "ä", "\U0001f600", "\ue000", "\ud7ff", "a\0")
CHARACTERS = "ab%_!'ä\0\ud7ff\ue000\U0001f600\U0010ffff"
COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
ESCAPES = ("", "", "!", "\\", "a", "%", "_", "'")


class Choices:
    """Bytes as decisions."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._at = 0

    def byte(self) -> int:
        self._at += 1
        return self._source[self._at - 1] if self._at <= len(self._source) else 0

    def below(self, bound: int) -> int:
        return self.byte() % bound

    def of(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def integer(self) -> int:
        return self.of(INTEGERS) if self.below(4) else self.below(13)

    def float(self) -> float:
        if self.below(4):
            return self.of(FLOATS)
        bits = bytes(self.byte() for _ in range(8))
        number = abs(float(struct.unpack("<d", bits)[0]))
        return number if math.isfinite(number) else 0.25

    def string(self) -> str:
        if self.below(3):
            return self.of(STRINGS)
        return "".join(self.of(CHARACTERS) for _ in range(self.below(5)))

    def value(self) -> Value:
        match self.below(8):
            case 0 | 1:
                return self.integer() * self.of((1, 1, -1))
            case 2 | 3:
                return self.float() * self.of((1, 1, -1))
            case 4 | 5 | 6:
                return self.string()
            case _:
                return self.of((True, False, True, False, -(2**63)))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def name_text(choices: Choices) -> str:
    name = choices.of(NAMES)
    return '"' + name.replace('"', '""') + '"' if name in QUOTED_NAMES else name


def keyword(choices: Choices, word: str) -> str:
    return choices.of((word, word, word.lower(), word.title()))


def number_text(choices: Choices) -> str:
    match choices.below(5):
        case 0 | 1:
            return str(choices.integer())
        case 2 | 3:
            return repr(choices.float())
        case _:
            return choices.of(NUMBER_TEXTS)


def literal_text(choices: Choices) -> str:
    match choices.below(7):
        case 0 | 1 | 2:
            return number_text(choices)
        case 3 | 4 | 5:
            return quoted(choices.string())
        case _:
            return keyword(choices, choices.of(("TRUE", "FALSE")))


def in_list(choices: Choices) -> str:
    def member() -> str:
        match choices.below(5):
            case 0 | 1:
                return choices.of(("", "-", "+")) + number_text(choices)
            case 2:
                return "-9223372036854775808"
            case _:
                return quoted(choices.string())

    return f"({', '.join(member() for _ in range(1 + choices.below(4)))})"


def like_clause(choices: Choices) -> str:
    """LIKE with a pattern, with an ESCAPE clause or without."""
    escape = choices.of(ESCAPES)
    pieces = ["a", "b", "ä", "''", "\U0001f600", "!", "%", "_", "%"]
    if escape:
        written = quoted(escape)[1:-1]
        pieces = [piece for piece in pieces if piece != written] + [written + c for c in ("%", "_", written)]
    pattern = "".join(choices.of(pieces) for _ in range(choices.below(7)))
    return f"{keyword(choices, 'LIKE')} '{pattern}'" + (f" ESCAPE {quoted(escape)}" if escape else "")


def atom(choices: Choices, depth: int) -> str:
    choice = choices.below(10)
    if choice < 5:
        return name_text(choices)
    if choice < 8 or depth == 0:
        return literal_text(choices)
    if choice == 8:
        return choices.of(("-", "+", "- ")) + atom(choices, depth - 1)
    return f"({filter_text(choices, depth - 1)})"


def chain(choices: Choices, depth: int) -> str:
    """Arithmetic without needless parentheses: precedence decides."""
    operators = choices.of(((), (), (), (1,), (1, 2)))
    numeric = bool(operators) and choices.below(3) > 0
    text = number_atom(choices) if numeric else atom(choices, depth)
    for _ in operators:
        text += f" {choices.of('+-*/%')} {number_atom(choices) if numeric else atom(choices, depth)}"
    return text


def number_atom(choices: Choices) -> str:
    """What is likely to be a number: in events, `a` and `b` mostly are."""
    return choices.of(("", "", "-")) + (choices.of("ab") if choices.below(2) else number_text(choices))


def bare_condition(choices: Choices, depth: int) -> str:
    """A condition without an operator: what may be a boolean."""
    match choices.below(4 if depth else 3):
        case 0 | 1:
            return name_text(choices)
        case 2:
            return keyword(choices, choices.of(("TRUE", "FALSE")))
        case _:
            return f"({filter_text(choices, depth - 1)})"


def predicate(choices: Choices, depth: int) -> str:
    negation = choices.of(("", "", "NOT ", "not "))
    match choices.below(10):
        case 0:
            return bare_condition(choices, depth)
        case 1:
            operand, low, high = (chain(choices, depth) for _ in range(3))
            return f"{operand} {negation}{keyword(choices, 'BETWEEN')} {low} {keyword(choices, 'AND')} {high}"
        case 2:
            return f"{chain(choices, depth)} {negation}{keyword(choices, 'IN')} {in_list(choices)}"
        case 3:
            return f"{name_text(choices)} {negation}{like_clause(choices)}"
        case 4:
            return f"{chain(choices, depth)} {negation}{like_clause(choices)}"
        case 5:
            return f"{name_text(choices)} {keyword(choices, 'IS')} {negation}{keyword(choices, 'NULL')}"
        case 6 | 7:
            return f"{chain(choices, depth)} {choices.of(COMPARISONS)} {chain(choices, depth)}"
        case _:
            return f"{name_text(choices)} {choices.of(COMPARISONS)} {literal_text(choices)}"


def filter_text(choices: Choices, depth: int = 2) -> str:
    """A valid filter without needless parentheses, so that reading it right takes the right precedence."""
    text = ""
    for i in range(choices.of((1, 1, 2, 2, 3, 4))):
        if i:
            text += choices.of((" AND ", " OR ", " and ", "\nor "))
        text += choices.of(("", "", "", "NOT ", "NOT NOT ")) + predicate(choices, depth)
    return text


def event(choices: Choices) -> tuple[dict[str, Value], str]:
    attributes = {name: choices.value() for name in NAMES if name != "topic" and choices.below(3)}
    for name in "ab":
        if name in attributes and choices.below(4):
            attributes[name] = choices.of((choices.integer(), choices.float()))
    return attributes, choices.string() if choices.below(2) else ""


NEAR_CONSTANTS = ("1", "2", "3", "2.5", "2.0", "'a'", "'ab'", "'b'", "''")


def simple_predicate(choices: Choices, name: str, near: tuple[str, ...] = NEAR_CONSTANTS) -> str:
    """A comparison with constants, IN, BETWEEN, IS NULL or a prefix LIKE over one attribute; or its NOT."""

    def constant() -> str:
        return choices.of(near) if choices.below(6) else literal_text(choices)

    negation = choices.of(("", "", "NOT "))
    match choices.below(7):
        case 0:
            members = ", ".join(choices.of(near) for _ in range(1 + choices.below(4)))
            return f"{negation}{name} IN {f'({members})' if choices.below(4) else in_list(choices)}"
        case 1:
            return f"{negation}{name} BETWEEN {constant()} AND {constant()}"
        case 2:
            return f"{negation}{name} IS NULL"
        case 3:
            prefix = "".join(choices.of("ab\ud7ff\U0010ffff") for _ in range(choices.below(3)))
            return f"{negation}{name} LIKE '{prefix}%'"
        case 4:
            return f"{negation}{constant()} {choices.of(COMPARISONS)} {name}"
        case _:
            return f"{negation}{name} {choices.of(COMPARISONS)} {constant()}"


def conjunction(choices: Choices, names: tuple[str, ...] = ("x", "y")) -> str:
    return " AND ".join(simple_predicate(choices, choices.of(names)) for _ in range(1 + choices.below(4)))


def made_by(make: Callable[[Choices], T], size: int = 100) -> st.SearchStrategy[T]:
    """The strategy of what `make` grows from bytes."""
    return st.binary(min_size=size // 2, max_size=size).map(lambda source: make(Choices(source)))


filter_texts = made_by(filter_text)
deep_filter_texts = made_by(lambda choices: filter_text(choices, 4), 300)
events = made_by(event, 80)
conjunction_texts = made_by(conjunction, 60)
