"""Filters by their text, each parsed once. The filter itself is the oracle; no index is asked."""

from __future__ import annotations

from holdfast.errors import FilterError
from holdfast.model import Filter

# What a subscription wants that was refused because its text is no filter.
NOTHING = Filter("FALSE")


class FilterCache(dict[str, Filter]):
    """`cache[text]` is the filter."""

    def __missing__(self, text: str) -> Filter:
        try:
            filter = self[text] = Filter(text)
        except FilterError:
            filter = self[text] = NOTHING
        return filter
