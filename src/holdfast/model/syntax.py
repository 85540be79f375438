"""The syntax tree of a filter, and the obvious evaluator: every node can evaluate itself.

`evaluate` gives an int, float, str or bool, or None for UNKNOWN (which includes the value of a missing
attribute). It follows the semantics of Jakarta Messaging 3.1 selectors literally and knows nothing of the
canonical form or of the index: it is the oracle of both.

- UNKNOWN: a missing attribute, arithmetic without a result, a condition that is no boolean.
- FALSE: a comparison between unlike kinds, so that its NOT is TRUE.
- AND, OR and NOT are Kleene's.

Nodes are acyclic and hold plain values only: `gc=False` keeps a million filters out of the garbage
collector's sight. The height of a tree is limited by the parser, so recursion is bounded.

To add an operator: a node here, its token in `lexer`, its precedence in `parser`, its text in `rendering`,
its set of values in `canonical`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from holdfast.model.arithmetic import calculate, in_range, is_number, negate
from holdfast.model.like import LikePattern
from holdfast.model.values import Value, read

Attributes: TypeAlias = Mapping[str, Any]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


# Kinds that can be compared with each other in every way. Booleans are not among them: they have no order.
ORDERED_KINDS: dict[type, str] = {int: "number", float: "number", str: "string"}


def compare(comparison: str, left: Value, right: Value) -> bool:
    """Unlike kinds compare as FALSE; so do booleans under an order. Numbers compare exactly."""
    kind = ORDERED_KINDS.get(left.__class__)
    if kind is not None:
        return kind == ORDERED_KINDS.get(right.__class__) and COMPARISONS[comparison](left, right)
    return right.__class__ is bool and comparison in ("=", "<>") and COMPARISONS[comparison](left, right)


class Node(msgspec.Struct, frozen=True, gc=False):
    """One node of the tree."""

    def evaluate(self, attributes: Attributes) -> Value | None:
        raise TypeError(f"{type(self).__name__} can't be evaluated")


class Literal(Node, frozen=True, gc=False):
    value: Value

    def evaluate(self, attributes: Attributes) -> Value | None:
        return self.value


class Attribute(Node, frozen=True, gc=False):
    name: str

    def evaluate(self, attributes: Attributes) -> Value | None:
        return read(attributes, self.name)


class Sign(Node, frozen=True, gc=False):
    negative: bool
    operand: Node

    def evaluate(self, attributes: Attributes) -> Value | None:
        value = self.operand.evaluate(attributes)
        if self.negative:
            return negate(value)
        return in_range(value) if is_number(value) else None


class Arithmetic(Node, frozen=True, gc=False):
    """A chain of one precedence, calculated from the left: `first op operand op operand …`."""

    first: Node
    rest: tuple[tuple[str, Node], ...]

    def evaluate(self, attributes: Attributes) -> Value | None:
        result = self.first.evaluate(attributes)
        for symbol, operand in self.rest:
            result = calculate(symbol, result, operand.evaluate(attributes))
            if result is None:
                return None
        return result


class Comparison(Node, frozen=True, gc=False):
    operator: str
    left: Node
    right: Node

    def evaluate(self, attributes: Attributes) -> bool | None:
        # Attribute against literal of the same type is nearly every predicate there is: three calls less for it.
        left, right = self.left, self.right
        if left.__class__ is Attribute and right.__class__ is Literal:
            value = read(attributes, left.name)
            other: Value | None = right.value
            kind = value.__class__
            if kind is other.__class__ and kind is not bool:
                return COMPARISONS[self.operator](value, other)
        else:
            value, other = left.evaluate(attributes), right.evaluate(attributes)
        if value is None or other is None:
            return None
        return compare(self.operator, value, other)


class Between(Node, frozen=True, gc=False):
    """`operand >= low AND operand <= high`, and nothing else: three-valued as that is."""

    operand: Node
    low: Node
    high: Node

    def evaluate(self, attributes: Attributes) -> bool | None:
        operand, low_node, high_node = self.operand, self.low, self.high
        value = read(attributes, operand.name) if operand.__class__ is Attribute else operand.evaluate(attributes)
        low = low_node.value if low_node.__class__ is Literal else low_node.evaluate(attributes)
        high = high_node.value if high_node.__class__ is Literal else high_node.evaluate(attributes)
        if value is None:
            return None
        kind = ORDERED_KINDS.get(value.__class__)
        if kind is not None and kind == ORDERED_KINDS.get(low.__class__) == ORDERED_KINDS.get(high.__class__):
            return low <= value <= high  # type: ignore[operator]
        above = None if low is None else compare(">=", value, low)
        if above is False:
            return False
        below = None if high is None else compare("<=", value, high)
        return below if above is True or below is False else None


class In(Node, frozen=True, gc=False):
    operand: Node
    values: tuple[int | float | str, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        value = self.operand.evaluate(attributes)
        if value is None:
            return None
        return value.__class__ is not bool and value in self.values  # 1 = 1.0 exactly, '1' is neither


class Like(Node, frozen=True, gc=False):
    operand: Node
    pattern: LikePattern

    def evaluate(self, attributes: Attributes) -> bool | None:
        operand = self.operand
        value = read(attributes, operand.name) if operand.__class__ is Attribute else operand.evaluate(attributes)
        if value is None:
            return None
        return value.__class__ is str and self.pattern.matches(value)


class IsNull(Node, frozen=True, gc=False):
    name: str

    def evaluate(self, attributes: Attributes) -> bool | None:
        return read(attributes, self.name) is None


class Not(Node, frozen=True, gc=False):
    operand: Node

    def evaluate(self, attributes: Attributes) -> bool | None:
        value = self.operand.evaluate(attributes)
        return not value if value.__class__ is bool else None


class And(Node, frozen=True, gc=False):
    operands: tuple[Node, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        result: bool | None = True
        for operand in self.operands:
            value = operand.evaluate(attributes)
            if value is False:
                return False
            if value is not True:
                result = None
        return result


class Or(Node, frozen=True, gc=False):
    operands: tuple[Node, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        result: bool | None = False
        for operand in self.operands:
            value = operand.evaluate(attributes)
            if value is True:
                return True
            if value is not False:
                result = None
        return result


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below `node`."""
    match node:
        case Sign(operand=operand) | In(operand=operand) | Like(operand=operand) | Not(operand=operand):
            return (operand,)
        case Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))
        case Comparison(left=left, right=right):
            return (left, right)
        case Between(operand=operand, low=low, high=high):
            return (operand, low, high)
        case And(operands=operands) | Or(operands=operands):
            return operands
        case _:
            return ()


def names_read(node: Node) -> tuple[str, ...]:
    """The attributes that a tree reads, in the order of their first use."""
    names: dict[str, None] = {}
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Attribute | IsNull):
            names[node.name] = None
        else:
            pending.extend(reversed(children(node)))
    return tuple(names)
