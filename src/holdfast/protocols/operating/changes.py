"""Changes of brokers that work together, as operators ask for them: an action, and what is told of it by name.

Which actions there are, and what is told, its scheme says. Whoever is asked answers in words, whatever comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from holdfast.kernel.outbox import Outbox

NO_CHANGES: Final = "this broker belongs to no group and no network that could be changed"
_SHOWN_MAX: Final = 64


class Changes(Protocol):
    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        """Begins a change; gives what is against it, empty if it has begun."""
        ...


def misunderstood(action: str, told: Mapping[str, str], known: Mapping[str, Iterable[str]]) -> str:
    """What is not known of a change, if its scheme has these actions, of which these things are told; empty if all is.
    An operator that is newer than the broker may want more than the broker would do."""
    if action not in known:
        return f"there is no change {shown(action)}; there is {', '.join(known)}"
    odd = next((name for name in told if name not in known[action]), None)
    return "" if odd is None else f"nothing is known of {shown(odd)} in a change {action!r}"


def shown(text: str) -> str:
    """What was said, in an answer that fits into a message."""
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…")
