"""What expressions of Spark's tell about events, as conditions of the filter language.

For every expression there are two answers: what holds for an event if the expression is TRUE for the event's row, and
what holds if it is FALSE. None means that nothing is known, which is always right; to know too much never is. NOT swaps
the two, so that nothing is ever negated that was made weaker before.

What rows guarantee: a column of an attribute is NULL, or the event has the attribute and its value is exactly the
column's. Nothing more: an event that does not fit the schema has NULL in all such columns, so IS NULL tells nothing of
an event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.model.canonical import FLIPPED
from holdfast.model.like import LikePattern, PatternError, Segment, parse_like
from holdfast.model.limits import DEFAULT_LIMITS
from holdfast.model.syntax import And, Attribute, Comparison, In, IsNull, Like, Literal, Node, Not, Or, children
from holdfast.model.values import INTEGER_MAX, INTEGER_MIN, is_unicode_text

NEVER: Final = Literal(False)
NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
# Whole numbers below this are doubles, and none from here on is rounded to one below.
EXACT_IN_DOUBLE: Final = 2**53
INTEGER_BYTES: Final = {"byte": 1, "short": 2, "integer": 4, "long": 8}
ENTRY_TYPES: Final = ("long", "double", "string", "boolean")
# A tree may not be higher than a filter's; comparisons and lists below the connectives take a few levels.
HEIGHT_MAX: Final = DEFAULT_LIMITS.depth - 4


class Constant(msgspec.Struct, frozen=True):
    value: int | float | Decimal | str | bool | None


class AttributeColumn(msgspec.Struct, frozen=True):
    """The value of an attribute, as a type of Spark's. `rounded`: large whole numbers became the nearest double."""

    name: str
    type: str
    rounded: bool = False

    @property
    def kind(self) -> str:
        return self.type if self.type in ("string", "boolean") else "number"


class AttributeMap(msgspec.Struct, frozen=True):
    """The column with all attributes."""


class AttributeEntry(msgspec.Struct, frozen=True):
    """One attribute in the map: a struct with a field for each kind of value."""

    name: str


Value: TypeAlias = Constant | AttributeColumn | AttributeMap | AttributeEntry


class Meaning(msgspec.Struct, frozen=True):
    """What is known of one expression."""

    present: tuple[str, ...] = ()  # the event has these attributes if the expression is not NULL
    when_true: Node | None = None
    when_false: Node | None = None
    value: Value | None = None


UNKNOWN: Final = Meaning()


# ---- joining conditions


def all_of(parts: Iterable[Node | None]) -> Node | None:
    """What follows if every part holds: what is not known is left out."""
    operands = _flat(And, (part for part in parts if part is not None))
    if NEVER in operands:
        return NEVER
    return _connected(And, operands)


def any_of(parts: Iterable[Node | None]) -> Node | None:
    """What follows if some part holds: nothing, if one of them is not known."""
    known = list(parts)
    if None in known:
        return None
    operands = [part for part in _flat(Or, (part for part in known if part is not None)) if part != NEVER]
    return _connected(Or, _gathered(operands)) if operands else NEVER


def _flat(connective: type[And] | type[Or], parts: Iterable[Node]) -> list[Node]:
    """The operands, each once, those of inner connectives of the same type included."""
    found: dict[Node, None] = {}
    for part in parts:
        found.update(dict.fromkeys(part.operands if isinstance(part, connective) else (part,)))
    return list(found)


def _gathered(operands: list[Node]) -> list[Node]:
    """`x = 1 OR x = 2` as `x IN (1, 2)`: a long chain of these would exceed the limits of filters."""
    lists: dict[Attribute, dict[Any, None]] = {}
    others = []
    for operand in operands:
        match operand:
            case Comparison(operator="=", left=Attribute() as column, right=Literal(value=value)):
                lists.setdefault(column, {})[value] = None
            case In(operand=Attribute() as column, values=values):
                lists.setdefault(column, {}).update(dict.fromkeys(values))
            case _:
                others.append(operand)
    return [*(_equal_to_one(column, tuple(values)) for column, values in lists.items()), *others]


def _equal_to_one(column: Attribute, values: tuple[Any, ...]) -> Node:
    return In(column, values) if len(values) > 1 else Comparison("=", column, Literal(values[0]))


def _connected(connective: type[And] | type[Or], operands: list[Node]) -> Node | None:
    if not operands:
        return None
    node = operands[0] if len(operands) == 1 else connective(tuple(operands))
    return node if _height(node) <= HEIGHT_MAX else None


def _height(node: Node) -> int:
    return 1 + max(map(_height, children(node)), default=0)


def presence(names: Iterable[str]) -> Node | None:
    return all_of(Not(IsNull(name)) for name in names)


