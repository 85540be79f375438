"""One cursor: a place in the log under a name, with the filter of whoever reads there. Part of the core's state."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.kernel.node import require
from holdfast.model import Filter

FILTERS_MAX = 16  # changes that the owner has not yet read past
ATTEMPTS_KEPT = 8  # takeovers that are told apart


def attempt(takeovers: Sequence[int], position: int) -> int:
    """How often an event was sent, with this time, as far as is known; 1 means that it surely was not before."""
    return 1 + sum(sent >= position for sent in takeovers)


class CursorState(msgspec.Struct, frozen=True, array_like=True):
    name: str
    filters: list[tuple[int, str]]
    acknowledged: int
    generation: int
    owner: tuple[str, int, int] | None
    takeovers: list[int]
    born: int = 1
    made_at: int = 0  # of a state that was written before this was kept: not known
    used_at: int = 0


class Cursor:
    """Compared by identity."""

    __slots__ = (
        "acknowledged", "born", "filters", "generation", "made_at", "name", "owner", "takeovers", "used_at",
    )  # fmt: skip

    def __init__(self, name: str, filter: Filter, acknowledged: int, made_at: int = 0) -> None:
        self.name = name
        # By the time of commands: when it was made, and last opened, acknowledged or left. 0 is not known.
        self.made_at = self.used_at = made_at
        # Each filter counts for the events behind a position, up to where the next one begins.
        self.filters: list[tuple[int, Filter]] = [(acknowledged, filter)]
        self.acknowledged = acknowledged
        # Who takes the cursor gives it the next generation of the whole table: that of a name that was given up and
        # made again is another one.
        self.generation = 0
        self.born = 0  # the generation of its first owner
        self.owner: tuple[str, int, int] | None = None  # client, epoch, the client's number for it
        # Up to which position events may have been sent before each takeover but the first, newest first.
        self.takeovers: list[int] = []

    @property
    def filter(self) -> Filter:
        """The one that counts for events to come."""
        return self.filters[-1][1]

    def change_filter(self, filter: Filter, head: int) -> bool:
        """From behind the head on, another filter counts. False if there are too many that still count."""
        if self.filters[-1][0] == head:
            self.filters[-1] = (head, filter)
        elif len(self.filters) >= FILTERS_MAX:
            return False
        else:
            self.filters.append((head, filter))
            self._drop_old_filters()
        return True

    def _drop_old_filters(self) -> None:
        while len(self.filters) > 1 and self.filters[1][0] <= self.acknowledged:
            del self.filters[0]

    def use(self, wall: int) -> None:
        self.used_at = max(self.used_at, wall)

    @property
    def is_first_owner(self) -> bool:
        """Whether no one had it before who has it now."""
        return self.generation == self.born

    def take_over(self, owner: tuple[str, int, int], generation: int, sent: int) -> None:
        """Someone reads on from what is acknowledged; events up to `sent` may have been sent before."""
        if not self.born:
            self.born, sent = generation, 0
        self.generation = generation
        self.owner = owner
        if sent > self.acknowledged:
            self.takeovers.insert(0, sent)
            del self.takeovers[ATTEMPTS_KEPT:]

    def give(self, owner: tuple[str, int, int]) -> None:
        """Who has it has another number for it now, or another epoch."""
        self.owner = owner

    def leave(self) -> tuple[str, int, int] | None:
        """Nobody has it any more. Who had it."""
        owner, self.owner = self.owner, None
        return owner

    def move(self, acknowledged: int, filter: Filter) -> None:
        """To another place, from which on one filter counts for everything."""
        self.filters = [(acknowledged, filter)]
        self.acknowledged = acknowledged
        self.takeovers = []

    def acknowledge(self, position: int) -> None:
        if position > self.acknowledged:
            self.acknowledged = position
            self._drop_old_filters()
            self.takeovers = [sent for sent in self.takeovers if sent > position]

    def attempt(self, position: int) -> int:
        return attempt(self.takeovers, position)

    def get_state(self) -> CursorState:
        filters = [(after, str(filter)) for after, filter in self.filters]
        times = self.made_at, self.used_at
        return CursorState(
            self.name, filters, self.acknowledged, self.generation, self.owner, self.takeovers, self.born, *times
        )

    @classmethod
    def from_state(cls, state: CursorState) -> Cursor:
        cursor = cls(state.name, Filter(state.filters[0][1]), state.acknowledged)
        cursor._restore(state)
        return cursor

    def _restore(self, state: CursorState) -> None:
        self.filters = [(after, Filter(text)) for after, text in state.filters]
        self.generation, self.owner, self.takeovers = state.generation, state.owner, list(state.takeovers)
        self.born, self.made_at, self.used_at = state.born, state.made_at, state.used_at

    def check_invariants(self, head: int) -> None:
        require(0 <= self.acknowledged <= head, "what is acknowledged exists", name=self.name, head=head)
        starts = [after for after, _ in self.filters]
        require(starts == sorted(set(starts)), "filters follow each other", name=self.name)
        require(starts[0] <= self.acknowledged, "some filter counts for the next event", name=self.name)
        require(len(starts) < 2 or starts[1] > self.acknowledged, "old filters go", name=self.name)
