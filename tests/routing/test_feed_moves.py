"""Feeds that are suspended, moved, closed and given another order: nothing is lost, doubled or out of order."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.kernel.node import InvariantBroken
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes
from holdfast.protocols.routing.batches import BATCH_EVENTS
from holdfast.protocols.routing.feed import Discipline, Feed
from holdfast.protocols.routing.feeds import Feeds
from tests.routing.events import numbered_events, numbers_of

PEERS = ("left", "right")
FOREVER = 1 << 62


SIZE = numbered_events(1).bytes  # of one event


def given_to(feed: Feed, *numbers: int) -> Feed:
    feed.put(numbered_events(*numbers))
    return feed


def sent(feed: Feed, wall: int = 0) -> list[tuple[int, int]]:
    """What may be sent now: numbers, and the events that they stand for."""
    return [(batch.first + row, n) for batch in feed.take(wall) for row, n in enumerate(numbers_of(batch.events))]


def held(feed: Feed) -> list[tuple[int, int]]:
    return [(batch.first + row, n) for batch in feed.pending() for row, n in enumerate(numbers_of(batch.events))]


# ------------------------------------------------------------------------------------------------------------- claims
def test_a_suspended_feed_takes_in_and_sends_nothing_until_it_goes_on() -> None:
    feed = given_to(Feed(), 1)
    feed.suspend()
    given_to(feed, 2)
    assert (sent(feed), len(feed), feed.bytes, feed.is_suspended) == ([], 2, 2 * SIZE, True)
    feed.go_on()
    assert (sent(feed), feed.is_suspended) == ([(1, 1), (2, 2)], False)


def test_what_was_sent_before_is_sent_again_by_a_suspended_feed_and_nothing_else() -> None:
    """Whoever changes neighbours has told someone that it comes, and the link may break before it has come."""
    feed = given_to(Feed(), 1, 2)
    assert sent(feed) == [(1, 1), (2, 2)]
    feed.suspend()
    given_to(feed, 3)
    feed.resume()
    assert sent(feed) == [(1, 1), (2, 2)]
    assert sent(feed) == []


def test_a_feed_may_be_suspended_behind_what_waits_now() -> None:
    feed = given_to(Feed(), 1, 2)
    assert feed.promise_all() == 2
    feed.suspend(2)
    given_to(feed, 3)
    other = Feed()
    assert sent(feed) == [(1, 1), (2, 2)]
    feed.move_to(other)
    assert (held(feed), held(other)) == ([(1, 1), (2, 2)], [(1, 3)])


def test_cutting_leaves_what_was_sent_and_the_next_number_follows_it() -> None:
    feed = given_to(Feed(), 1, 2)
    assert len(sent(feed)) == 2
    given_to(feed, 3, 4)
    feed.acknowledge(1)
    assert [(batch.first, numbers_of(batch.events)) for batch in feed.cut()] == [(3, [3, 4])]
    assert (held(feed), feed.following, feed.bytes) == ([(2, 2)], 3, SIZE)
    given_to(feed, 9)
    assert sent(feed) == [(3, 9)]
    feed.check_invariants()


def test_what_was_sent_once_is_not_cut_though_it_is_to_be_sent_again() -> None:
    feed = given_to(Feed(), 1, 2)
    assert len(sent(feed)) == 2
    feed.rewind()
    assert (feed.cut(), feed.following, feed.has_unsent) == ([], 3, True)


def test_what_the_disk_had_counts_as_sent() -> None:
    """The life before may have sent all of it: others know these numbers for these events."""
    feed = given_to(Feed(), 1, 2)
    feed.begin()
    assert (feed.cut(), feed.heard, feed.following) == ([], 2, 3)


def test_what_is_promised_is_not_cut_and_does_not_expire() -> None:
    feed = Feed()
    feed.put(numbered_events(1, 2, deadlines=[10, 10]))
    assert feed.promise_all() == 2
    given_to(feed, 3)
    assert [numbers_of(batch.events) for batch in feed.cut()] == [[3]]
    feed.drop_expired(50)
    assert sent(feed, wall=50) == [(1, 1), (2, 2)]
    feed.put(numbered_events(4, deadlines=[10]))
    assert (sent(feed, wall=50), feed.expired) == ([], 1), "nobody waits for that one"


def test_nobody_waits_for_what_was_acknowledged_or_given_up() -> None:
    feed = Feed()
    feed.put(numbered_events(1, 2, deadlines=[0, 10]))
    assert len(sent(feed)) == 2
    feed.rewind()
    feed.drop_expired(50)
    assert feed.promise_sent() == 1
    feed.acknowledge(2)
    assert feed.promise_sent() == 0


def test_what_is_moved_goes_behind_what_waits_and_in_front_of_what_waits_in_a_suspended_feed() -> None:
    """What waits in a feed that is not sent yet was published behind the change."""
    for suspended, expected in ((False, [8, 9, 1, 2]), (True, [1, 2, 8, 9])):
        old, new = given_to(Feed(), 1, 2), Feed()
        if suspended:
            new.suspend()
        given_to(new, 8, 9)
        assert old.move_to(new) == (0, 1 if suspended else 3, 2)
        new.go_on()
        assert sent(new) == list(enumerate(expected, 1))
        assert (len(old), old.bytes, old.following, new.bytes, new.following) == (0, 0, 1, 4 * SIZE, 5)
        new.check_invariants()


def test_nothing_is_moved_in_front_of_what_was_sent() -> None:
    old, new = given_to(Feed(), 1), given_to(Feed(), 7)
    assert sent(new) == [(1, 7)]
    new.suspend()
    given_to(new, 8)
    old.move_to(new)
    new.go_on()
    new.rewind()
    assert sent(new) == [(1, 7), (2, 1), (3, 8)]


def test_all_that_a_lost_neighbour_has_not_acknowledged_is_moved() -> None:
    old, new = given_to(Feed(), 1, 2, 3), given_to(Feed(), 9)
    assert len(sent(old)) == 3
    old.acknowledge(1)
    given_to(old, 4)
    old.move_all_to(new)
    assert (held(old), held(new)) == ([], [(1, 9), (2, 2), (3, 3), (4, 4)])
    assert old.following == 4, "what was sent keeps its numbers"
    old.check_invariants()


def test_a_feed_is_not_moved_to_itself() -> None:
    feed = given_to(Feed(), 1)
    with pytest.raises(InvariantBroken, match="itself"):
        feed.move_to(feed)
    assert held(feed) == [(1, 1)]


def test_a_closed_feed_gives_up_all_and_one_that_is_made_later_goes_on_with_its_numbers() -> None:
    feeds = Feeds({"left": Feed()})
    feed = given_to(feeds["left"], 1, 2)
    assert len(sent(feed)) == 2
    given_to(feed, 3)
    assert (feeds.drop("left"), len(feed), feed.bytes, list(feeds)) == (3, 0, 0, [])
    with pytest.raises(InvariantBroken, match="closed"):
        given_to(feed, 4)
    assert not feeds.add("left")
    assert sent(given_to(feeds["left"], 5)) == [(3, 5)]


def test_a_feed_without_a_store_is_as_suspended_when_its_link_is_gone_as_before() -> None:
    feed = given_to(Feed(), 1)
    feed.suspend()
    assert feed.clear() == 1
    given_to(feed, 2)
    assert sent(feed) == []
    feed.go_on()
    assert sent(feed) == [(1, 2)]


def test_events_that_were_moved_have_passed_when_they_have_passed_where_they_are() -> None:
    """An advertisement is taken back when what was published under it has passed, wherever that is by then."""
    feeds = Feeds({"left": given_to(Feed(), 1, 2), "right": Feed(), "third": Feed()})
    waits = feeds.under_way_beside("third")
    feeds["right"].suspend()
    given_to(feeds["right"], 8)
    feeds.move("left", "right")
    feeds.move("right", "third")
    for acknowledged, passed in ((1, False), (2, True)):
        feeds["third"].acknowledge(acknowledged)
        assert all(feeds.has_passed(peer, number) for peer, number in waits.items()) is passed
    feeds["third"].acknowledge(3)
    assert feeds.has_passed("right", 1)


# ---------------------------------------------------------------------------------------------------------- any order
class Receiver:
    """A neighbour: counts by number, as brokers do."""

    def __init__(self) -> None:
        self.under_way: deque[tuple[int, int]] = deque()
        self.taken_in = 0
        self.got: list[int] = []
        self.known: dict[int, int] = {}

    def hear(self, count: int) -> None:
        for _ in range(min(count, len(self.under_way))):
            number, n = self.under_way.popleft()
            assert self.known.setdefault(number, n) == n, "a number stands for one event"
            if number > self.taken_in:
                self.taken_in = number
                self.got.append(n)


class Moves(RuleBasedStateMachine):
    """Against the obvious: of each neighbour a list of events that it is to get, and one of those that it may get."""

    peers = st.sampled_from(PEERS)

    @initialize()
    def begin(self) -> None:
        self.feeds = Feeds({peer: Feed() for peer in PEERS})
        self.receivers = {peer: Receiver() for peer in PEERS}
        self.heard: dict[str, list[int]] = {peer: [] for peer in PEERS}
        self.waiting: dict[str, list[int]] = {peer: [] for peer in PEERS}
        self.owed: dict[str, list[tuple[int, int]]] = {peer: [] for peer in PEERS}  # number, how many it stands for
        self.last = 0

    def _hear_of_all(self, peer: str) -> None:
        self.heard[peer] += self.waiting[peer]
        self.waiting[peer] = []

    @rule(peer=peers, count=st.sampled_from((1, 2, 3, BATCH_EVENTS + 1)))
    def put(self, peer: str, count: int) -> None:
        numbers = list(range(self.last + 1, self.last + count + 1))
        self.last += count
        given_to(self.feeds[peer], *numbers)
        self.waiting[peer] += numbers

    @rule(peer=peers)
    def take(self, peer: str) -> None:
        self.receivers[peer].under_way += sent(self.feeds[peer])
        if not self.feeds[peer].is_suspended:
            self._hear_of_all(peer)

    @rule(peer=peers, count=st.integers(1, 4))
    def hear(self, peer: str, count: int) -> None:
        receiver = self.receivers[peer]
        receiver.hear(count)
        for through, number in self.owed[peer]:
            assert receiver.taken_in < through or len(receiver.got) >= number, "what it waited for has come"

    @rule(peer=peers, back=st.integers(0, 2))
    def acknowledge(self, peer: str, back: int) -> None:
        self.feeds[peer].acknowledge(self.receivers[peer].taken_in - back)

    @rule(peer=peers)
    def link_anew(self, peer: str) -> None:
        self.receivers[peer].under_way.clear()
        self.feeds[peer].acknowledge(self.receivers[peer].taken_in)
        self.feeds[peer].resume()

    @rule(peer=peers, all_of_it=st.booleans())
    def suspend(self, peer: str, all_of_it: bool) -> None:
        feed = self.feeds[peer]
        if all_of_it and not feed.is_suspended:
            feed.suspend(feed.promise_all())
            self._hear_of_all(peer)
        else:
            feed.suspend()

    @rule(peer=peers)
    def go_on(self, peer: str) -> None:
        self.feeds[peer].go_on()

    @rule(peer=peers)
    def promise(self, peer: str) -> None:
        through = self.feeds[peer].promise_sent()
        self.owed[peer].append((through, len(self.heard[peer]) if through else 0))

    @rule(old=peers, again=st.integers(1, 2))
    def move(self, old: str, again: int) -> None:
        new = PEERS[1 - PEERS.index(old)]
        self.feeds.move(old, new)
        moved, self.waiting[old] = self.waiting[old], []
        later = self.waiting[new]
        self.waiting[new] = moved + later if self.feeds[new].is_suspended else later + moved
        assert self.feeds[old].following == self.feeds[old].heard + 1

    @rule(peer=peers)
    def come_back(self, peer: str) -> None:
        """It goes when it has taken in what it was sent."""
        receiver = self.receivers[peer]
        receiver.hear(len(receiver.under_way))
        missing = len(self.heard[peer]) - len(receiver.got)
        assert self.feeds[peer].promise_sent() > receiver.taken_in if missing else True
        self.feeds[peer].acknowledge(receiver.taken_in)
        assert self.feeds.drop(peer) == missing + len(self.waiting[peer])
        self.waiting[peer], self.heard[peer], self.owed[peer] = [], receiver.got[:], []
        self.feeds.add(peer)

    @invariant()
    def counts_are_true(self) -> None:
        for peer in PEERS:
            feed = self.feeds[peer]
            feed._unchecked = len(feed)
            feed.check_invariants()

    def teardown(self) -> None:
        for peer in PEERS:
            feed, receiver = self.feeds[peer], self.receivers[peer]
            feed.go_on()
            self.link_anew(peer)
            while not feed.is_idle:
                self.take(peer)
                self.hear(peer, len(receiver.under_way))
                feed.acknowledge(receiver.taken_in)
            assert receiver.got == self.heard[peer]
            assert all(receiver.taken_in >= through for through, _ in self.owed[peer])


TestAnyOrder = Moves.TestCase


@given(
    history=st.lists(st.tuples(st.sampled_from(("put", "take", "hear", "acknowledge")), st.integers(1, 3)), max_size=30)
)
def test_of_what_a_lost_neighbour_had_nothing_is_lost(history: list[tuple[str, int]]) -> None:
    old, new, receiver, last, acknowledged = Feed(), Feed(), Receiver(), 0, 0
    for act, count in history:
        match act:
            case "put":
                given_to(old, *range(last + 1, last + count + 1))
                last += count
            case "take":
                receiver.under_way += sent(old)
            case "hear":
                receiver.hear(count)
            case "acknowledge":
                acknowledged = receiver.taken_in
                old.acknowledge(acknowledged)
    old.move_all_to(new)
    assert [n for _, n in sent(new)] == list(range(acknowledged + 1, last + 1))
    assert old.is_idle
    assert not old.bytes


# -------------------------------------------------------------------------------------------------------- disciplines
class Fifo(Discipline):
    def __init__(self) -> None:
        self.waiting: deque[EventBytes] = deque()

    def put(self, events: EventBatch) -> None:
        self.waiting.extend(events.slices)

    def take(self, bytes_max: int) -> EventBatch:
        taken = []
        while self.waiting and bytes_max > 0:
            taken.append(self.waiting.popleft())
            bytes_max -= len(taken[-1])
        return EventBatch.of(taken)

    def drain(self) -> EventBatch:
        return self.take(FOREVER)

    def __len__(self) -> int:
        return len(self.waiting)


class WaitReady(Discipline):
    """D0's: an event waits until its subscription is ready; those that are ready take turns, by their classes."""

    def __init__(self, classes: dict[int, int]) -> None:
        self.classes = classes  # of subscriptions: the lowest first
        self.ready: dict[int, None] = {}
        self._queues: dict[int, deque[EventBytes]] = {}

    def put(self, events: EventBatch) -> None:
        for each, number in zip(events.slices, numbers_of(events), strict=True):
            self._queues.setdefault(number // 100, deque()).append(each)

    def take(self, bytes_max: int) -> EventBatch:
        taken: list[EventBytes] = []
        while bytes_max > 0 and (turn := [one for one in self.ready if self._queues.get(one)]):
            first = min(turn, key=self.classes.__getitem__)
            taken.append(self._queues[first].popleft())
            bytes_max -= len(taken[-1])
            self.ready[first] = self.ready.pop(first)  # the others are first now
        return EventBatch.of(taken)

    def drain(self) -> EventBatch:
        left = [each for queue in self._queues.values() for each in queue]
        self._queues = {}
        return EventBatch.of(left)

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))