def derived(operands: Iterable[Meaning]) -> Meaning:
    """Something that is NULL as soon as one of its operands is."""
    names = tuple(dict.fromkeys(name for operand in operands for name in operand.present))
    known = presence(names)
    return Meaning(names, known, known)


def condition(operands: Sequence[Meaning], when_true: Node | None, when_false: Node | None) -> Meaning:
    """A condition that is NULL as soon as an operand is; where nothing else is known, all of them are there."""
    least = derived(operands)
    return Meaning(
        least.present,
        least.when_true if when_true is None else when_true,
        least.when_false if when_false is None else when_false,
    )


# ---- values


def attribute(name: str, type_name: str) -> Meaning:
    """A column of an attribute. A name that no filter can hold tells nothing."""
    return _column(AttributeColumn(name, type_name)) if _can_be_written(name) else UNKNOWN


def _can_be_written(name: str) -> bool:
    return is_unicode_text(name) and 0 < len(name.encode()) <= DEFAULT_LIMITS.name_bytes


def _column(column: AttributeColumn) -> Meaning:
    bare = Attribute(column.name)
    if column.type != "boolean":
        return Meaning((column.name,), value=column)
    return Meaning((column.name,), bare, Not(bare), column)


def entry(name: str) -> Meaning:
    return Meaning((name,), value=AttributeEntry(name)) if _can_be_written(name) else UNKNOWN


def entry_field(operand: Meaning, ordinal: int) -> Meaning:
    if isinstance(operand.value, AttributeEntry):
        return attribute(operand.value.name, ENTRY_TYPES[ordinal])
    return UNKNOWN


def constant(value: int | float | Decimal | str | bool | None) -> Meaning:
    if value is None:
        return Meaning((), NEVER, NEVER, Constant(None))
    if isinstance(value, bool):
        return Meaning((), None if value else NEVER, NEVER if value else None, Constant(value))
    return Meaning(value=Constant(value))


def cast(operand: Meaning, type_name: str) -> Meaning:
    """An operand as another type, where nothing is lost by it; else it is only known to be there."""
    value = operand.value
    if isinstance(value, AttributeColumn):
        column = _cast_column(value, type_name)
        return derived([operand]) if column is None else _column(column)
    if isinstance(value, Constant):
        return _cast_constant(value.value, type_name)
    return derived([operand])


def _cast_column(column: AttributeColumn, type_name: str) -> AttributeColumn | None:
    if column.type == type_name:
        return column
    size = INTEGER_BYTES.get(column.type)
    if size is None:
        return None
    exact = INTEGER_BYTES.get(type_name, 0) >= size or _scale(type_name) is not None
    if exact or type_name == "double":
        return AttributeColumn(column.name, type_name, not exact and size > 4)
    return None


def _scale(type_name: str) -> int | None:
    """The digits behind the point of a decimal type; None for other types, and for those that round whole numbers."""
    if not type_name.startswith("decimal("):
        return None
    scale = int(type_name.removesuffix(")").split(",")[1])
    return scale if scale >= 0 else None


def _cast_constant(value: Any, type_name: str) -> Meaning:
    if value is None:
        return constant(None)
    if isinstance(value, bool | str):
        same = "boolean" if isinstance(value, bool) else "string"
        return constant(value) if type_name == same else UNKNOWN
    if type_name == "double":
        return constant(float(value))
    if isinstance(value, float):
        return UNKNOWN
    if type_name in INTEGER_BYTES:
        bits = 8 * INTEGER_BYTES[type_name]
        fits = isinstance(value, int) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        return constant(value) if fits else UNKNOWN
    scale = _scale(type_name)
    # Fewer digits behind the point would round it.
    exact = scale is not None and -int(Decimal(value).as_tuple().exponent) <= scale
    return constant(value) if exact else UNKNOWN


def first_of(operands: Sequence[Meaning]) -> Meaning:
    """COALESCE: of fields of one attribute, it is that attribute's value, of whichever kind it is."""
    columns = [operand.value for operand in operands if isinstance(operand.value, AttributeColumn)]
    if len(columns) < len(operands) or len({(column.name, column.type) for column in columns}) != 1:
        return UNKNOWN
    return _column(msgspec.structs.replace(columns[0], rounded=any(column.rounded for column in columns)))


# ---- conditions


def compared(operator: str, left: Meaning, right: Meaning) -> Meaning:
    if isinstance(left.value, Constant) and not isinstance(right.value, Constant):
        left, right, operator = right, left, FLIPPED[operator]
    if isinstance(right.value, Constant):
        against = right.value.value
        if against is None:
            return Meaning((), NEVER, NEVER)
        if isinstance(against, bool) and operator in ("=", "<>"):
            is_same = against is (operator == "=")
            return left if is_same else negated(left)
    return condition((left, right), _comparison(operator, left, right), _comparison(NEGATED[operator], left, right))


