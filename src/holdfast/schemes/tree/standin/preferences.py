"""In which order subscriptions come to a stand-in, where single events wait for them (D0-F2).

Which subscription lets which events go is known where the events wait. So a neighbour with a wait-ready queue names to
the stand-in the subscriptions in the order in which it wants them, ahead of what it advertises, and the stand-in passes
that to its other neighbours: these tell in that order what they want, and so does the stand-in what it knows already.

It is advice. It says ids that all of them have in their tables, and nothing of events; what is not named comes behind,
in the order of the tables; and an id that somebody does not know changes nothing. So all is told that is told without
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from holdfast.errors import ProtocolError
from holdfast.protocols.routing.messages import checked_entry
from holdfast.schemes.tree.standin.messages import StandInPreferred

PREFERRED_BYTES: Final = 64 * 1024  # of ids; those that find no room are told as if there were no order

T = TypeVar("T")


def _size(entry: str) -> int:
    return len(entry) + 8


def that_fit(entries: Iterable[str]) -> list[str]:
    """The first of them."""
    fitting: list[str] = []
    size = 0
    for entry in entries:
        size += _size(entry)
        if size > PREFERRED_BYTES:
            break
        fitting.append(entry)
    return fitting


def check(message: StandInPreferred) -> None:
    """ProtocolError for what no neighbour says."""
    entries = message.subscriptions
    for entry in entries:
        if problem := checked_entry(entry):
            raise ProtocolError(f"in StandInPreferred, {problem}")
    if sum(map(_size, entries)) > PREFERRED_BYTES:
        raise ProtocolError(f"in StandInPreferred, {len(entries)} ids take more than {PREFERRED_BYTES} bytes")
    if not entries or len(dict.fromkeys(entries)) < len(entries):
        raise ProtocolError("in StandInPreferred, there are ids, and each once")


class Preferences:
    """What was heard of that. Of several who want one subscription, the one counts that wants it soonest."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def hear(self, entries: Iterable[str], is_known: Callable[[str], bool]) -> None:
        """Only what is known is kept."""
        for place, entry in enumerate(entries):
            if is_known(entry):
                self._places[entry] = min(place, self._places.get(entry, place))

    def in_order(self, told: Mapping[str, T]) -> dict[str, T]:
        """What is to be told, with what was named in front."""
        if not self._places:
            return dict(told)
        behind = PREFERRED_BYTES  # more than any place
        return dict(sorted(told.items(), key=lambda each: self._places.get(each[0], behind)))
