"""Batches against the obvious model: lists of events, each with its bytes, and whether it breaks a rule."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import EventError
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, check_event, encode_batch, encode_event
from tests.index.hostile import OURS, PORTABLE


class One(NamedTuple):
    event: Event
    data: bytes

    @property
    def is_doubtful(self) -> bool:
        try:
            check_event(self.event, len(self.data))
        except EventError:
            return True
        return False


def one(publisher: str, sequence: int, topic: str, name: str, size: int, lifetime: int) -> One:
    event = Event(publisher, 1, sequence, topic, {name: 1}, b"x" * size, 5, lifetime)
    return One(event, bytes(encode_event(event)))


EVENTS = st.lists(
    st.builds(
        one,
        st.sampled_from("pq"),
        st.integers(0, 6),
        st.sampled_from(["", "t", "u"]),
        st.sampled_from(["x", "x", "x", "", "topic"]),
        st.integers(0, 40),
        st.sampled_from([0, 0, 0, 3, 9]),
    ),
    max_size=40,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "part", "behind", "joined", "apart", "read"]), st.integers(0, 45), st.integers(0, 45)
    ),
    max_size=8,
)


def check(batch: EventBatch, model: list[One]) -> None:
    assert len(batch) == len(model)
    assert [bytes(slice) for slice in batch.slices] == [found.data for found in model]
    assert batch.events == [found.event for found in model]
    assert [batch.event(row) for row in range(len(batch))] == batch.events
    assert bytes(batch.encoded) == bytes(encode_batch([EventBytes(found.data) for found in model]))
    assert batch.bytes == sum(len(found.data) for found in model)
    assert list(batch.doubtful) == [row for row, found in enumerate(model) if found.is_doubtful]
    assert [row for row in range(len(batch)) if batch.problem(row)] == list(batch.doubtful)
    deadlines = [found.event.deadline for found in model]
    assert batch.deadlines == (deadlines if any(deadlines) else None)
    assert batch.soonest == min(filter(None, deadlines), default=0)
    assert batch.expires or not any(deadlines)
    assert batch.ids == [found.event.id for found in model]
    assert batch.topics() == list(dict.fromkeys(found.event.topic for found in model))
    for start in range(len(model)):
        for most in (0, 30, 100, 10**6):
            row, size = start, 0
            while row < len(model) and size + len(model[row].data) <= most:
                size += len(model[row].data)
                row += 1
            assert batch.rows_within(start, most) == row
            assert batch.bytes_of(start, row) == size


@settings(max_examples=300)
@given(events=EVENTS, steps=STEPS)
def test_a_batch_that_is_cut_and_joined_is_the_list_that_is_cut_and_joined(
    events: list[One], steps: list[tuple[str, int, int]]
) -> None:
    model = events
    batch = EventBatch.read(encode_batch([EventBytes(found.data) for found in events]))
    check(batch, model)
    for step, first, second in steps:
        match step:
            case "take":
                rows = sorted(random.Random(100 * first + second).sample(range(len(model)), min(second, len(model))))
                batch, model = batch.take(rows), [model[row] for row in rows]
            case "part":
                start, end = min(first, second, len(model)), max(first, second)
                batch, model = batch.part(start, end), model[start:end]
            case "behind":
                batch, model = batch.behind(first), model[first:]
            case "joined" if len(model) < 60:
                middle = min(first, len(model))
                parts = [(middle, len(model)), (0, middle), (0, 0), (0, len(model))]
                batch = EventBatch.joined([batch.part(*part) for part in parts])
                model = model[middle:] + model[:middle] + model
            case "apart":
                batch = batch.apart()
            case _:
                batch = EventBatch.read(batch.encoded)
        check(batch, model)


@given(events=EVENTS, stray=st.binary(max_size=9))
def test_what_lies_around_the_events_is_of_no_interest(events: list[One], stray: bytes) -> None:
    sound = EventBatch.read(encode_batch([EventBytes(found.data) for found in events]))
    data = stray + bytes(sound.data) + stray
    offsets = tuple([len(stray) + offset for offset in sound.offsets])
    check(EventBatch(EventBytes(data), offsets, True, sound.doubtful), events)
    for name in ("deadlines", "publishers", "topics"):
        assert OURS[name](data, offsets) == PORTABLE[name](data, offsets)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_headers_are_the_shortest_that_hold_the_count(count: int) -> None:
    data = bytes(encode_event(Event("p", 1, 1, "", {})))
    batch = EventBatch.of([EventBytes(data)] * count)
    wanted = bytes(encode_batch([EventBytes(data)] * count))
    for ways in (OURS, PORTABLE):
        assert ways["join"]([(batch.data, batch.offsets)]) == (wanted, batch.offsets)
        halves = [(batch.data, batch.offsets[: count // 2 + 1]), (batch.data, batch.offsets[count // 2 :])]
        assert ways["join"](halves) == (wanted, batch.offsets)
        assert ways["take"](batch.data, batch.offsets, range(count)) == (wanted, batch.offsets)