class OneFifo:
    """D3's: one queue, each event once, with those that it is for; a pointer for each of them."""

    def __init__(self) -> None:
        self.events: dict[int, tuple[EventBytes, dict[str, None]]] = {}  # by the order of coming
        self._next = 0

    def pointer(self, peer: str) -> Pointer:
        return Pointer(self, peer)

    def put(self, peer: str, each: EventBytes) -> None:
        found = [place for place, (known, _) in self.events.items() if bytes(known) == bytes(each)]
        place = found[0] if found else self._next
        self._next = max(self._next, place + 1)
        self.events.setdefault(place, (each, {}))[1][peer] = None

    def pop(self, place: int, peer: str) -> EventBytes:
        each, peers = self.events[place]
        del peers[peer]
        if not peers:
            del self.events[place]  # everyone has passed it
        return each


class Pointer(Discipline):
    def __init__(self, fifo: OneFifo, peer: str) -> None:
        self._fifo, self._peer = fifo, peer

    def put(self, events: EventBatch) -> None:
        for each in events.slices:
            self._fifo.put(self._peer, each)

    def take(self, bytes_max: int) -> EventBatch:
        taken: list[EventBytes] = []
        for place in self._places():
            if bytes_max <= 0:
                break
            taken.append(self._fifo.pop(place, self._peer))
            bytes_max -= len(taken[-1])
        return EventBatch.of(taken)

    def drain(self) -> EventBatch:
        return self.take(FOREVER)

    def _places(self) -> list[int]:
        return [place for place, (_, peers) in self._fifo.events.items() if self._peer in peers]

    def __len__(self) -> int:
        return len(self._places())


