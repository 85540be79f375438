"""Which filters match an event: `FilterIndex`, with a compiled engine and a portable one behind it.

The way of a filter: `plan` says what must hold as boxes, sets, prefixes and tests; an engine stores that
(`_kernel/` in C, `portable` in Python) and answers; `index` is what users hold. The oracle of both engines is
`Filter.matches`.
"""

from holdfast.matching.explanation import Explanation, Reason
from holdfast.matching.index import ENGINE, FilterIndex

__all__ = ["ENGINE", "Explanation", "FilterIndex", "Reason"]
