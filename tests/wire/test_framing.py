"""Frames are cut out of any stream of reads, and nothing is kept or allocated for what a length only claims."""

import operator
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProtocolError
from holdfast.schemes.catalogue import CATALOGUE
from holdfast.wire.framing import FrameReader, encode_frames
from holdfast.wire.limits import WireLimits

LIMITS = WireLimits(frame_bytes=1000, control_frame_bytes=100)
LARGE, SMALL = min(CATALOGUE.large_kinds), 7


@given(
    st.lists(st.tuples(st.sampled_from([LARGE, SMALL]), st.binary(max_size=90)), max_size=12),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_frames_come_out_whole_however_they_are_read(frames: list[tuple[int, bytes]], sizes: list[int]) -> None:
    data, reader, found, place = encode_frames(frames), FrameReader(LIMITS, CATALOGUE.large_kinds), [], 0
    while data:
        size = sizes[place % len(sizes)]
        found += reader.feed(data[:size])
        data, place = data[size:], place + 1
    assert found == frames
    assert reader.waiting == 0


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b"\xff\xff\xff\xff\x04", "a frame of 4294967295 bytes is beyond frame_bytes, 1000"),
        (b"\xff\xff\xff\xff\x07", "a control frame of 4294967295 bytes is beyond control_frame_bytes, 100"),
        (b"\x00\x00\x00\x65\x07", "a control frame of 101 bytes is beyond control_frame_bytes, 100"),
        (b"\x00\x00\x03\xe9\x04", "a frame of 1001 bytes is beyond frame_bytes, 1000"),
        (b"\x00\x00\x00\x00\x07", "a frame of no bytes has no kind"),
    ],
)
def test_a_frame_that_is_too_long_is_refused_when_its_length_is_seen(head: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        FrameReader(LIMITS, CATALOGUE.large_kinds).feed(head)


def test_nothing_is_allocated_for_what_a_length_claims() -> None:
    reader = FrameReader(WireLimits(), CATALOGUE.large_kinds)
    tracemalloc.start()
    assert reader.feed((1024 * 1024).to_bytes(4, "big") + bytes([LARGE])) == []
    assert tracemalloc.get_traced_memory()[1] < 10_000
    tracemalloc.stop()


def test_large_frames_are_for_events_only() -> None:
    frame = encode_frames([(LARGE, bytes(500))])
    assert FrameReader(LIMITS, CATALOGUE.large_kinds).feed(frame) == [(LARGE, bytes(500))]
    with pytest.raises(ProtocolError):
        FrameReader(LIMITS, CATALOGUE.large_kinds).feed(encode_frames([(SMALL, bytes(500))]))


def test_a_large_frame_in_small_pieces_is_not_copied_for_each_of_them() -> None:
    """60 MiB took nine seconds of the event loop, and a byte more cost as much as all bytes before it."""
    reader = FrameReader(WireLimits(frame_bytes=1 << 20), CATALOGUE.large_kinds)
    large = encode_frames([(min(CATALOGUE.large_kinds), bytes(100_000)), (1, b"next")])
    pieces = [large[start : start + 10_000] for start in range(0, len(large), 10_000)]
    for piece in pieces[:-1]:
        assert reader.feed(piece) == []
    assert all(map(operator.is_, reader._pieces[1:], pieces[1:-1]))
    assert reader.waiting == 100_000
    assert reader.feed(pieces[-1]) == [(min(CATALOGUE.large_kinds), bytes(100_000)), (1, b"next")]
    assert reader.waiting == 0


def test_a_large_frame_in_tiny_pieces_takes_no_more_memory_than_it_has_bytes() -> None:
    reader = FrameReader(WireLimits(frame_bytes=1 << 20), CATALOGUE.large_kinds)
    large = encode_frames([(min(CATALOGUE.large_kinds), bytes(range(250)) * 100)])
    for start in range(len(large) - 1):
        assert reader.feed(large[start : start + 1]) == []
        assert sum(map(sys.getsizeof, reader._pieces)) < 1.25 * start + 100
    assert reader.feed(large[-1:]) == [(min(CATALOGUE.large_kinds), bytes(range(250)) * 100)]