def test_events_of_a_stand_in_wait_until_their_subscriptions_are_ready_and_take_turns() -> None:
    feed, order = given_to(Feed(), 100, 200), WaitReady({1: 0, 2: 0, 3: 0, 4: 1})
    feed.use(order)
    later = (101, 102, 201, 300, 301, 400)
    given_to(feed, *later)
    size = numbered_events(100, 200, *later).bytes
    assert (sent(feed), len(feed), feed.bytes, feed.has_unsent) == ([], 8, size, True)
    order.ready |= {4: None, 2: None, 1: None}
    assert sent(feed) == [(1, 200), (2, 100), (3, 201), (4, 101), (5, 102), (6, 400)]
    order.ready[3] = None
    assert sent(feed) == [(7, 300), (8, 301)]
    feed.acknowledge(8)
    assert (feed.is_idle, feed.bytes) == (True, 0)
    feed.check_invariants()


def test_feeds_with_pointers_into_one_queue_hold_each_event_once() -> None:
    fifo, feeds = OneFifo(), {peer: Feed() for peer in PEERS}
    for peer, feed in feeds.items():
        feed.use(fifo.pointer(peer))
    for number, peers in enumerate((PEERS, PEERS[:1], PEERS[1:], PEERS), 1):
        for peer in peers:
            given_to(feeds[peer], number)
    assert len(fifo.events) == 4
    assert sent(feeds["left"]) == [(1, 1), (2, 2), (3, 4)]
    assert len(fifo.events) == 3, "the pointer of the other one stands before them"
    feeds["right"].suspend()
    assert sent(feeds["right"]) == []
    feeds["right"].go_on()
    assert sent(feeds["right"]) == [(1, 1), (2, 3), (3, 4)]
    assert fifo.events == {}


