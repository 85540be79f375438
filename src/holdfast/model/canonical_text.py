"""The canonical form written as a filter again, for people, logs and tests.

A set of values has many spellings; the shortest of the usual ones is taken: `=`, IN, BETWEEN, `<>`, LIKE, and
`NOT …` where the set reaches into all three kinds of values.
"""

from __future__ import annotations

from holdfast.model import domain as d
from holdfast.model.canonical import Canonical, Every, Membership, Opaque, Pattern, Some
from holdfast.model.domain import Cut, Domain
from holdfast.model.like import LikePattern, Segment
from holdfast.model.rendering import render
from holdfast.model.syntax import And, Attribute, Between, Comparison, In, IsNull, Like, Literal, Node, Not, Or
from holdfast.model.values import INTEGER_MAX, INTEGER_MIN


def canonical_node(form: Canonical) -> Node:
    """A syntax tree whose canonical form is `form`; parts in the order of their texts."""
    match form:
        case Membership(name=name, domain=domain):
            return _domain_node(name, domain)
        case Pattern(name=name, pattern=pattern, negated=negated):
            like = Like(Attribute(name), pattern)
            return Not(like) if negated else like
        case Opaque(node=node, negated=negated):
            return Not(node) if negated else node
        case Every(parts=()):
            return Literal(True)
        case Some(parts=()):
            return Literal(False)
        case Every(parts=parts):
            implied = {part.name for part in parts if isinstance(part, Pattern)}
            nodes = [canonical_node(part) for part in parts if not _is_implied(part, implied, parts)]
            return nodes[0] if len(nodes) == 1 else And(tuple(sorted(nodes, key=render)))
        case Some(parts=parts):
            return Or(tuple(sorted(map(canonical_node, parts), key=render)))


def _is_implied(part: Canonical, implied: set[str], parts: tuple[Canonical, ...]) -> bool:
    """Whether a set says no more than a pattern beside it does."""
    if not isinstance(part, Membership) or part.name not in implied:
        return False
    patterns = [p for p in parts if isinstance(p, Pattern) and p.name == part.name]
    implied_domain = d.PRESENT.meet(d.universe(part.name))
    for pattern in patterns:
        if not pattern.negated:
            implied_domain = implied_domain.meet(d.starting_with(pattern.pattern.prefix))
    return part.domain == implied_domain


def _domain_node(name: str, domain: Domain) -> Node:
    if domain == d.PRESENT:
        return Not(IsNull(name))
    pieces: list[Node] = []
    if domain.missing:
        pieces.append(IsNull(name))
    if domain.numbers and domain.strings and domain.booleans:
        outside = domain.complement()
        pieces.append(Not(IsNull(name)) if outside.is_empty else Not(_joined(_kinds(name, outside))))
    else:
        pieces += _kinds(name, domain)
    return _joined(pieces)


def _joined(pieces: list[Node]) -> Node:
    return pieces[0] if len(pieces) == 1 else Or(tuple(pieces))


def _kinds(name: str, domain: Domain) -> list[Node]:
    pieces: list[Node] = []
    if domain.numbers:
        pieces += _number_nodes(name, domain.numbers)
    if domain.strings:
        pieces += _string_nodes(name, domain.strings)
    if domain.booleans & d.TRUE_BIT:
        pieces.append(Comparison("=", Attribute(name), Literal(True)))
    if domain.booleans & d.FALSE_BIT:
        pieces.append(Comparison("=", Attribute(name), Literal(False)))
    return pieces


def _number_nodes(name: str, numbers: d.Intervals) -> list[Node]:
    attribute = Attribute(name)
    if numbers == d.ALL_NUMBERS:
        return [Comparison("<=", attribute, Literal(0)), Comparison(">=", attribute, Literal(0))]
    if (hole := _hole(numbers, d.NUMBER_BOTTOM, d.NUMBER_TOP)) and hole[0][0] == hole[1][0]:
        return [Comparison("<>", attribute, Literal(_plain(hole[0][0])))]
    points = d.number_points(numbers)
    if points and len(points) > 1:
        return [In(attribute, tuple(map(_plain, points)))]
    return [_number_interval(attribute, low, high) for low, high in numbers]


def _hole(intervals: d.Intervals, bottom: Cut, top: Cut) -> tuple[Cut, Cut] | None:
    """The one gap in an otherwise full line."""
    outside = d.gaps(intervals, bottom, top)
    return outside[0] if len(outside) == 1 and outside[0][0] != bottom and outside[0][1] != top else None


def _number_interval(attribute: Attribute, low: Cut, high: Cut) -> Node:
    if low[0] == high[0]:
        return Comparison("=", attribute, Literal(_plain(low[0])))
    if low[1] == 0 and high[1] == 1 and low != d.NUMBER_BOTTOM and high != d.NUMBER_TOP:
        return Between(attribute, Literal(_plain(low[0])), Literal(_plain(high[0])))
    bounds: list[Node] = []
    if low != d.NUMBER_BOTTOM:
        bounds.append(Comparison(">" if low[1] else ">=", attribute, Literal(_plain(low[0]))))
    if high != d.NUMBER_TOP:
        bounds.append(Comparison("<=" if high[1] else "<", attribute, Literal(_plain(high[0]))))
    return bounds[0] if len(bounds) == 1 else And(tuple(bounds))


def _plain(number: int | float) -> int | float:
    """5.0 as 5: the shorter spelling of the same number."""
    is_whole = isinstance(number, float) and number.is_integer() and INTEGER_MIN <= number <= INTEGER_MAX
    return int(number) if is_whole else number


def _string_nodes(name: str, strings: d.Intervals) -> list[Node]:
    attribute = Attribute(name)
    if strings == d.ALL_STRINGS:
        return [Comparison(">=", attribute, Literal(""))]
    hole = _hole(strings, d.STRING_BOTTOM, d.STRING_TOP)
    if hole and hole[1] == (0, hole[0][1] + "\0"):
        return [Comparison("<>", attribute, Literal(hole[0][1]))]
    points = d.string_points(strings)
    if points and len(points) > 1:
        return [In(attribute, tuple(points))]
    return [_string_interval(attribute, low, high) for low, high in strings]


def _string_interval(attribute: Attribute, low: Cut, high: Cut) -> Node:
    start = low[1]
    if high == (0, start + "\0"):
        return Comparison("=", attribute, Literal(start))
    if start and high == d.prefix_end(start):
        return Like(attribute, LikePattern((Segment(start), Segment(""))))
    bounds: list[Node] = []
    if low != d.STRING_BOTTOM:
        bounds.append(_not_below(attribute, start))
    if high != d.STRING_TOP:
        bounds.append(_below(attribute, high[1]))
    return bounds[0] if len(bounds) == 1 else And(tuple(bounds))


def _below(attribute: Attribute, bound: str) -> Node:
    if bound.endswith("\0"):
        return Comparison("<=", attribute, Literal(bound[:-1]))
    return Comparison("<", attribute, Literal(bound))


def _not_below(attribute: Attribute, bound: str) -> Node:
    if bound.endswith("\0"):
        return Comparison(">", attribute, Literal(bound[:-1]))
    return Comparison(">=", attribute, Literal(bound))
