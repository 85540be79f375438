"""PADRES' notation for filters and events, in which the field's data sets are written.

    filter   [class,eq,'STOCK'],[price,>,100]      a conjunction of (attribute, operator, value), D0-A5
    event    [class,'STOCK'],[price,101.5]         (attribute, value) pairs, D0-A7

A filter is translated to the text of our own language and goes the way of every other filter. Composite
subscriptions and variables correlate several events; no filter over one event can say that, so they are refused.
"""

from __future__ import annotations

from holdfast.errors import EventError, FilterError
from holdfast.model.arithmetic import in_range, is_number
from holdfast.model.like import LikePattern, Segment
from holdfast.model.rendering import like_text, literal_text, name_text
from holdfast.model.values import Value, check_attributes, check_value

COMPARISONS = {
    "=": "=",
    "eq": "=",
    "<>": "<>",
    "!=": "<>",
    "neq": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "str-lt": "<",
    "str-le": "<=",
    "str-gt": ">",
    "str-ge": ">=",
}
IS_PRESENT = "isPresent"
PATTERNS = {
    "str-prefix": lambda text: LikePattern((Segment(text), Segment(""))),
    "str-postfix": lambda text: LikePattern((Segment(""), Segment(text))),
    "str-contains": lambda text: LikePattern((Segment(""), Segment(text), Segment(""))),
}
OPERATORS = (*COMPARISONS, *PATTERNS, IS_PRESENT)


def filter_text(text: str) -> str:
    """A filter of PADRES in our language."""
    return " AND ".join(_predicate_text(fields, text) for fields in _tuples(text, 3))


def attributes_from_padres(text: str) -> dict[str, Value]:
    """The attributes of an event in PADRES' notation: `[class,'STOCK'],[price,101.5]`."""
    if not isinstance(text, str):
        raise TypeError(f"an event of PADRES is written as a str, not {type(text).__name__}")
    attributes: dict[str, Value] = {}
    try:
        for (name, at), field in _tuples(text, 2):
            if name in attributes:
                raise EventError(f"attribute {name!r} is given twice, again at column {at + 1}", name)
            attributes[name] = check_value(name, _value(field, text))
        check_attributes(attributes)
    except FilterError as problem:
        raise EventError(f"this is no event in PADRES' notation: {problem}") from None
    return attributes


def _predicate_text(fields: list[tuple[str, int]], text: str) -> str:
    (name, _), (operator, at), value_field = fields
    attribute = name_text(name)
    if operator == IS_PRESENT:
        return f"{attribute} IS NOT NULL"
    value = _value(value_field, text)
    if is_number(value) and in_range(value) is None:
        raise FilterError("a number is beyond 64 bits or a double", text, value_field[1], "a smaller magnitude")
    if operator in COMPARISONS:
        return f"{attribute} {COMPARISONS[operator]} {literal_text(value)}"
    if operator in PATTERNS:
        if not isinstance(value, str):
            raise FilterError(f"{operator} compares strings", text, value_field[1], "a value in quotes")
        return f"{attribute} LIKE {like_text(PATTERNS[operator](value))}"
    raise FilterError(f"unknown operator {operator!r}", text, at, " ".join(OPERATORS))


def _value(field: tuple[str, int], text: str) -> Value:
    raw, at = field
    if raw.startswith("'"):
        return raw[1:-1]
    if raw.startswith("$"):
        raise FilterError("variables of composite subscriptions are not part of a filter", text, at, "a constant")
    # Python reads 1_000, ١٢ and -inf as numbers too; PADRES does not.
    if raw.isascii() and "_" not in raw and raw.lstrip("+-.")[:1].isdigit():
        for convert in (int, float):
            try:
                return convert(raw)
            except ValueError:
                continue
    return raw  # PADRES takes a bare word as a string


def _tuples(text: str, size: int) -> list[list[tuple[str, int]]]:
    """The bracketed tuples of the text, each as `size` fields with their offsets."""
    tuples: list[list[tuple[str, int]]] = []
    at = _skip_spaces(text, 0)
    while at < len(text):
        if tuples:
            at = _skip_spaces(text, _expect(text, at, ","))
        at = _expect(text, at, "[")
        fields: list[tuple[str, int]] = []
        while True:
            field, at = _field(text, _skip_spaces(text, at))
            fields.append(field)
            at = _skip_spaces(text, at)
            if text[at : at + 1] == "]":
                break
            at = _expect(text, at, ",", "',' or ']'")
        if len(fields) != size:
            raise FilterError(f"a tuple of {len(fields)} fields", text, fields[0][1], f"{size} fields")
        if fields[0][0].startswith("'"):
            raise FilterError("the name of an attribute is in quotes", text, fields[0][1], "the bare name")
        tuples.append(fields)
        at = _skip_spaces(text, at + 1)
    return tuples


def _field(text: str, at: int) -> tuple[tuple[str, int], int]:
    if text[at : at + 1] == "'":
        end = text.find("'", at + 1)
        if end < 0:
            raise FilterError("a string is not closed", text, at, "a closing '")
        return (text[at : end + 1], at), end + 1
    end = at
    while end < len(text) and text[end] not in ",]['":
        end += 1
    field = text[at:end].strip()
    if not field:
        raise FilterError("a field is empty", text, at, "a name, an operator or a value")
    return (field, at), end


def _expect(text: str, at: int, symbol: str, expected: str = "") -> int:
    if text[at : at + 1] != symbol:
        found = f"unexpected {text[at]!r}" if at < len(text) else "the text ends too early"
        raise FilterError(found, text, at, expected or f"'{symbol}'")
    return at + 1


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
