"""When is what was told known wherever it goes?

A broker that is told something under a ticket tells those beyond it under tickets of its own, and answers when all of
those are answered. So whoever was told first knows that every broker that it concerns has heard of it; and since links
are FIFO, that what those had to say about it has come back before.

A neighbour whose link is gone counts as having answered: it is told everything anew when it is back. At the levels that
buffer it counts as wanting everything until then (`Answers`), and that was told before. One that has a link and is told
nothing for now, since a link of the tree moves, counts as not having answered: who asks waits until it was told.
"""

from __future__ import annotations

from typing import TypeAlias

# Who asked, and under which ticket.
Question: TypeAlias = tuple[str, int]


class Settling:
    """Tickets that are open, here and at neighbours."""

    def __init__(self) -> None:
        self._last = 0
        self._outstanding: dict[str, dict[int, None]] = {}  # neighbour → tickets that it has not answered
        self.asked: list[Question] = []  # asked in this turn
        self._waiting: dict[Question, dict[Question, None]] = {}  # question → ours to neighbours that it waits for
        self._waited_for: dict[Question, dict[Question, None]] = {}  # ours to a neighbour → questions that wait for it
        self._places: dict[Question, int] = {}  # of questions that wait, in the order in which they came to
        self._last_place = 0
        self._freed: list[Question] = []  # that wait for nothing, since neighbours have changed
        self._held: dict[str, int] = {}  # neighbours that are told nothing for now → a ticket that they do not hear of

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, source: str, ticket: int = 0) -> int:
        """Someone asks; of the broker's own, a ticket is made."""
        if not ticket:
            self._last += 1
            ticket = self._last
        self.asked.append((source, ticket))
        return ticket

    def tell(self, neighbour: str, always: bool = False) -> int:
        """The ticket under which a neighbour is told something; 0 if nobody asked, unless it is wanted `always`."""
        if not self.asked and not always:
            return 0
        self._last += 1
        self._outstanding.setdefault(neighbour, {})[self._last] = None
        return self._last

    def hold(self, neighbour: str) -> None:
        """It is told nothing until `release`: whoever asks waits for that, too."""
        if neighbour not in self._held:
            self._held[neighbour] = self.tell(neighbour, always=True)

    def hold_too(self, neighbour: str, via: str) -> None:
        """It is held, and was beyond another neighbour until now: what that one was asked it may not have heard."""
        held = self._held.get(neighbour)
        if held is None:
            return
        for ticket in self._outstanding.get(via, ()):
            for asked in self._waited_for.get((via, ticket), ()):
                if asked[0] != neighbour:
                    self._waiting[asked][neighbour, held] = None
                    self._waited_for.setdefault((neighbour, held), {})[asked] = None

    def is_held(self, neighbour: str) -> bool:
        return neighbour in self._held

    def release(self, neighbour: str, ticket: int) -> None:
        """It was told everything, under this ticket; with 0, it has no link, and counts as having answered."""
        held = self._held.pop(neighbour, 0)
        if held:
            self._outstanding.get(neighbour, {}).pop(held, None)
            self._wait_instead((neighbour, held), (neighbour, ticket) if ticket else None)

    def answered(self, neighbour: str, ticket: int) -> list[Question]:
        """A neighbour has answered. Gives those who asked and wait for nothing any more."""
        if self._outstanding.get(neighbour, {}).pop(ticket, ticket) is not None:
            return []
        return self._done(neighbour, [ticket])

    @property
    def is_due(self) -> bool:
        """Whether someone asked, or need not wait any more, since the last `finish`."""
        return bool(self.asked or self._freed)

    def lost(self, neighbour: str) -> list[Question]:
        """A neighbour's link is gone. It asks for nothing any more, and nothing is waited for from it."""
        for asked in [asked for asked in self._waiting if asked[0] == neighbour]:
            self._forget(asked)
        self.asked = [asked for asked in self.asked if asked[0] != neighbour]
        self._freed = [asked for asked in self._freed if asked[0] != neighbour]
        self._held.pop(neighbour, None)
        return self._done(neighbour, list(self._outstanding.pop(neighbour, ())))

    def move(self, old: str, new: str, ticket: int) -> None:
        """What was waited for from one neighbour is waited for from another, which is asked anew under a ticket; and
        what the first one asked is not asked any more."""
        for asked in [asked for asked in self._waiting if asked[0] == old]:
            self._forget(asked)
        self.asked = [asked for asked in self.asked if asked[0] != old]
        self._freed = [asked for asked in self._freed if asked[0] != old]
        self._held.pop(old, None)
        for before in self._outstanding.pop(old, {}):
            self._wait_instead((old, before), (new, ticket) if ticket else None)

    def _wait_instead(self, before: Question, after: Question | None) -> None:
        """What waited for one ticket of ours waits for another, unless that is for who asked; or for nothing."""
        for asked in self._waited_for.pop(before, {}):
            waits = self._waiting[asked]
            del waits[before]
            if after is not None and asked[0] != after[0]:
                waits[after] = None
                self._waited_for.setdefault(after, {})[asked] = None
            elif not waits:
                del self._waiting[asked], self._places[asked]
                self._freed.append(asked)

    def _wait(self, asked: Question, waits: dict[Question, None]) -> None:
        self._forget(asked)  # who asks twice under one ticket waits for what the second one waits for
        self._last_place += 1
        self._places[asked] = self._last_place
        self._waiting[asked] = waits
        for ours in waits:
            self._waited_for.setdefault(ours, {})[asked] = None

    def _forget(self, asked: Question) -> None:
        for ours in self._waiting.pop(asked, ()):
            del self._waited_for[ours][asked]
            if not self._waited_for[ours]:
                del self._waited_for[ours]
        self._places.pop(asked, None)

    def _done(self, neighbour: str, tickets: list[int]) -> list[Question]:
        """Those who wait for nothing any more, in the order in which they came to wait."""
        done = []
        for ticket in tickets:
            for asked in self._waited_for.pop((neighbour, ticket), ()):
                waits = self._waiting[asked]
                del waits[neighbour, ticket]
                if not waits:
                    del self._waiting[asked]
                    done.append((self._places.pop(asked), asked))
        return [asked for _, asked in sorted(done)]

    def finish(self) -> list[Question]:
        """All that follows from the turn is told. Gives those of the turn who need not wait.

        The others wait for all that is not answered, not only for what was told in their turn: what they asked about
        may be hidden by something that is still under way.
        """
        done, self._freed = self._freed, []
        for asked in self.asked:
            # Who answers in order has answered all when it answers the last.
            waits = {
                (neighbour, next(reversed(tickets))): None
                for neighbour, tickets in self._outstanding.items()
                if neighbour != asked[0] and tickets
            }
            if waits:
                self._wait(asked, waits)
            else:
                done.append(asked)
        self.asked = []
        return done
