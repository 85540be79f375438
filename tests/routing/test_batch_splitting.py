"""However events are cut into messages and turns on their way, every destination gets the same bytes in the same order,
and the disk says the same of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.kernel.inputs import LinkUp, Received
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Effect, Send
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, slices_of
from holdfast.protocols.core.commands import Applied, Arrive
from holdfast.protocols.routing.batches import BATCH_BYTES, BATCH_EVENTS, joined
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.messages import AcknowledgeEvents, Forward, Routes
from holdfast.protocols.routing.store import STREAM, EventStore
from holdfast.protocols.sessions.messages import Deliver, OpenSession, Subscribe
from tests.routing.events import batch_of, numbered_events
from tests.routing.test_store import ADVERTISEMENT, LINKS, Middle

CLIENT, LINK = "client:c", 9
COUNT = 24
WANTED_BEYOND = "topic = 't' AND n % 3 <> 1"  # at b3: with gaps
WANTED_HERE = ("n > 4", "n < 20 AND n <> 9")
EVENTS = batch_of(Event("p", 1 + n // 10, n, "t", {"n": n, "text": "x" * (n % 5)}) for n in range(1, COUNT + 1))
# Where messages begin, where turns begin among them, and how many events each message repeats of the one before.
Cuts = tuple[list[int], list[int], int]


class Heard:
    """What came of it, by destination."""

    def __init__(self) -> None:
        self.forwarded: list[tuple[int, bytes]] = []  # to b3: number, event
        self.delivered: dict[int, list[tuple[int, int, bytes]]] = {}  # subscription → number, position, event
        self.journalled: list[tuple[int, bytes]] = []
        self.acknowledged = 0
        self.kept: list[tuple[int, bytes]] = []  # for b3, after a restart

    def hear(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Append) and isinstance(effect.record, Applied):
                for command in effect.record.commands:
                    if isinstance(command, Arrive):
                        events, numbers = slices_of(command.events), command.numbers
                        if len(numbers) == 1:
                            numbers = tuple(range(numbers[0], numbers[0] + len(events)))
                        self.journalled += zip(numbers, map(bytes, events), strict=True)
            elif isinstance(effect, Send):
                self._hear(effect.message)

    def _hear(self, message: Any) -> None:
        match message:
            case Forward():
                self.forwarded += enumerate(map(bytes, slices_of(message.events)), message.first)
            case Deliver():
                numbers = [(of, first + place) for of, first, count in message.runs for place in range(count)]
                positions = [first + place for first, count in message.positions for place in range(count)]
                for (of, number), position, event in zip(numbers, positions, slices_of(message.events), strict=True):
                    self.delivered.setdefault(of, []).append((number, position, bytes(event)))
            case AcknowledgeEvents():
                self.acknowledged = message.number


def node() -> Middle:
    """b2, with a client; b3 is behind it."""
    made = Middle()
    made.link("b1", 0, ADVERTISEMENT)
    made.settle(made.link("b3", 0, Routes(subscriptions=[("b3.1.1", WANTED_BEYOND)], full=True)))
    made.handle(LinkUp(LINK, CLIENT, 1, Role.CLIENT, False))
    subscriptions = [Subscribe(number, text) for number, text in enumerate(WANTED_HERE, 1)]
    made.keep(made.handle(Received(LINK, CLIENT, [OpenSession(1), *subscriptions])))
    return made


def heard(cuts: Cuts) -> Heard:
    found, made = Heard(), node()
    begins, turns, repeated = cuts
    messages: list[Message] = []
    for first, end in pairwise(sorted({0, *begins, COUNT})):
        first = max(0, first - repeated)
        messages.append(Forward(first + 1, EVENTS.part(first, end).encoded))
    for first, end in pairwise(sorted({0, *(turn % len(messages) for turn in turns), len(messages)})):
        found.hear(made.keep(made.handle(Received(LINKS["b1"], "b1", messages[first:end]))))
    feeds = Feeds({"b1": Feed(), "b3": Feed()})
    EventStore(list(feeds), {STREAM: made.disk[STREAM]}, []).recover_into(feeds)
    found.kept = [
        (number, bytes(event))
        for batch in feeds["b3"].pending()
        for number, event in enumerate(batch.events.slices, batch.first)
    ]
    return found


WHOLE = heard(([], [], 0))


def test_what_is_compared_is_what_was_wanted() -> None:
    of = dict(enumerate(map(bytes, EVENTS.slices), 1))
    beyond = [n for n in of if n % 3 != 1]
    here = [[n for n in of if n > 4], [n for n in of if n < 20 and n != 9]]
    assert WHOLE.forwarded == WHOLE.kept == [(number, of[n]) for number, n in enumerate(beyond, 1)]
    assert WHOLE.journalled == list(of.items())
    assert [[event for _, _, event in WHOLE.delivered[number]] for number in (1, 2)] == [
        [of[n] for n in each] for each in here
    ]
    assert WHOLE.acknowledged == COUNT


@given(st.tuples(st.lists(st.integers(1, COUNT - 1)), st.lists(st.integers(0, COUNT)), st.integers(0, 3)))
@example((list(range(COUNT)), list(range(COUNT)), 0))
@example((list(range(COUNT)), [], 2))
def test_every_destination_gets_the_same_however_events_are_cut(cuts: Cuts) -> None:
    assert vars(heard(cuts)) == vars(WHOLE)


def sent(feed: Feed) -> list[tuple[int, bytes]]:
    """What may be sent now, as messages have it."""
    found: list[tuple[int, bytes]] = []
    for first, events in joined(feed.take(wall=0)):
        assert len(events) <= BATCH_EVENTS
        assert len(events) == 1 or events.bytes <= BATCH_BYTES
        found += enumerate(map(bytes, slices_of(events.encoded)), first)
    return found


@given(st.lists(st.integers(1, 2_999)), st.integers(0, 3_000), st.integers(0, 3_000), st.booleans())
def test_a_feed_sends_the_same_however_events_are_put_into_it(
    cuts: list[int], acknowledged: int, moved: int, suspended: bool
) -> None:
    def through(cuts: Sequence[int]) -> list[list[tuple[int, bytes]]]:
        feed, other = Feed(), Feed()
        other.put(numbered_events(7_001, 7_002))
        if suspended:
            other.suspend()
        for first, end in pairwise(sorted({0, *cuts, 3_000})):
            feed.put(LONG.part(first, end))
        feed.acknowledge(acknowledged)
        feed.rewind()
        feed.suspend(moved)
        found = [sent(feed)]
        feed.move_to(other)
        other.go_on()
        found.append(sent(other))
        for each in (feed, other):
            each.check_invariants()
        return [*found, [(feed.bytes, b""), (other.bytes, b"")]]

    assert through(cuts) == through([])


LONG: EventBatch = numbered_events(*range(1, 3_001))
