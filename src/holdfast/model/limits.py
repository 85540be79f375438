"""The limits of the filter language. Each has a name that the error repeats, and a default."""

from __future__ import annotations

import msgspec


class FilterLimits(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How large a filter may be. A text beyond a limit is refused before work is spent on it.

    All may be raised but `depth`, which Python's own recursion limit bounds: stay below 100.
    """

    text_bytes: int = 4096
    depth: int = 64
    predicates: int = 256
    in_values: int = 1024
    like_percents: int = 64
    like_underscores: int = 16
    name_bytes: int = 128


DEFAULT_LIMITS = FilterLimits()
