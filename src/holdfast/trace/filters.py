"""Filters by their text, each parsed once. The filter itself is the oracle; no index is asked."""

from __future__ import annotations

from holdfast.errors import FilterError, TraceError
from holdfast.model import Filter


class FilterCache(dict[str, Filter]):
    """`cache[text]` is the filter. Text that is no filter raises TraceError."""

    def __missing__(self, text: str) -> Filter:
        try:
            filter = self[text] = Filter(text)
        except FilterError as problem:
            raise TraceError(f"a subscription has a filter that can't be read: {problem}") from None
        return filter
