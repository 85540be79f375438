"""Events as a program gets them: their fields, read when they are asked for, are those that msgspec decodes."""

import copy
import gc
import pickle
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import portable_fields, received
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, decode_event, encode_batch, encode_event
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent, ReceivedEvents
from tests.sessions.bench import batch

fast: Any = vars(received)["received"]
Fields: Any = vars(received)["EventFields"]
FIELDS = Event.__struct_fields__
COMPILED = Fields.__module__ != portable_fields.EventFields.__module__

integers = st.integers(-(2**63), 2**64 - 1)
values = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=40) | st.booleans()
events = st.builds(
    Event,
    st.text(max_size=40),
    integers,
    integers,
    st.text(max_size=40),
    st.dictionaries(st.text(max_size=40) | st.sampled_from(["n", "price"]), values, max_size=20),
    st.binary(max_size=300),
    integers,
    integers,
)


class Portable(portable_fields.EventFields):
    __slots__ = ()


class Fast(Fields):  # type: ignore[misc]
    __slots__ = ()


PAIR: Any = [(fast, Fast), (portable_fields.received, Portable)]


def both(encoded: EventBytes, log: str = "", *said: Sequence[int]) -> list[list[Any]]:
    """What the compiled module makes of a batch, and what its twin does."""
    read = EventBatch.read(encoded)
    positions, attempts = said or ((), ())
    return [make(kind, read.data, read.offsets, log, positions, attempts) for make, kind in PAIR]


@given(st.lists(events, max_size=8), st.permutations(range(len(FIELDS))))
def test_fields_are_those_that_were_encoded_in_whatever_order_they_are_asked_for(
    sent: list[Event], order: list[int]
) -> None:
    for found in both(encode_batch([encode_event(event) for event in sent])):
        for event, one in zip(sent, found, strict=True):
            for place in (*order, *order):
                wanted, got = getattr(event, FIELDS[place]), getattr(one, FIELDS[place])
                assert (got, type(got)) == (wanted, type(wanted))
            assert list(one.attributes) == list(event.attributes)
            assert (one.log, one.number, one.attempt) == (None, 0, 1)


# msgpack that msgspec would not write: longer forms than need be, a name twice, fields left out, floats of 32 bits.
FORMS = [
    b"\x95\xa1p\x01\x02\xa0\x80",
    b"\xdc\x00\x05\xd9\x01p\xcd\x00\x01\xce\x00\x00\x00\x02\xda\x00\x00\xde\x00\x01\xdb\x00\x00\x00\x01n\xd3\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x98\xa1p\x01\x02\xa1t\x83\xa1n\x01\xa1m\x02\xa1n\xca\x3f\x80\x00\x00\xc6\x00\x00\x00\x01x\xd0\x05\xd1\x00\x07",
    b"\x96\xa1p\xe0\xff\xa1t\x81\xa1n\xc3\xc5\x00\x02xy",
    b"\x97\xa1p\x01\x02\xa1t\x81\xa0\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc4\x00\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_msgpack_are_read(form: bytes) -> None:
    event = decode_event(EventBytes(form))
    for (found,) in both(EventBytes(b"\x91" + form)):
        assert [getattr(found, name) for name in FIELDS] == [getattr(event, name) for name in FIELDS]
        assert [type(value) for value in found.attributes.values()] == [
            type(value) for value in event.attributes.values()
        ]


def test_positions_and_attempts_are_of_each_event_or_of_none() -> None:
    for found in both(batch(1, 2), "disk", range(7, 9), [1, 3]):
        assert [(one.sequence, one.log, one.number, one.attempt) for one in found] == [
            (1, "disk", 7, 1),
            (2, "disk", 8, 3),
        ]
    bad: list[tuple[list[int], list[int]]] = [([7], []), ([], [1, 2, 3])]
    for said in bad:
        for make, kind in PAIR:
            read = EventBatch.read(batch(1, 2))
            with pytest.raises(ValueError, match="as many as the events"):
                make(kind, read.data, read.offsets, "disk", *said)


EVENT = ReceivedEvent("p", 1, 2, "t", {"n": 1, "x": 1.5}, b"\x00", 10**9, 5, Position("disk", 7), 3)


def test_a_received_event_is_what_it_was_made_of() -> None:
    assert (EVENT.id, EVENT.deadline, EVENT.position, EVENT.attempt) == ("p/1/2", 10**9 + 5, Position("disk", 7), 3)
    plain = ReceivedEvent("p", 1, 2, "t", {})
    assert (plain.payload, plain.published_at, plain.lifetime, plain.position, plain.attempt) == (b"", 0, 0, None, 1)
    assert plain.deadline == 0
    assert repr(EVENT) == (
        "ReceivedEvent(publisher='p', incarnation=1, sequence=2, topic='t', attributes={'n': 1, 'x': 1.5}, "
        "payload=b'\\x00', published_at=1000000000, lifetime=5, position=Position(log='disk', number=7), attempt=3)"
    )


def test_received_events_are_equal_by_all_of_their_fields() -> None:
    fields = EVENT._values()
    assert ReceivedEvent(*fields) == EVENT
    others = ["q", 2, 3, "u", {"n": 1}, b"", 1, 6, Position("disk", 8), 4]
    for place, other in enumerate(others):
        assert ReceivedEvent(*[*fields[:place], other, *fields[place + 1 :]]) != EVENT
    assert Event(*fields[:8]) != EVENT
    with pytest.raises(TypeError, match="unhashable"):
        hash(EVENT)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda event: pickle.loads(pickle.dumps(event))])
