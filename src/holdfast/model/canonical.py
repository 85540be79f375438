"""The canonical form: a filter as sets of values, joined by Every and Some.

Negation is pushed down to the comparisons and stops there. In the result only TRUE matters (Every is TRUE where
every part is, Some where some part is), so three-valued logic is gone: each comparison of one attribute with
constants becomes the set of values that make it TRUE. `NOT x < 5` is the set of everything present but the
numbers below 5, strings included; flipping it to `x >= 5` would lose them.

Sets of one attribute merge: Every intersects them (an empty set is a contradiction), Some unites them. What is not
a set of one attribute stays as it is, with its polarity: a LIKE with inner wildcards (`Pattern`) and what
compares expressions (`Opaque`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from holdfast.model import domain as d
from holdfast.model.domain import Domain
from holdfast.model.like import LikePattern
from holdfast.model.rendering import render
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
    names_read,
)
from holdfast.model.values import TOPIC

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Membership(msgspec.Struct, frozen=True, gc=False):
    """The attribute's value lies in the domain (which is neither empty nor everything)."""

    name: str
    domain: Domain


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """The attribute is LIKE the pattern; negated: it is present and not LIKE it."""

    name: str
    pattern: LikePattern
    negated: bool


class Opaque(msgspec.Struct, frozen=True, gc=False):
    """A comparison of expressions: TRUE, or FALSE if negated. Its text is its identity."""

    node: Node
    negated: bool
    text: str


class Every(msgspec.Struct, frozen=True, gc=False):
    """Every part holds; no part means always."""

    parts: tuple[Canonical, ...]


class Some(msgspec.Struct, frozen=True, gc=False):
    """Some part holds; no part means never."""

    parts: tuple[Canonical, ...]


Canonical: TypeAlias = Membership | Pattern | Opaque | Every | Some

ALWAYS = Every(())
NEVER = Some(())


def canonical_of(node: Node, negated: bool = False) -> Canonical:
    """The canonical form of a condition, or of its negation."""
    match node:
        case And(operands=operands):
            parts = [canonical_of(operand, negated) for operand in operands]
            return any_of(parts) if negated else all_of(parts)
        case Or(operands=operands):
            parts = [canonical_of(operand, negated) for operand in operands]
            return all_of(parts) if negated else any_of(parts)
        case Not(operand=operand):
            return canonical_of(operand, not negated)
        case Comparison(operator=operator, left=Attribute(name=name), right=Literal(value=value)):
            return _member(name, d.compared_with(operator, value), negated)
        case Comparison(operator=operator, left=Literal(value=value), right=Attribute(name=name)):
            return _member(name, d.compared_with(FLIPPED[operator], value), negated)
        case Between(operand=Attribute(name=name), low=Literal(value=low_value), high=Literal(value=high_value)):
            return _member(name, d.between(low_value, high_value), negated)
        case Between(operand=operand, low=low, high=high):
            bounds = And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
            return canonical_of(bounds, negated)
        case In(operand=Attribute(name=name), values=values):
            return _member(name, d.one_of(values), negated)
        case Like(operand=Attribute(name=name), pattern=pattern):
            return _like(name, pattern, negated)
        case IsNull(name=name):
            return _within(name, d.PRESENT if negated else d.MISSING)
        case Attribute(name=name):
            return _within(name, d.FALSE_ONLY if negated else d.TRUE_ONLY)
        case Literal() | Sign() | Arithmetic():
            return _constant(node.evaluate({}) if isinstance(node, Literal) else None, negated)
        case _:
            if not names_read(node):
                return _constant(node.evaluate({}), negated)
            return _opaque(node, negated)


def _constant(value: object, negated: bool) -> Canonical:
    return ALWAYS if value is (not negated) else NEVER


def _member(name: str, true_for: Domain, negated: bool) -> Canonical:
    return _within(name, true_for.complement() if negated else true_for)


def _within(name: str, domain: Domain) -> Canonical:
    if name == TOPIC:
        domain = domain.meet(d.ANY_TOPIC)
    return NEVER if domain.is_empty else Membership(name, domain)


def _like(name: str, pattern: LikePattern, negated: bool) -> Canonical:
    if pattern.is_exact:
        return _member(name, d.compared_with("=", pattern.prefix), negated)
    if pattern.is_prefix:
        return _member(name, d.starting_with(pattern.prefix), negated)
    if negated:
        return all_of([_within(name, d.PRESENT), Pattern(name, pattern, True)])
    # The prefix is implied, and is what an index and `covers` can work with.
    return all_of([_within(name, d.starting_with(pattern.prefix)), Pattern(name, pattern, False)])


