"""Filters by their text, each parsed once. The filter itself is the oracle; no index is asked."""

from __future__ import annotations

from holdfast.model import Filter


class FilterCache(dict[str, Filter]):
    """`cache[text]` is the filter. Text that is no filter raises FilterError."""

    def __missing__(self, text: str) -> Filter:
        filter = self[text] = Filter(text)
        return filter
