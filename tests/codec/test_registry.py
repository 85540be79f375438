"""A registry is closed: it has a number for each of its types, and reads nothing else."""

import msgspec
import pytest

from holdfast.codec import CodecError, Registry
from holdfast.kernel.messages import Message
from holdfast.protocols.sessions.messages import Dropped, Ping, Pong, SessionOpened
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from tests.codec.examples import MESSAGE_EXAMPLES, RECORD_EXAMPLES, examples_of, plain


class Stranger(Message, frozen=True):
    pass


@pytest.mark.parametrize("kind", [0, -1, 256])
def test_a_number_outside_a_byte_is_refused(kind: int) -> None:
    with pytest.raises(ValueError, match=f"Ping has number {kind}"):
        Registry[Message]({kind: Ping})


def test_a_type_with_two_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="two numbers"):
        Registry[Message]({1: Ping, 2: Ping})


def test_numbers_one_and_255_are_allowed() -> None:
    assert Registry[Message]({1: Ping, 255: Pong}).encode(Pong()) == (255, b"\x90")


def test_a_type_that_is_not_registered_is_not_encoded() -> None:
    with pytest.raises(KeyError):
        MESSAGES.encode(Stranger())


@pytest.mark.parametrize("kind", [0, 15, 99, 255, 256, -1])
def test_an_unknown_number_is_a_codec_error(kind: int) -> None:
    with pytest.raises(CodecError, match=f"no type with the number {kind}"):
        MESSAGES.decode(kind, b"\x90")


def test_whatever_is_encoded_is_decoded_to_the_same() -> None:
    for example in examples_of(MESSAGE_EXAMPLES).values():
        assert plain(MESSAGES.decode(*MESSAGES.encode(example))) == plain(example)
    for record in examples_of(RECORD_EXAMPLES).values():
        assert plain(RECORDS.decode(*RECORDS.encode(record))) == plain(record)


def test_fields_that_older_bytes_do_not_have_get_their_defaults() -> None:
    assert MESSAGES.decode(16, msgspec.msgpack.encode([5, 4, 3, 2])) == SessionOpened(5, 4, 3, 2)


def test_fields_that_newer_bytes_have_are_skipped() -> None:
    assert MESSAGES.decode(26, msgspec.msgpack.encode([1, 2, [], {"new": [3]}, None])) == Dropped(1, 2)
