"""Message scheduling: each event for the side of a broker and its stand-in goes by one of the two (D0-A31, D0-B13).

The candidates are both where the stand-in is known to know whoever wants the event, else the broker alone; the one with
the shorter queue gets it, the broker if they are alike. Before it knows everything

- with `basic`, the stand-in is a candidate as soon as it has named one of the subscriptions: so others are lost;
- with `synch` it is none;
- with `increm` it is one at once: events for it wait until it names a subscription that wants them.

For what the broker's own clients want, the broker is the only way: it says what that is, since the tables may hide it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import assert_never

from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.routing.batches import FeedBatch
from holdfast.protocols.routing.dividing import Divides, Rows
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.local import broker_of
from holdfast.protocols.routing.router import Router
from holdfast.schemes.tree.standin.relief import Relief


class Openness(enum.Enum):
    """For which events a stand-in is a candidate."""

    CLOSED = "closed"
    ANY_NAMED = "any named"  # of which it has named a subscription that wants them
    ALL = "all"  # that no client of the broker's own wants
    ALL_NAMED = "all named"  # of which it has named all subscriptions that want them


class Share:
    """What goes by one stand-in, beside one neighbour."""

    __slots__ = ("is_over", "knows_own", "openness", "own", "relief", "through")

    def __init__(self, relief: Relief) -> None:
        self.relief = relief
        self.openness = Openness.CLOSED
        self.is_over = False  # the stand-in is given nothing any more, and is to go
        self.own: FilterIndex[str] = FilterIndex()  # what the broker's own clients want
        self.knows_own = False  # … all of it
        # The last event of each publisher that went by either, and how many signals have said so.
        self.through: dict[str, tuple[int, int, int]] = {}

    def open(self, openness: Openness) -> None:
        self.openness = openness

    def hear_own(self, wanted: Mapping[str, Filter], gone: Sequence[str], first: bool, last: bool) -> None:
        if first:
            self.own, self.knows_own = FilterIndex(), False
        for entry in gone:
            if entry in self.own:
                self.own.remove(entry)
        for entry, filter in wanted.items():
            if entry not in self.own:
                self.own.add(entry, filter)
        self.knows_own = self.knows_own or last

    def end(self) -> None:
        self.openness, self.is_over = Openness.CLOSED, True

    def was_said(self, times: int) -> None:
        """How far publishers are has been said once more; of whom it was said so often is forgotten."""
        said = {name: (life, last, count + 1) for name, (life, last, count) in self.through.items()}
        self.through = {name: number for name, number in said.items() if number[2] < times}

    def takes(self, entries: Sequence[str]) -> bool:
        """Whether an event that these subscriptions want may go by the stand-in."""
        knows, faulty = self.relief.knows, self.relief.side
        if any(broker_of(entry) == faulty for entry in entries):
            return False
        match self.openness:
            case Openness.CLOSED:
                return False
            case Openness.ANY_NAMED:
                return any(knows(entry) for entry in entries)
            case Openness.ALL:
                return True
            case Openness.ALL_NAMED:
                return all(knows(entry) for entry in entries)
            case _:
                assert_never(self.openness)

    def note(self, batch: EventBatch, rows: Sequence[int]) -> None:
        """These events go by one of the two."""
        for publisher, incarnation, first, count in batch.take(rows).publishers:
            number, before = (incarnation, first + count - 1), self.through.get(publisher, (-1, -1, 0))[:2]
            self.through[publisher] = (*max(number, before), 0)


class Sharing(Divides):
    """All stand-ins beside neighbours of this broker."""

    def __init__(self, router: Router, feeds: Feeds) -> None:
        self._router = router
        self._feeds = feeds
        self.shares: dict[str, Share] = {}  # by the broker whose work is shared

    def divide(self, batch: EventBatch, rows: Rows) -> Mapping[str, Sequence[int]]:
        for faulty, share in self.shares.items():
            wanted = rows.get(faulty)
            if wanted is not None:
                if share.relief.mode.orders:
                    share.note(batch, wanted)
                if share.openness is not Openness.CLOSED:
                    self._divide(batch, rows, wanted, share)
        return rows

    def put(self, faulty: str, batches: Sequence[FeedBatch]) -> None:
        """What was taken out of the broker's feed goes by whichever way it would go now. Of feeds that are not
        stored."""
        for batch in batches:
            for way, rows in self.divide(batch.events, {faulty: range(len(batch.events))}).items():
                self._feeds[way].put(batch.events.take(rows))

    def _divide(self, batch: EventBatch, rows: Rows, wanted: Sequence[int], share: Share) -> None:
        faulty, stand_in = share.relief.side, share.relief.name
        entries: dict[int, list[str]] = {row: [] for row in wanted}
        for entry, matched in self._router.targets.match_entries(faulty, batch).items():
            for row in matched:
                entries[row].append(entry)
        by: dict[str, list[int]] = {faulty: [], stand_in: []}
        waiting = {name: self._feeds[name].bytes for name in by}
        own = set(share.own.rows_matching(batch))
        for row in wanted:
            is_shorter = waiting[stand_in] < waiting[faulty] and share.knows_own and row not in own
            chosen = stand_in if is_shorter and share.takes(entries[row]) else faulty
            by[chosen].append(row)
            waiting[chosen] += batch.bytes_of(row, row + 1)
        del rows[faulty]
        rows.update({name: chosen for name, chosen in by.items() if chosen})
