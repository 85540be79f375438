"""Why a filter matched an event, or which predicate stood in the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.model.filter import Filter
from holdfast.model.rendering import literal_text, render
from holdfast.model.syntax import And, Node, Not, Or, names_read
from holdfast.model.values import Value, read, with_topic


class Reason(msgspec.Struct, frozen=True):
    """One predicate, what it came to (None is UNKNOWN), and the values that it saw (None is missing)."""

    predicate: str
    outcome: bool | None
    seen: dict[str, Value | None]

    def __str__(self) -> str:
        values = ", ".join(
            f"{name} is missing" if value is None else f"{name} = {literal_text(value)}"
            for name, value in self.seen.items()
        )
        word = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}[self.outcome]
        return f"{self.predicate} is {word}" + (f" ({values})" if values else "")


class Explanation(msgspec.Struct, frozen=True):
    """If it matched: the predicates that made it so. If not: the first predicate that failed."""

    matched: bool
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        reasons = "; ".join(map(str, self.reasons))
        return f"{'matched' if self.matched else 'did not match'}: {reasons}"


def explain(filter: Filter, attributes: Mapping[str, Any], topic: str = "") -> Explanation:
    """Evaluates the filter again and keeps what decided."""
    event = with_topic(attributes, topic)
    matched = filter.root.evaluate(event) is True
    return Explanation(matched, tuple(_reasons(filter.root, event, matched)))


def _reasons(node: Node, event: Mapping[str, Any], wanted: bool) -> list[Reason]:
    """What made `node` TRUE (wanted), or the first thing that kept it from being so."""
    match node:
        case And(operands=operands) if wanted:
            return [reason for operand in operands for reason in _reasons(operand, event, True)]
        case And(operands=operands):
            failed = next(operand for operand in operands if operand.evaluate(event) is not True)
            return _reasons(failed, event, False)
        case Or(operands=operands) if wanted:
            return _reasons(next(operand for operand in operands if operand.evaluate(event) is True), event, True)
        case Or(operands=operands):
            return _reasons(operands[0], event, False)
        case Not(operand=And(operands=operands)):  # NOT (a AND b) is NOT a OR NOT b
            return _reasons(Or(tuple(map(Not, operands))), event, wanted)
        case Not(operand=Or(operands=operands)):
            return _reasons(And(tuple(map(Not, operands))), event, wanted)
        case Not(operand=Not(operand=operand)):
            return _reasons(operand, event, wanted)
        case _:
            outcome = node.evaluate(event)
            seen = {name: read(event, name) for name in names_read(node)}
            return [Reason(render(node), outcome if isinstance(outcome, bool) else None, seen)]
