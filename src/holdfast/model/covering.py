"""Covering and intersection of filters (D2-B3, X-A1), on their canonical forms.

Both are safe in one direction always: `covers` says True only if it is so, `intersects` says False only if it is
so. They are exact for conjunctions of comparisons, IN, BETWEEN, IS NULL and prefix LIKE, since each attribute's
part is then one exact set. Work is bounded: `covers` compares at most PAIRS_MAX pairs of parts, `intersects` joins
at most PARTS_MAX parts, and both then give the safe answer.
"""

from __future__ import annotations

from holdfast.model import domain as d
from holdfast.model.canonical import Canonical, Every, Membership, Opaque, Pattern, Some, all_of, canonical_key
from holdfast.model.domain import Domain
from holdfast.model.syntax import And, Attribute, Between, IsNull, Node, Not, Or, children

PAIRS_MAX = 4096
PARTS_MAX = 4096


def covers(wide: Canonical, narrow: Canonical) -> bool:
    """True only if whatever satisfies `narrow` satisfies `wide`."""
    try:
        return _Comparison().covers(wide, narrow) or canonical_key(wide) == canonical_key(narrow)
    except RecursionError:  # a deep filter, asked about from deep inside the caller's own calls
        return False


class _Comparison:
    """One question of covering: what was found out of pairs of parts, and how many may still be looked at."""

    def __init__(self) -> None:
        # Both trees live as long as the question, so the identities of their parts are safe keys.
        self._known: dict[tuple[int, int], bool] = {}
        self._split: dict[int, tuple[dict[str, Canonical], list[Canonical]]] = {}

    def covers(self, wide: Canonical, narrow: Canonical) -> bool:
        key = (id(wide), id(narrow))
        if key not in self._known:
            if len(self._known) >= PAIRS_MAX:
                return False
            self._known[key] = False  # counted before its parts are
            self._known[key] = self._decide(wide, narrow)
        return self._known[key]

    def _decide(self, wide: Canonical, narrow: Canonical) -> bool:
        if isinstance(narrow, Some):
            return all(self.covers(wide, part) for part in narrow.parts)
        if isinstance(wide, Every):
            return all(self.covers(part, narrow) for part in wide.parts)
        if isinstance(wide, Some) and any(self.covers(part, narrow) for part in wide.parts):
            return True
        if isinstance(narrow, Every):
            return any(self.covers(wide, part) for part in self._candidates(wide, narrow))
        if isinstance(wide, Membership):
            return _implied_domain(narrow, wide.name).is_within(wide.domain)
        if isinstance(wide, Pattern):
            return _pattern_covers(wide, narrow)
        return isinstance(wide, Opaque) and isinstance(narrow, Opaque) and _same(wide, narrow)

    def _candidates(self, wide: Canonical, narrow: Every) -> list[Canonical]:
        """The parts of `narrow` that can imply `wide`: of the sets only the one of the same attribute."""
        if id(narrow) not in self._split:
            sets: dict[str, Canonical] = {part.name: part for part in narrow.parts if isinstance(part, Membership)}
            self._split[id(narrow)] = sets, [part for part in narrow.parts if not isinstance(part, Membership)]
        sets, others = self._split[id(narrow)]
        if isinstance(wide, Membership | Pattern):
            return [sets[wide.name], *others] if wide.name in sets else others
        return others if isinstance(wide, Opaque) else list(narrow.parts)


def _same(a: Opaque, b: Opaque) -> bool:
    return a.text == b.text and a.negated == b.negated


def _implied_domain(leaf: Canonical, name: str) -> Domain:
    """A set that holds every value that attribute `name` can have where `leaf` is TRUE."""
    match leaf:
        case Membership(name=own, domain=domain) if own == name:
            return domain
        case Pattern(name=own, pattern=pattern, negated=negated) if own == name:
            implied = d.PRESENT if negated else d.starting_with(pattern.prefix)
        case Opaque(node=node) if name in needed_names(node):
            implied = d.PRESENT
        case _:
            implied = d.ANYTHING
    return implied.meet(d.universe(name))


def _pattern_covers(wide: Pattern, narrow: Canonical) -> bool:
    if isinstance(narrow, Pattern):
        return wide == narrow
    if not isinstance(narrow, Membership) or narrow.name != wide.name or narrow.domain.missing:
        return False
    strings = narrow.domain.strings
    points = d.string_points(strings)
    if wide.negated:
        possible = d.intersection(strings, d.starting_with(wide.pattern.prefix).strings)
        return not possible or (points is not None and not any(map(wide.pattern.matches, points)))
    if narrow.domain.numbers or narrow.domain.booleans:
        return False
    return points is not None and all(map(wide.pattern.matches, points))


def needed_names(node: Node) -> tuple[str, ...]:
    """Attributes without which a comparison of expressions is UNKNOWN. Conditions inside may do without."""
    names: dict[str, None] = {}
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, Attribute):
            names[node.name] = None
        elif not isinstance(node, And | Or | Not | IsNull | Between):
            pending.extend(children(node))
    return tuple(names)


def intersects(a: Canonical, b: Canonical) -> bool:
    """False only if nothing satisfies both."""
    a_sets, b_sets = _sets(a), _sets(b)
    if a_sets is not None and b_sets is not None:  # as nearly always: only attributes of both can keep them apart
        return not any(name in b_sets and b_sets[name].meet(own).is_empty for name, own in a_sets.items())
    try:
        return _satisfiable(all_of([a, b]), [PARTS_MAX])
    except RecursionError:
        return True


def _sets(form: Canonical) -> dict[str, Domain] | None:
    """A conjunction of sets, by attribute; None, if the form is something else."""
    parts = form.parts if isinstance(form, Every) else (form,)
    sets: dict[str, Domain] = {}
    for part in parts:
        if not isinstance(part, Membership):
            return None
        sets[part.name] = part.domain
    return sets


def _satisfiable(form: Canonical, budget: list[int]) -> bool:
    if isinstance(form, Some):
        return any(_satisfiable(part, budget) for part in form.parts)
    if not isinstance(form, Every):
        return True
    choice = next((part for part in form.parts if isinstance(part, Some)), None)
    if choice is None:
        return True
    rest = [part for part in form.parts if part is not choice]
    for alternative in choice.parts:
        if budget[0] <= 0:
            return True
        budget[0] -= len(form.parts)
        if _satisfiable(all_of([alternative, *rest]), budget):
            return True
    return False
