"""Batches as a publisher makes them: the bytes that msgspec would write, and None for whatever has to be looked at."""

import enum
import gc
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import EventError
from holdfast.model import batch, portable_events
from holdfast.model.batch import EventBatch
from holdfast.model.event import (
    ATTRIBUTES_MAX,
    EVENT_BYTES_MAX,
    NAME_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    STRING_BYTES_MAX,
    UNENCODABLE,
    Event,
    check_event,
    encode_batch,
    encode_event,
)
from holdfast.model.values import Value
from holdfast.protocols.sessions.requests import NewEvent

NUMBERS = [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1]
NEGATIVE = [-1, -32, -33, -128, -129, -32_768, -32_769, -(2**31), -(2**31) - 1, -(2**63)]


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    __slots__ = ()


integers = st.sampled_from(NUMBERS + NEGATIVE) | st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=40) | st.sampled_from(["x" * n for n in (31, 32, 255, 256, 65_535, 65_536)])
values = integers | st.floats(allow_nan=False, allow_infinity=False) | texts | st.booleans()
names = st.text(min_size=1, max_size=20).filter(lambda name: name != "topic")
plain = st.builds(
    NewEvent,
    st.dictionaries(names, values, max_size=20),
    texts,
    st.binary(max_size=70) | st.sampled_from([b"x" * n for n in (255, 256, 65_535, 65_536)]),
    st.sampled_from([0, *NUMBERS, *NEGATIVE, 2**64 - 1]),
)
# What brokers refuse, and what they take though it is of an unusual type.
unusual_values: list[Any] = [
    float("nan"),
    float("inf"),
    2**63,
    -(2**63) - 1,
    2**64,
    None,
    "\ud800",
    b"x",
    [],
    Colour.RED,
]
unusual_values += [Text("t"), "x" * (STRING_BYTES_MAX + 1), "é" * (STRING_BYTES_MAX // 2 + 1)]
unusual_names: list[Any] = [
    "",
    "topic",
    "\ud800",
    1,
    Text("n"),
    "x" * (NAME_BYTES_MAX + 1),
    "é" * (NAME_BYTES_MAX // 2 + 1),
]
made: Any = NewEvent  # whatever its fields are
UNUSUAL = [
    *[made({"n": value}) for value in unusual_values],
    *[made({name: 1}) for name in unusual_names],
    made({f"a{n}": n for n in range(ATTRIBUTES_MAX + 1)}),
    *[made({}, topic=topic) for topic in (1, "\ud800", Text("t"), "x" * (STRING_BYTES_MAX + 1))],
    *[made({}, payload=payload) for payload in (None, "text", bytearray(b"x"), b"x" * (PAYLOAD_BYTES_MAX + 1))],
    *[made({}, lifetime=lifetime) for lifetime in (2**64, -(2**63) - 1, 1.5, None, True)],
    made(MappingProxyType({"n": 1})),
    made([("n", 1)]),
    made({f"a{n}": "x" * STRING_BYTES_MAX for n in range(16)}, "t" * STRING_BYTES_MAX),
]
fast: Any = vars(batch)["encode"]
COMPILED = fast is not portable_events.encode


def oracle(contents: list[NewEvent], first: int, publisher: str = "p", incarnation: int = 7) -> bytes:
    events = [
        Event(publisher, incarnation, n, new.topic, dict(new.attributes), new.payload, 99, new.lifetime)
        for n, new in enumerate(contents, first)
    ]
    for event in events:
        check_event(event, len(encode_event(event)))
    return bytes(encode_batch([encode_event(event) for event in events]))


@given(contents=st.lists(plain, max_size=20), first=st.sampled_from(NUMBERS))
@example(contents=[NewEvent({"n": n}) for n in range(20)], first=2**64 - 21)
@example(contents=[NewEvent({})] * 70_000, first=1)
@example(contents=[NewEvent({f"a{n}": n for n in range(ATTRIBUTES_MAX)}, payload=b"x" * PAYLOAD_BYTES_MAX)], first=1)
@example(
    contents=[NewEvent({"é" * (NAME_BYTES_MAX // 2): "é" * (STRING_BYTES_MAX // 2)}, "x" * STRING_BYTES_MAX)], first=1
)
def test_plain_contents_become_the_bytes_that_msgspec_writes(contents: list[NewEvent], first: int) -> None:
    found = EventBatch.made("p", 7, first, contents, 99)
    assert found is not None
    assert bytes(found.encoded) == oracle(contents, first)
    assert fast("p", 7, first, contents, 99) == portable_events.encode("p", 7, first, contents, 99)
    if len(contents) <= 8_192:
        read = EventBatch.read(found.encoded)
        whole = (read.offsets, read.expires, read.doubtful, read.publishers)
        assert (found.offsets, found.expires, found.doubtful, found.publishers) == whole


@pytest.mark.parametrize("place", range(len(UNUSUAL)))
def test_what_breaks_a_rule_or_is_unusual_is_left_to_who_looks_at_it_singly(place: int) -> None:
    contents: list[Any] = [NewEvent({"n": 1}), UNUSUAL[place], NewEvent({"n": 2})]
    for encode in (fast, portable_events.encode):
        assert encode("p", 7, 1, contents, 99) is None
        assert encode("p", 7, 1, contents[:1], 99) is not None


def test_what_is_left_to_be_looked_at_has_a_mistake_or_an_unusual_type() -> None:
    refused = []
    for new in UNUSUAL:
        try:
            oracle([new], 1)
        except UNENCODABLE:
            refused.append(new)
    accepted = [new for new in UNUSUAL if not any(new is one for one in refused)]
    assert len(accepted) == 7, "a member of an enumeration, 3 subclasses of text, 2 other mappings, a lifetime of True"


def test_an_event_of_exactly_as_many_bytes_as_are_allowed_is_plain_and_one_more_is_not() -> None:
    attributes = {f"{n:03}": "x" * STRING_BYTES_MAX for n in range(8)}

    def size(payload: int) -> int:
        return len(oracle([NewEvent(attributes, payload=b"x" * payload)], 1)) - 1

    payload = EVENT_BYTES_MAX - size(70_000) + 70_000
    assert payload <= PAYLOAD_BYTES_MAX
    with pytest.raises(EventError):
        size(payload + 1)
    for encode in (fast, portable_events.encode):
        assert encode("p", 7, 1, [NewEvent(attributes, payload=b"x" * payload)], 99) is not None
        assert encode("p", 7, 1, [NewEvent(attributes, payload=b"x" * (payload + 1))], 99) is None


class Restless:
    """Contents that change the list in which they are, while they are read."""

    topic = ""
    payload = b""
    lifetime = 0

    def __init__(self, contents: list[Any]) -> None:
        self.contents = contents

    @property
    def attributes(self) -> dict[str, Any]:
        self.contents.clear()
        gc.collect()
        return {"n": 1}


@pytest.mark.skipif(not COMPILED, reason="there is no compiled module")
def test_contents_that_change_while_they_are_read_are_left_to_be_looked_at() -> None:
    contents: list[Any] = []
    contents += [Restless(contents), NewEvent({"n": 1})]
    assert fast("p", 7, 1, contents, 99) is None


@pytest.mark.skipif(not COMPILED, reason="there is no compiled module")
def test_encoding_keeps_nothing() -> None:
    attributes: dict[str, Value] = {"n": 1, "text": "x" * 300}
    contents = [NewEvent(attributes, "t"), NewEvent(attributes, "t")]
    bad = [*contents, NewEvent({"n": float("nan")})]
    before = sys.getrefcount(attributes)
    for _ in range(10):
        assert fast("p", 7, 1, contents, 99) is not None
        assert fast("p", 7, 1, bad, 99) is None
    assert sys.getrefcount(attributes) == before
