"""A condition on Spark's columns as the text of a filter that every event matches whose row meets the condition.

The filter may match more events than the condition, never fewer. It is read off the plan that Spark's analyser makes
of the condition, names resolved and casts inserted. Whatever is not known here makes the filter weaker: a side of AND
is left out alone, a side of OR with all the others.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from holdfast.errors import FilterError
from holdfast.model import Filter
from holdfast.model.limits import DEFAULT_LIMITS
from holdfast.model.rendering import render
from holdfast.model.syntax import And, Between, In, IsNull, Literal, Node, Not, Or
from holdfast.model.values import TOPIC
from holdfast.spark import implications as i
from holdfast.spark.implications import UNKNOWN, Meaning
from holdfast.spark.schema import ATTRIBUTES, ENVELOPE, REJECTED

Json: TypeAlias = Mapping[str, Any]

# Above this a condition is not worth its translation: a filter's text holds far less.
EXPRESSIONS_MAX: Final = 20_000
_TYPES: Final = frozenset({"long", "integer", "short", "byte", "double", "string", "boolean"})
_NOT_ATTRIBUTES: Final = frozenset({*ENVELOPE, ATTRIBUTES, REJECTED}) - {TOPIC}


def implied_filter(frame: DataFrame, condition: Column) -> str:
    """The text of a filter that `condition` implies, for a frame that has the source's columns; empty if there is none.

    With Spark Connect, where the plan is out of reach, there is never one.
    """
    plan = _analysed(frame, condition)
    if plan is None:
        return ""
    nodes: list[Json] = json.loads(plan.toJSON())
    # A plan of another shape (a window or a subquery pulled out of the condition) has other columns than the source.
    if [_class(node) for node in nodes[:1]] != ["Filter"] or len(nodes) != 2 or "output" not in nodes[1]:
        return ""
    expressions: list[Json] = nodes[0]["condition"]
    if len(expressions) > EXPRESSIONS_MAX:
        return ""
    columns = _columns(frame.schema, [output[0] for output in nodes[1]["output"]])
    meaning = _Reader(columns, lambda path: _escape(plan.condition(), path)).read(expressions)
    return "" if meaning.when_true is None else _within_limits(meaning.when_true)


def _analysed(frame: DataFrame, condition: Column) -> Any:
    return None if getattr(frame, "_jdf", None) is None else frame.filter(condition)._jdf.queryExecution().analyzed()


def _class(node: Json) -> str:
    return str(node["class"]).rpartition(".")[2]


def _columns(schema: StructType, output: Sequence[Json]) -> dict[Any, Meaning]:
    """The frame's columns by the ids that Spark gives them: in conditions, their names are as the user spelt them."""
    return {
        _id(reference): _column(field.name, reference["dataType"])
        for field, reference in zip(schema.fields, output, strict=True)
    }


def _id(reference: Json) -> tuple[Any, Any]:
    return reference["exprId"]["id"], reference["exprId"]["jvmId"]


def _column(name: str, type_name: Any) -> Meaning:
    if name == ATTRIBUTES:
        return Meaning(value=i.AttributeMap())
    # A string with a collation has another name of its type: it compares in another way than filters do.
    if name in _NOT_ATTRIBUTES or not isinstance(type_name, str) or type_name not in _TYPES:
        return UNKNOWN
    return i.attribute(name, type_name)


def _escape(root: Any, path: Sequence[int]) -> str:
    """The character that a LIKE escapes with: the one thing that a plan's JSON leaves out."""
    for place in path:
        root = root.children().apply(place)
    return str(root.escapeChar())


class _Reader:
    """Reads an expression from its JSON: the nodes in one list, every node before its children.

    From the end to the beginning, so that children are known when their parent comes, without any recursion.
    """

    def __init__(self, columns: Mapping[Any, Meaning], escape_at: Callable[[Sequence[int]], str]) -> None:
        self._columns = columns
        self._escape_at = escape_at
        self._common: list[Meaning] = []

    def read(self, nodes: Sequence[Json]) -> Meaning:
        paths = dict(_likes(nodes))
        done: list[Meaning] = []
        for place in range(len(nodes) - 1, -1, -1):
            count = nodes[place]["num-children"]
            operands = [done.pop() for _ in range(count)]
            done.append(self._meaning(nodes[place], operands, paths.get(place)))
        return done.pop()

    def _meaning(self, node: Json, operands: list[Meaning], path: Sequence[int] | None) -> Meaning:
        kind = _class(node)
        match kind, operands:
            case "AttributeReference", []:
                return self._columns.get(_id(node), UNKNOWN)
            case "Literal", []:
                return _literal(node)
            case "Cast", [operand]:
                return i.cast(operand, str(node["dataType"]))
            case "In", [operand, *items]:
                return i.one_of(operand, items)
            case "Coalesce", [_, *_]:
                return i.first_of(operands)
            case "Like", [operand, pattern] if path is not None:
                return i.like(operand, pattern, self._escape_at(path))
            case "GetStructField", [operand]:
                return i.entry_field(operand, int(node["ordinal"]))
            case "CommonExpressionDef" | "CommonExpressionRef" | "With", _:
                return self._shared(kind, operands)
            case _, [operand] if kind == "Alias" or "replacement" in node:
                return operand
            case _ if kind in _RULES and len(operands) == _RULES[kind][0]:
                return _RULES[kind][1](*operands)
            case _ if kind in _NULL_IF_AN_OPERAND_IS:
                return i.derived(operands)
        return UNKNOWN

    def _shared(self, kind: str, operands: list[Meaning]) -> Meaning:
        """BETWEEN has its operand defined beside it and referred to, by an id that is not in the JSON.

        Read from the end, a definition comes before what refers to it. While there is one alone, it is the one meant.
        """
        if kind == "CommonExpressionDef":
            self._common.append(operands[0])
            return UNKNOWN
        if kind == "CommonExpressionRef":
            return self._common[0] if len(self._common) == 1 else UNKNOWN
        del self._common[len(self._common) - (len(operands) - 1) :]
        return operands[0]


