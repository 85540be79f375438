"""The events that a subscription keeps, against the obvious model: a list of (number, event)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.node import InvariantBroken
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.model.event import BATCH_EVENTS_MAX, EventBytes
from holdfast.protocols.core.backlog import Run, batch_of, positions_of
from holdfast.protocols.core.subscriptions import Subscription, SubscriptionState
from holdfast.protocols.sessions.messages import Overflow
from tests.sessions.bench import event

EVENTS_MAX = 5
BYTES_MAX = 200

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 270)),
        st.tuples(st.just("receive"), st.integers(-3, 40)),
        st.tuples(st.just("restore"), st.just(0)),
    ),
    min_size=15,
    max_size=60,
)


def make(overflow: Overflow) -> Subscription:
    return Subscription("client:c", 1, Filter("n > 0"), overflow, 3)


def one(data: EventBytes, position: int = 1) -> Run:
    return Run(EventBatch.of([data]), [position])


class Model:
    """What `Subscription` says it is."""

    def __init__(self, overflow: Overflow) -> None:
        self.overflow = overflow
        self.last = 0
        self.kept: list[tuple[int, EventBytes]] = []
        self.dropped_through = 0
        self.positions: dict[int, int] = {}

    def _full(self, data: EventBytes) -> bool:
        return len(self.kept) >= EVENTS_MAX or sum(len(one) for _, one in self.kept) + len(data) > BYTES_MAX

    def add(self, data: EventBytes, position: int) -> bool:
        if self._full(data):
            if self.overflow is not Overflow.DROP_OLDEST:
                return False
            while self.kept and self._full(data):
                self.kept.pop(0)
            self.dropped_through = self.kept[0][0] - 1 if self.kept else self.last
        self.last += 1
        self.kept.append((self.last, data))
        self.positions[self.last] = position
        return True

    def receive(self, number: int) -> None:
        self.kept = [(n, data) for n, data in self.kept if n > number]


@given(overflow=st.sampled_from(Overflow), steps=STEPS)
def test_a_subscription_keeps_what_the_model_keeps(overflow: Overflow, steps: list[tuple[str, int]]) -> None:
    ring, model = make(overflow), Model(overflow)
    for n, (step, argument) in enumerate(steps):
        if step == "add":
            size, count = divmod(argument, 3)
            events = [event(n + 1, payload=b"x" * size) for _ in range(count + 1)]
            run = Run(EventBatch.of(events), range(100 * n + 1, 100 * n + 1 + len(events)))
            taken = 0
            while taken < len(events) and model.add(events[taken], run.positions[taken]):
                taken += 1
            assert ring.add(run, EVENTS_MAX, BYTES_MAX) == taken
        elif step == "receive":
            ring.receive(argument)
            model.receive(argument)
        else:
            ring = Subscription.from_state(ring.get_state())
        ring.check_invariants(EVENTS_MAX)
        assert ring.last == model.last
        assert len(ring) == len(model.kept)
        assert ring.bytes == sum(len(data) for _, data in model.kept)
        assert ring.dropped_through == model.dropped_through
        assert ring.first_kept == (model.kept[0][0] if model.kept else model.last + 1)
        for after in range(ring.first_kept - 2, ring.last + 2):
            for count in (0, 1, 3, 99):
                kept = [bytes(data) for number, data in model.kept if number > after][:count]
                runs = ring.read(after, count)
                assert [bytes(data) for data in batch_of(runs).slices] == kept
                positions = [model.positions[number] for number, _ in model.kept if number > after][:count]
                assert positions_of(runs) == positions


def test_room_is_made_without_keeping_what_is_gone() -> None:
    ring = make(Overflow.DISCONNECT)
    for n in range(1, 1001):
        assert ring.add(one(event(n), n), EVENTS_MAX, 10_000)
        ring.receive(n - n % 2)
    assert len(ring._backlog._runs) <= 2


def test_a_state_holds_more_events_than_a_stranger_may_send_at_once() -> None:
    ring, half = make(Overflow.DISCONNECT), EventBatch.of([event(1)] * (BATCH_EVENTS_MAX // 2 + 1))
    for _ in range(2):
        assert ring.add(Run(half), 10_000, 10_000_000) == len(half)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(ring.get_state()), type=SubscriptionState)
    again = Subscription.from_state(state)
    assert len(again) == len(ring) == BATCH_EVENTS_MAX + 2
    assert batch_of(again.read(0, 10_000)) == batch_of(ring.read(0, 10_000))


def test_positions_that_were_written_where_there_is_no_log_are_none() -> None:
    ring = make(Overflow.DISCONNECT)
    ring.add(Run(EventBatch.of([event(1), event(2)])), EVENTS_MAX, 10_000)
    state = msgspec.structs.replace(ring.get_state(), positions=[0, 0])
    again = Subscription.from_state(state)
    assert positions_of(again.read(0, 2)) == []
    assert again.get_state() == ring.get_state()


def test_an_event_that_fits_exactly_is_kept() -> None:
    ring, data = make(Overflow.DISCONNECT), event(1)
    assert ring.add(one(data), 2, 2 * len(data))
    assert ring.add(one(data), 2, 2 * len(data))
    assert not ring.add(one(data), 2, 3 * len(data))
    assert not make(Overflow.BLOCK).add(one(data), 2, len(data) - 1)


@pytest.mark.parametrize(("field", "value"), [("bytes", 1), ("dropped_through", 1), ("dropped_through", -1)])
def test_an_invariant_that_does_not_hold_is_found(field: str, value: int) -> None:
    ring = make(Overflow.DISCONNECT)
    ring.add(one(event(1)), 2, 1000)
    ring.check_invariants(1)
    with pytest.raises(InvariantBroken, match="bounded"):
        ring.check_invariants(0)
    setattr(ring if field == "dropped_through" else ring._backlog, field, value)
    with pytest.raises(InvariantBroken):
        ring.check_invariants(1)