def _comparison(operator: str, left: Meaning, right: Meaning) -> Node | None:
    """The comparison in the filter language, or None if it is not the same there."""
    column, other = left.value, right.value
    if not isinstance(column, AttributeColumn):
        return None
    if isinstance(other, AttributeColumn):
        is_ordered = column.kind != "boolean" or operator in ("=", "<>")
        if column.kind != other.kind or column.rounded or other.rounded or not is_ordered:
            return None
        return Comparison(operator, Attribute(column.name), Attribute(other.name))
    if not isinstance(other, Constant):
        return None
    literal = _literal(column, other.value)
    return None if literal is None else Comparison(operator, Attribute(column.name), literal)


def _literal(column: AttributeColumn, value: Any) -> Literal | None:
    """A constant of a comparison with the column. None if filters can't say it, or if the column was rounded there."""
    if column.kind == "string":
        return Literal(value) if isinstance(value, str) else None
    if column.kind != "number" or isinstance(value, bool | str) or not math.isfinite(value):
        return None
    if column.rounded and not -EXACT_IN_DOUBLE < value < EXACT_IN_DOUBLE:
        return None
    if isinstance(value, Decimal):
        value = int(value) if value == int(value) else _exact_double(value)
    if value is None or (isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX):
        return None
    return Literal(value)


def _exact_double(value: Decimal) -> float | None:
    nearest = float(value)
    return nearest if Decimal(nearest) == value else None


def same_or_both_null(left: Meaning, right: Meaning) -> Meaning:
    """`<=>`, which is never NULL: it tells something only if it is TRUE and one side is a constant."""
    for operand, other in ((left, right), (right, left)):
        if isinstance(other.value, Constant):
            if other.value.value is None:
                return is_null(operand)
            return Meaning((), compared("=", operand, other).when_true, None)
    return UNKNOWN


def is_null(operand: Meaning) -> Meaning:
    return Meaning((), None, presence(operand.present))


def one_of(operand: Meaning, items: Sequence[Meaning]) -> Meaning:
    """IN. Against an empty list it is FALSE even for NULL."""
    if not items:
        return Meaning((), NEVER, None)
    comparisons = [compared("=", operand, item) for item in items]
    plain = [_comparison("=", operand, item) for item in items if item.value != Constant(None)]
    if None not in plain and isinstance(listed := any_of(plain), In):
        return Meaning(operand.present, listed, Not(listed))
    return Meaning(
        operand.present,
        any_of(each.when_true for each in comparisons),
        all_of(each.when_false for each in comparisons),
    )


def like(operand: Meaning, pattern: Meaning, escape: str | None) -> Meaning:
    text = pattern.value.value if isinstance(pattern.value, Constant) else None
    if not isinstance(text, str) or escape is None:
        return derived([operand, pattern])
    try:
        parsed = parse_like(text, escape, DEFAULT_LIMITS.like_percents, DEFAULT_LIMITS.like_underscores)
    except PatternError:
        return derived([operand])
    return _matching(operand, parsed)


def starting_with(operand: Meaning, prefix: Meaning) -> Meaning:
    return _containing(operand, prefix, lambda text: (text, ""))


def ending_with(operand: Meaning, suffix: Meaning) -> Meaning:
    return _containing(operand, suffix, lambda text: ("", text))


def containing(operand: Meaning, part: Meaning) -> Meaning:
    return _containing(operand, part, lambda text: ("", text, "") if text else ("", ""))


def _containing(operand: Meaning, part: Meaning, segments: Callable[[str], tuple[str, ...]]) -> Meaning:
    text = part.value.value if isinstance(part.value, Constant) else None
    if not isinstance(text, str):
        return derived([operand, part])
    return _matching(operand, LikePattern(tuple(map(Segment, segments(text)))))


def _matching(operand: Meaning, pattern: LikePattern) -> Meaning:
    column = operand.value
    if not isinstance(column, AttributeColumn) or column.type != "string":
        return derived([operand])
    node = Like(Attribute(column.name), pattern)
    return condition([operand], node, Not(node))


def negated(operand: Meaning) -> Meaning:
    return Meaning(operand.present, operand.when_false, operand.when_true)


def both(left: Meaning, right: Meaning) -> Meaning:
    return Meaning((), all_of((left.when_true, right.when_true)), any_of((left.when_false, right.when_false)))


def either(left: Meaning, right: Meaning) -> Meaning:
    return negated(both(negated(left), negated(right)))
