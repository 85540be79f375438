"""A second evaluator of the filter language, written from its specification and sharing nothing with the first.

It is slow and plain on purpose: an Enum of three truth values, exact fractions for every number, and LIKE by
dynamic programming. What `Filter.matches` says must be what this says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

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

Value: TypeAlias = int | float | str | bool
Event: TypeAlias = Mapping[str, Value]


class Truth(Enum):
    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"


TRUE, FALSE, UNKNOWN = Truth.TRUE, Truth.FALSE, Truth.UNKNOWN


class Wildcard(Enum):
    ONE = "_"
    MANY = "%"


def event_of(attributes: Event, topic: str) -> dict[str, Value]:
    return {**attributes, "topic": topic} if topic else dict(attributes)


def truth(node: Node, event: Event) -> Truth:
    """The truth of a node as a condition; what is not a boolean is UNKNOWN."""
    match node:
        case Not(operand=operand):
            return negation(truth(operand, event))
        case And(operands=operands):
            return conjunction([truth(operand, event) for operand in operands])
        case Or(operands=operands):
            return negation(conjunction([negation(truth(operand, event)) for operand in operands]))
        case Comparison(operator=operator, left=left, right=right):
            return compared(operator, value(left, event), value(right, event))
        case Between(operand=operand, low=low, high=high):
            x = value(operand, event)
            return conjunction([compared(">=", x, value(low, event)), compared("<=", x, value(high, event))])
        case In(operand=operand, values=values):
            x = value(operand, event)
            equal = [compared("=", x, member) for member in values]
            return UNKNOWN if x is None else TRUE if TRUE in equal else FALSE
        case Like(operand=operand, pattern=pattern):
            x = value(operand, event)
            wildcards: list[str | Wildcard] = []
            for segment in pattern.segments:
                wildcards += [Wildcard.ONE if i in segment.holes else c for i, c in enumerate(segment.text)]
                wildcards.append(Wildcard.MANY)
            if x is None:
                return UNKNOWN
            return TRUE if isinstance(x, str) and is_like(wildcards[:-1], x) else FALSE
        case IsNull(name=name):
            return FALSE if name in event else TRUE
        case _:
            x = value(node, event)
            return TRUE if x is True else FALSE if x is False else UNKNOWN


def negation(x: Truth) -> Truth:
    return {TRUE: FALSE, FALSE: TRUE, UNKNOWN: UNKNOWN}[x]


def conjunction(parts: Sequence[Truth]) -> Truth:
    return FALSE if FALSE in parts else UNKNOWN if UNKNOWN in parts else TRUE


def value(node: Node, event: Event) -> Value | None:
    """The value of a node as an operand, or None where there is none."""
    match node:
        case Literal(value=constant):
            return constant
        case Attribute(name=name):
            return event.get(name)
        case Sign(negative=negative, operand=operand):
            return calculated("-" if negative else "+", 0, value(operand, event))
        case Arithmetic(first=first, rest=rest):
            result = value(first, event)
            for operator, operand in rest:
                result = calculated(operator, result, value(operand, event))
            return result
        case _:
            return {TRUE: True, FALSE: False, UNKNOWN: None}[truth(node, event)]


def kind(x: Value) -> str:
    return "boolean" if isinstance(x, bool) else "string" if isinstance(x, str) else "number"


def compared(operator: str, left: Value | None, right: Value | None) -> Truth:
    if left is None or right is None:
        return UNKNOWN
    if kind(left) != kind(right) or (kind(left) == "boolean" and operator not in ("=", "<>")):
        return FALSE
    a, b = comparable(left), comparable(right)
    order = (a > b) - (a < b)
    holds = {"=": order == 0, "<>": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return TRUE if holds[operator] else FALSE


def comparable(x: Value) -> list[Fraction]:
    """Numbers as exact fractions, strings as their code points."""
    return [Fraction(ord(c)) for c in x] if isinstance(x, str) else [Fraction(x)]


def calculated(operator: str, left: Value | None, right: Value | None) -> int | float | None:
    """Exact arithmetic, rounded once where the language says double; an integer beside a double becomes one."""
    if left is None or right is None or kind(left) != "number" or kind(right) != "number":
        return None
    assert not isinstance(left, str)
    assert not isinstance(right, str)
    is_double = isinstance(left, float) or isinstance(right, float)
    a, b = (Fraction(float(left)), Fraction(float(right))) if is_double else (Fraction(left), Fraction(right))
    if operator in "/%" and b == 0:
        return None
    if operator == "%":
        quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        exact = a - b * quotient
    else:
        exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[operator]
    if is_double or operator == "/":
        try:
            return float(exact)
        except OverflowError:
            return None
    return int(exact) if -(2**63) <= exact < 2**63 else None


def wildcards_of(pattern: str, escape: str = "") -> list[str | Wildcard]:
    """The elements of a valid LIKE pattern."""
    elements: list[str | Wildcard] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            elements.append(pattern[at])
        else:
            elements.append({"_": Wildcard.ONE, "%": Wildcard.MANY}.get(pattern[at], pattern[at]))
        at += 1
    return elements


def is_like(elements: Sequence[str | Wildcard], text: str) -> bool:
    """Dynamic programming: reached[i] says whether the elements so far match text[:i]."""
    reached = [True] + [False] * len(text)
    for element in elements:
        if element is Wildcard.MANY:
            first = reached.index(True) if True in reached else len(reached)
            reached = [i >= first for i in range(len(reached))]
        else:
            accepted = [element is Wildcard.ONE or c == element for c in text]
            reached = [False] + [reached[i] and accepted[i] for i in range(len(text))]
    return reached[-1]
