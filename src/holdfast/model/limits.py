"""The limits of the filter language. Each has a name that the error repeats, and a default."""

from __future__ import annotations

import msgspec

# Trees are walked by recursion, a few calls a level: beyond this a filter could exhaust Python's stack.
DEPTH_MAX = 256


class FilterLimits(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How large a filter may be. A text beyond a limit is refused before work is spent on it.

    Limits may be lowered and raised, `depth` up to DEPTH_MAX.
    """

    text_bytes: int = 4096
    depth: int = 64
    predicates: int = 256
    in_values: int = 1024
    like_percents: int = 64
    like_underscores: int = 16
    name_bytes: int = 128

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"the limit {name} is a number that is not negative, not {value!r}")
        if self.depth > DEPTH_MAX:
            raise ValueError(f"the limit depth is at most {DEPTH_MAX}, not {self.depth}")


DEFAULT_LIMITS = FilterLimits()
