"""Values without time or I/O: what an event carries, and the filters that select events.

The way of a filter's text: `lexer` → `parser` → `syntax` (a tree that can evaluate itself) → `filter`
(what users hold). `canonical` reduces the tree to sets of values (`domain`), on which `covering` reasons
and from which the index plans. `padres` reads the notation of the field's data sets.
"""

from holdfast.model.filter import Filter
from holdfast.model.limits import DEFAULT_LIMITS, FilterLimits

__all__ = ["DEFAULT_LIMITS", "Filter", "FilterLimits"]
