"""Bytes from anyone are a value or a CodecError, at a cost that follows from their length, not from what they say."""

import contextlib
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.codec import CodecError
from holdfast.errors import EventError
from holdfast.model.event import decode_event, decode_events, slices_of
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from tests.codec.examples import BATCH, MESSAGE_EXAMPLES

BODIES = [MESSAGES.encode(example) for example in MESSAGE_EXAMPLES]
DEEP = b"\x91" * 200_000

HOSTILE = {
    "nothing": b"",
    "garbage": b"\xc1\xff\x00",
    "another shape": b"\xa5hello",
    "text that is not UTF-8": b"\x92\xa2\xff\xfe\xa2\xff\xfe",
    "a lone surrogate": b"\x92\x01\xa3\xed\xa0\x80",
    "nesting without end": DEEP,
    "nesting without end in a field to skip": b"\x9f" + b"\x01" * 14 + DEEP,
    "an array of 4 billion": b"\xdd\xff\xff\xff\xff",
    "a list of 4 billion": b"\x93\xdd\xff\xff\xff\xff",
    "a tuple of 4 billion": b"\x95\x01\x01\xdd\xff\xff\xff\xff",
    "a map of 4 billion": b"\x92\x01\xdf\xff\xff\xff\xff",
    "text of 4 GB": b"\x92\x01\xdb\xff\xff\xff\xff",
    "bytes of 4 GB": b"\x92\x01\xc6\xff\xff\xff\xff",
    "an extension of 4 GB": b"\x92\x01\xc9\xff\xff\xff\xff\x01",
}


def peak_while_decoding(kind: int, body: bytes) -> int:
    tracemalloc.start()
    try:
        MESSAGES.decode(kind, body)
    except CodecError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_refused_and_nothing_is_allocated_for_what_they_declare(body: bytes) -> None:
    refused = 0
    for kind in MESSAGES.types:
        assert peak_while_decoding(kind, body) < 50_000 + 4 * len(body)
        try:
            MESSAGES.decode(kind, body)
        except CodecError:
            refused += 1
    assert refused >= 10  # the others have no such field, and skip whatever is there


@pytest.mark.parametrize(("kind", "body"), BODIES, ids=[type(example).__name__ for example in MESSAGE_EXAMPLES])
def test_a_body_that_was_cut_is_refused(kind: int, body: bytes) -> None:
    for end in range(len(body)):
        with pytest.raises(CodecError):
            MESSAGES.decode(kind, body[:end])


@pytest.mark.parametrize(("kind", "body"), BODIES, ids=[type(example).__name__ for example in MESSAGE_EXAMPLES])
def test_bytes_behind_a_body_are_refused(kind: int, body: bytes) -> None:
    with pytest.raises(CodecError):
        MESSAGES.decode(kind, body + b"\x00")


@given(kind=st.integers(0, 40), body=st.binary(max_size=60))
@settings(max_examples=400)
def test_random_bytes_are_a_value_or_a_codec_error(kind: int, body: bytes) -> None:
    for registry in (MESSAGES, RECORDS):
        try:
            value = registry.decode(kind, body)
        except CodecError:
            continue
        assert type(value) is registry.types[kind]


@given(chosen=st.sampled_from(BODIES), place=st.integers(0, 10_000), byte=st.integers(0, 255), count=st.integers(0, 3))
@settings(max_examples=400)
def test_a_damaged_message_is_a_value_or_a_codec_error(
    chosen: tuple[int, bytes], place: int, byte: int, count: int
) -> None:
    kind, body = chosen
    place %= len(body)
    damaged = body[:place] + bytes([byte]) * count + body[place + 1 :]
    with contextlib.suppress(CodecError):
        assert type(MESSAGES.decode(kind, damaged)) is MESSAGES.types[kind]


EVENTS_OF_NOBODY = {
    "text that is not UTF-8": b"\x91\x95\xa1\xff\x01\x01\xa0\x80",
    "nesting without end": b"\x91\x99\xa1p\x01\x01\xa0\x80\xc4\x00\x00\x00" + DEEP,
    "attributes of 4 billion": b"\x91\x95\xa1p\x01\x01\xa0\xdf\xff\xff\xff\xff",
    "events of 4 billion": b"\xdd\xff\xff\xff\xff",
    "nothing": b"",
    "nil": b"\xc0",
    "an event of no fields": b"\x91\x90",
    "a value that is a list": b"\x91\x95\xa1p\x01\x01\xa0\x81\xa1a\x91\x01",
}


@pytest.mark.parametrize("batch", EVENTS_OF_NOBODY.values(), ids=EVENTS_OF_NOBODY)
def test_bytes_that_are_no_events_are_an_event_error(batch: bytes) -> None:
    with pytest.raises(EventError, match="bytes are no event"):
        decode_events(msgspec.Raw(batch))
    with pytest.raises(EventError, match="bytes are no event"):
        decode_event(msgspec.Raw(batch[1:]))


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
@settings(max_examples=300)
def test_a_damaged_batch_is_events_or_an_event_error(place: int, byte: int) -> None:
    body = bytes(BATCH)
    place %= len(body)
    damaged = msgspec.Raw(body[:place] + bytes([byte]) + body[place + 1 :])
    try:
        events, slices = decode_events(damaged), slices_of(damaged)
    except EventError:
        return
    assert len(events) == len(slices)