def _likes(nodes: Sequence[Json]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Where the LIKEs are: in the list, and as the numbers of the children on the way to them from the root."""
    open_nodes: list[list[int]] = []  # children still to come, and children seen
    for place, node in enumerate(nodes):
        while open_nodes and open_nodes[-1][0] == 0:
            open_nodes.pop()
        if open_nodes:
            open_nodes[-1][0] -= 1
            open_nodes[-1][1] += 1
        if _class(node) == "Like":
            yield place, tuple(seen - 1 for _, seen in open_nodes)
        open_nodes.append([node["num-children"], 0])


def _map_value(attributes: Meaning, key: Meaning) -> Meaning:
    if isinstance(attributes.value, i.AttributeMap) and isinstance(key.value, i.Constant):
        name = key.value.value
        if isinstance(name, str):
            return i.entry(name)
    return UNKNOWN


def _map_has(attributes: Meaning, key: Meaning) -> Meaning:
    return Meaning((), i.presence(_map_value(attributes, key).present), None)


# How many operands an expression has, and what is made of them.
_RULES: Final[dict[str, tuple[int, Callable[..., Meaning]]]] = {
    "And": (2, i.both),
    "Or": (2, i.either),
    "Not": (1, i.negated),
    "EqualTo": (2, lambda left, right: i.compared("=", left, right)),
    "LessThan": (2, lambda left, right: i.compared("<", left, right)),
    "LessThanOrEqual": (2, lambda left, right: i.compared("<=", left, right)),
    "GreaterThan": (2, lambda left, right: i.compared(">", left, right)),
    "GreaterThanOrEqual": (2, lambda left, right: i.compared(">=", left, right)),
    "EqualNullSafe": (2, i.same_or_both_null),
    "IsNull": (1, i.is_null),
    "IsNotNull": (1, lambda operand: i.negated(i.is_null(operand))),
    "StartsWith": (2, i.starting_with),
    "EndsWith": (2, i.ending_with),
    "Contains": (2, i.containing),
    "GetMapValue": (2, _map_value),
    "ElementAt": (2, _map_value),
    "MapContainsKey": (2, _map_has),
}
_NULL_IF_AN_OPERAND_IS: Final = frozenset(
    {"Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "UnaryMinus", "Abs"}
    | {"Length", "Upper", "Lower", "Substring", "RLike", "ILike"}
)


def _literal(node: Json) -> Meaning:
    text, type_name = node["value"], node["dataType"]
    if text is None:
        return i.constant(None)
    if type_name in i.INTEGER_BYTES:
        return i.constant(int(text))
    if type_name == "double":
        return i.constant(float(text))
    if type_name == "float":
        return i.constant(struct.unpack("<f", struct.pack("<f", float(text)))[0])
    if type_name == "string":
        return i.constant(str(text))
    if type_name == "boolean":
        return i.constant(text == "true")
    if str(type_name).startswith("decimal("):
        return i.constant(Decimal(text))
    return UNKNOWN


# ---- limits


def _within_limits(node: Node) -> str:
    """The text, or that of the parts of it that filters have room for."""
    for form in (node, _loosened(node)):
        if (text := _text(form)) is not None:
            return text
    kept: Node | None = None
    for part in node.operands if isinstance(node, And) else ():
        for form in (part, _loosened(part)):
            joined = i.all_of((kept, form))
            if joined is not None and _text(joined) is not None:
                kept = joined
                break
    return "" if kept is None else _text(kept) or ""


def _text(node: Node) -> str | None:
    text = render(node)
    if len(text) > DEFAULT_LIMITS.text_bytes:
        return None
    try:
        return str(Filter(text))
    except FilterError:
        return None


def _loosened(node: Node) -> Node:
    """Lists as ranges: longer, but with few words."""
    match node:
        case And(operands=operands):
            return And(tuple(map(_loosened, operands)))
        case Or(operands=operands):
            return Or(tuple(map(_loosened, operands)))
        case Not(operand=In(operand=column)):
            return Not(IsNull(column.name))  # type: ignore[attr-defined]
        case In(operand=column, values=values) if len({isinstance(value, str) for value in values}) == 1:
            return Between(column, Literal(min(values)), Literal(max(values)))
        case _:
            return node
