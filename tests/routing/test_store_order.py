"""The store of events: what a broker makes of its records when it is started again."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.outbox import Append, RecordingOutbox
from holdfast.kernel.storage import StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.store import STREAM, EventStore
from tests.routing.events import numbered_events, numbers_of
from tests.sessions.bench import event


def written(peers: Sequence[str], events: Sequence[EventBytes], rows: dict[str, list[int]]) -> StoredStreams:
    """The records of a broker that has put these events, each for the neighbours that have its row."""
    store, feeds, out = EventStore(peers, {}, []), Feeds({peer: Feed() for peer in peers}), RecordingOutbox()
    batch = EventBatch.of(events)
    store.put(batch, rows)
    for peer, chosen in rows.items():
        feeds[peer].put(batch.take(chosen))
    store.finish(feeds, out)
    return {STREAM: [effect.record for effect in out.take_effects() if isinstance(effect, Append)]}


def numbers(feed: Feed) -> list[int]:
    return [number for batch in feed.pending() for number in numbers_of(batch.events)]


def test_events_are_for_the_same_neighbours_when_the_site_file_has_others() -> None:
    """D1-A12: the record has places, and the order of neighbours may be another now."""
    streams = written(["left", "right"], [event(1), event(2), event(3)], {"left": [0, 2], "right": [1]})
    feeds = Feeds({peer: Feed() for peer in ("new", "right", "left")})
    EventStore(list(feeds), streams, []).recover_into(feeds)
    assert {peer: numbers(feed) for peer, feed in feeds.items()} == {"new": [], "right": [2], "left": [1, 3]}
    alone = Feeds({"right": Feed()})
    EventStore(list(alone), streams, []).recover_into(alone)
    assert numbers(alone["right"]) == [2]


def test_an_event_that_expires_leaves_a_gap_that_the_next_number_keeps() -> None:
    """D1-B4: what was sent may be acknowledged after it was given up."""
    feed = Feed()
    feed.put(numbered_events(1, 2, 3, 4, deadlines=[0, 10, 10, 0]))
    feed.put(numbered_events(5, deadlines=[10]))
    taken = feed.take(wall=5)
    assert [(batch.first, len(batch.events)) for batch in taken] == [(1, 4), (5, 1)]
    assert feed.rewind() == 5
    taken = feed.take(wall=10)
    assert [(batch.first, len(batch.events)) for batch in taken] == [(1, 1), (4, 1)]
    feed.check_invariants()
    assert (feed.expired, len(feed), feed.sent) == (3, 2, 5)
    assert feed.acknowledge(5)
    assert feed.is_idle
    assert feed.bytes == 0