def test_a_received_event_can_be_copied_and_pickled(twin: Any) -> None:
    found = twin(EVENT)
    assert (found, type(found)) == (EVENT, ReceivedEvent)


@pytest.mark.parametrize("name", [*FIELDS, "position", "attempt", "id", "deadline", "unknown"])
def test_nobody_changes_a_received_event(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(EVENT, name, 1)


def test_a_received_event_matches_patterns_by_its_fields() -> None:
    match EVENT:
        case ReceivedEvent(publisher, _, sequence, topic="t"):
            assert (publisher, sequence) == ("p", 2)
        case _:
            raise AssertionError


def test_parts_of_what_came_together_keep_their_positions_and_attempts() -> None:
    whole = ReceivedEvents(EventBatch.read(batch(1, 2, 3, 4)), "disk", range(11, 15), [1, 2, 3, 4])
    assert [(one.sequence, one.number, one.attempt) for one in whole.part(1, 3)] == [(2, 12, 2), (3, 13, 3)]
    assert [(one.sequence, one.number, one.attempt) for one in whole.take([0, 3])] == [(1, 11, 1), (4, 14, 4)]
    assert whole.part(0, 4) is whole
    assert whole.take(range(4)) is whole
    plain = ReceivedEvents(EventBatch.read(batch(1, 2, 3)))
    assert [(one.sequence, one.position) for one in plain.part(1, 3).take([1])] == [(3, None)]


@pytest.mark.skipif(not COMPILED, reason="there is no compiled module")
def test_an_event_that_is_kept_keeps_no_other() -> None:
    large = encode_batch([encode_event(Event("p", 1, n, "", {}, b"x" * 100_000)) for n in (1, 2)])
    read = EventBatch.read(large)
    before = sys.getrefcount(read.data)
    kept = fast(ReceivedEvent, read.data, read.offsets, "", (), ())[1]
    after = sys.getrefcount(read.data)
    assert (after, kept.sequence) == (before, 2)
    assert 100_000 < sys.getsizeof(kept) < 101_000


@pytest.mark.skipif(not COMPILED, reason="there is no compiled module")
def test_what_is_no_event_is_refused_and_nothing_is_read_beyond_it() -> None:
    for data in (b"", b"\x95", b"\x98\xa1p\x01\x02\xa0\x81", b"\xc1", b"\x98\xa1p\x01\x02\xa0\x80\xc6\xff\xff\xff\xff"):
        (event,) = fast(ReceivedEvent, data, (0, len(data)), "", (), ())
        with pytest.raises(ValueError, match="bytes are no events"):
            _ = event.payload
    for offsets in ((0, 9), (2, 1), (-1, 0), ("a", 1), ()):
        with pytest.raises(ValueError, match=r"offset|never empty"):
            fast(ReceivedEvent, b"\x95", offsets, "", (), ())
    for kind in (object, Event, 5):
        with pytest.raises(TypeError):
            fast(kind, b"", (0,), "", (), ())
    with pytest.raises(TypeError):
        Fields()


class Roomy(ReceivedEvent):
    """A subclass of somebody's, with a place for anything: one that the collector follows."""


def test_who_derives_a_type_of_his_own_gets_objects_of_it() -> None:
    read = EventBatch.read(batch(1, 2))
    made: list[Any] = fast(Roomy, read.data, read.offsets, "", (), ())
    made[0].more = made  # a cycle
    assert made[0].sequence == 1
    del made
    gc.collect()


@pytest.mark.skipif(not COMPILED, reason="there is no compiled module")
def test_reading_keeps_nothing() -> None:
    log, position, attempt = "a log " + str(1), 10**20, 10**19
    read = EventBatch.read(encode_batch([encode_event(Event("p", 1, n, "t", {"n": 10**10 + n})) for n in range(100)]))
    before = [sys.getrefcount(one) for one in (log, position, attempt, read.data, read.offsets)]
    for _ in range(3):
        found = fast(ReceivedEvent, read.data, read.offsets, log, [position] * 100, [attempt] * 100)
        assert all(one == ReceivedEvent(*one._values()) for one in found)
        del found
    assert [sys.getrefcount(one) for one in (log, position, attempt, read.data, read.offsets)] == before


def test_names_that_share_a_place_are_told_apart() -> None:
    """More names than are remembered, twice: whichever shares a place with another is made anew."""
    names = [f"name-{n}" for n in range(2_000)]
    sent = [Event("p", 1, n, f"topic-{n}", {name: n}) for n, name in enumerate(names)]
    encoded = encode_batch([encode_event(event) for event in sent])
    for _ in range(2):
        for found in both(encoded):
            assert [(one.topic, one.attributes) for one in found] == [(one.topic, one.attributes) for one in sent]


def test_what_is_decoded_singly_is_what_msgspec_decodes_of_the_array() -> None:
    encoded = batch(*range(1, 300))
    wanted = msgspec.msgpack.decode(encoded)
    for found in both(encoded):
        assert [[getattr(one, name) for name in FIELDS] for one in found] == wanted