def test_what_waits_in_order_has_no_numbers_and_is_suspended_moved_and_closed_like_all() -> None:
    feed, other = Feed(), Feed()
    order = WaitReady({1: 0})
    feed.use(order)
    given_to(feed, 100, 101)
    assert (feed.following, feed.is_numbered) == (1, False)
    order.ready[1] = None
    feed.suspend()
    assert sent(feed) == []
    given_to(other, 7)
    feed.move_to(other)
    assert (len(feed), feed.bytes, held(other)) == (0, 0, [(1, 7), (2, 100), (3, 101)])
    feed.use(None)
    feed.go_on()
    assert sent(given_to(feed, 102)) == [(1, 102)]
    feed.use(order)
    given_to(feed, 103)
    assert feed.close() == 2


@pytest.mark.parametrize("suspended", [False, True])
def test_what_is_moved_to_a_feed_with_an_order_of_its_own_is_put_into_that(suspended: bool) -> None:
    old, new = given_to(Feed(), 1, 2), Feed()
    new.use(Fifo())
    if suspended:
        new.suspend()
    given_to(new, 3)
    old.move_to(new)
    new.go_on()
    assert sent(new) == list(enumerate([1, 2, 3] if suspended else [3, 1, 2], 1))
    new.check_invariants()


def test_what_expires_in_its_order_is_given_up_when_its_turn_comes() -> None:
    feed = Feed()
    order: Discipline = Fifo()
    feed.use(order)
    feed.put(numbered_events(1, 2, deadlines=[10, 0]))
    assert sent(feed, wall=20) == [(2, 2)]
    assert (feed.expired, feed.bytes) == (1, SIZE)
