"""A syntax tree as text that parses back to an equal tree; parentheses only where they are needed."""

from __future__ import annotations

from holdfast.model.lexer import KEYWORDS, is_name_part, is_name_start
from holdfast.model.like import LikePattern, pattern_text
from holdfast.model.syntax import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Or,
    Sign,
)
from holdfast.model.values import Value

OR, AND, NOT, PREDICATE, SUM, PRODUCT, SIGN, ATOM = range(8)
LIKE_ESCAPE = "!"


def render(node: Node) -> str:
    """The text of a tree."""
    match node:
        case Literal(value=value):
            return literal_text(value)
        case Attribute(name=name):
            return name_text(name)
        case Sign(negative=negative, operand=operand):
            return f"{'-' if negative else '+'}{_within(operand, ATOM)}"
        case Arithmetic(first=first, rest=rest):
            own = _binding(node)
            return " ".join(
                [_within(first, own + 1), *(f"{symbol} {_within(operand, own + 1)}" for symbol, operand in rest)]
            )
        case Comparison(operator=operator, left=left, right=right):
            return f"{_within(left, SUM)} {operator} {_within(right, SUM)}"
        case Not(operand=Between() | In() | Like() | IsNull() as operand):
            return _predicate(operand, "NOT ")
        case Between() | In() | Like() | IsNull():
            return _predicate(node, "")
        case Not(operand=operand):
            return f"NOT {_within(operand, PREDICATE)}"
        case And(operands=operands):
            return " AND ".join(_within(operand, NOT) for operand in operands)
        case Or(operands=operands):
            return " OR ".join(_within(operand, AND) for operand in operands)
        case _:
            raise TypeError(f"no text for {type(node).__name__}")


def _predicate(node: Node, negation: str) -> str:
    match node:
        case Between(operand=operand, low=low, high=high):
            return f"{_within(operand, SUM)} {negation}BETWEEN {_within(low, SUM)} AND {_within(high, SUM)}"
        case In(operand=operand, values=values):
            return f"{_within(operand, SUM)} {negation}IN ({', '.join(map(literal_text, values))})"
        case Like(operand=operand, pattern=pattern):
            return f"{_within(operand, SUM)} {negation}LIKE {like_text(pattern)}"
        case IsNull(name=name):
            return f"{name_text(name)} IS {negation}NULL"
        case _:
            raise TypeError(f"no text for {type(node).__name__}")


def _within(node: Node, binding: int) -> str:
    text = render(node)
    return text if _binding(node) >= binding else f"({text})"


def _binding(node: Node) -> int:
    match node:
        case Or():
            return OR
        case And():
            return AND
        case Not(operand=Between() | In() | Like() | IsNull()):
            return PREDICATE
        case Not():
            return NOT
        case Comparison() | Between() | In() | Like() | IsNull():
            return PREDICATE
        case Arithmetic(rest=rest):
            return SUM if rest[0][0] in "+-" else PRODUCT
        case Sign():
            return SIGN
        case _:
            return ATOM


def literal_text(value: Value) -> str:
    if value is True:
        return "TRUE"
    if value is False:
        return "FALSE"
    if isinstance(value, str):
        return string_text(value)
    return repr(value)


def string_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def name_text(name: str) -> str:
    """The name as it is where that can be read back, else in double quotes."""
    if is_name_start(name[0]) and all(map(is_name_part, name)) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def like_text(pattern: LikePattern) -> str:
    """The pattern as a literal, with an ESCAPE clause only if something in it must be escaped."""
    literal_characters = "".join(c for s in pattern.segments for place, c in enumerate(s.text) if place not in s.holes)
    if "%" in literal_characters or "_" in literal_characters:
        return f"{string_text(pattern_text(pattern, LIKE_ESCAPE))} ESCAPE '{LIKE_ESCAPE}'"
    return string_text(pattern_text(pattern, ""))