def _opaque(node: Node, negated: bool) -> Canonical:
    if isinstance(node, Comparison):
        flipped = Comparison(FLIPPED[node.operator], node.right, node.left)
        # `a < b` and `b > a` are one comparison: the side whose text comes first stands left.
        node = min(node, flipped, key=render)
    return Opaque(node, negated, render(node))


# ---- joining parts


def all_of(parts: list[Canonical]) -> Canonical:
    """The conjunction: domains of one attribute intersected, contradictions recognised."""
    found = _gathered(parts, Every, NEVER)
    if found is None:
        return NEVER
    domains = {name: _joined(same, Domain.meet) for name, same in found.domains.items()}
    others = found.others
    for part in others.values():
        if isinstance(part, Pattern | Opaque) and canonical_key(_opposite(part)) in others:
            return NEVER
    kept = [part for part in others.values() if not (isinstance(part, Pattern) and _decide(part, domains))]
    if any(domain.is_empty for domain in domains.values()):
        return NEVER
    members = [Membership(name, domain) for name, domain in domains.items() if domain != d.universe(name)]
    joined = (*members, *kept)
    return joined[0] if len(joined) == 1 else Every(joined)


class _Gathered(NamedTuple):
    """The parts of a conjunction or disjunction: sets of values by attribute, and the others, each once."""

    domains: dict[str, list[Domain]]
    others: dict[Any, Canonical]


def _gathered(parts: list[Canonical], same: type[Every] | type[Some], decisive: Canonical) -> _Gathered | None:
    """The parts, those of inner forms of the same type included; None if one of them decides alone."""
    found = _Gathered({}, {})
    pending = parts[::-1]
    while pending:
        part = pending.pop()
        if isinstance(part, Membership):
            found.domains.setdefault(part.name, []).append(part.domain)
        elif isinstance(part, same):
            pending.extend(reversed(part.parts))
        elif part == decisive:
            return None
        else:
            found.others.setdefault(canonical_key(part), part)
    return found


def _joined(domains: list[Domain], join: Callable[[Domain, Domain], Domain]) -> Domain:
    """All domains as one, joined in pairs, then pairs of pairs: one by one, 256 times `x <> …` would be quadratic."""
    while len(domains) > 1:
        pairs = [join(a, b) for a, b in zip(domains[::2], domains[1::2], strict=False)]
        domains = pairs + domains[len(pairs) * 2 :]
    return domains[0]


def _opposite(part: Pattern | Opaque) -> Canonical:
    return msgspec.structs.replace(part, negated=not part.negated)


def _decide(part: Pattern, domains: dict[str, Domain]) -> bool:
    """Applies a pattern to a finite set of strings, which makes the pattern itself superfluous."""
    domain = domains.get(part.name, d.ANYTHING)
    points = d.string_points(domain.strings)
    if points is None:
        return False
    kept = tuple(point for point in points if part.pattern.matches(point) is not part.negated)
    domains[part.name] = msgspec.structs.replace(domain, strings=d.one_of(kept).strings)
    return True


def any_of(parts: list[Canonical]) -> Canonical:
    """The disjunction: domains of one attribute united, what always holds recognised."""
    found = _gathered(parts, Some, ALWAYS)
    if found is None:
        return ALWAYS
    domains = {name: _joined(same, Domain.join) for name, same in found.domains.items()}
    if any(domain == d.universe(name) for name, domain in domains.items()):
        return ALWAYS
    joined = (*(Membership(name, domain) for name, domain in domains.items()), *found.others.values())
    return joined[0] if len(joined) == 1 else Some(joined)


def canonical_key(part: Canonical) -> Any:
    """A hashable value that is equal for equal forms: the order of parts does not count, 5 equals 5.0."""
    match part:
        case Membership(name=name, domain=domain):
            return (name, domain.key())
        case Pattern(name=name, pattern=pattern, negated=negated):
            return ("like", name, tuple((s.text, s.holes) for s in pattern.segments), negated)
        case Opaque(text=text, negated=negated):
            return ("opaque", text, negated)
        case Every(parts=parts):
            return ("all", frozenset(map(canonical_key, parts)))
        case Some(parts=parts):
            return ("any", frozenset(map(canonical_key, parts)))
