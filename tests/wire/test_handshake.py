"""A handshake says who is there, of which role and version, or refuses with a reason; in any cutting of the bytes."""

import pytest

from holdfast.errors import HandshakeRefused, ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.protocols.client_catalogue import PROTOCOL_VERSIONS
from holdfast.wire.framing import encode_frames
from holdfast.wire.handshake import (
    HANDSHAKE,
    MAGIC,
    MAGIC_BYTES,
    Dialling,
    Hello,
    HelloAccepted,
    HelloRefused,
    LinkClosed,
    Listening,
    Peer,
    Reason,
)
from holdfast.wire.limits import WireLimits

LIMITS = WireLimits()


def listening(role: Role = Role.CLIENT) -> Listening:
    return Listening((role,), "b1", 5, LIMITS, PROTOCOL_VERSIONS)


def hello(**changes: object) -> bytes:
    fields = {"versions": (2,), "name": "c1", "incarnation": 3, **changes}
    return MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(Hello(**fields))])  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_both_sides_learn_who_the_other_is(step: int) -> None:
    dialling, listener = Dialling(Role.CLIENT, "c1", 3, LIMITS, PROTOCOL_VERSIONS), listening()
    data = dialling.opening + b"more"
    peer, rest = None, b""
    while data and peer is None:
        peer, rest = listener.feed(data[:step])
        data = data[step:]
    assert peer == Peer(Role.CLIENT, "c1", 3, 2)
    assert rest + data == b"more"
    assert dialling.feed(listener.answer + b"behind") == (Peer(Role.BROKER, "b1", 5, 2), b"behind")


@pytest.mark.parametrize(
    ("data", "reason", "problem"),
    [
        (b"GET / HTTP/1.1\r\n", "protocol", "this is no Holdfast handshake"),
        (MAGIC[Role.BROKER] + b"xxxx", "role", "this listener is for clients, not for brokers"),
        (hello(versions=(7, 8)), "version", "versions 7, 8 were offered; this broker speaks 2"),
        # Which has never heard of the message that brings events.
        (hello(versions=(1,)), "version", "versions 1 were offered; this broker speaks 2"),
        (hello(versions=()), "version", "versions none were offered; this broker speaks 2"),
        (hello(name=""), "name", "'' is no name"),
        (hello(name="a/b"), "name", "'a/b' is no name"),
        (hello(name="*"), "name", "'*' is no name"),
        (hello(name="x" * 3000), "name", "'xxx"),
        (MAGIC[Role.CLIENT] + encode_frames([(1, b"\x90")]), "protocol", "there is no type with the number 1"),
        (
            MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(HelloAccepted(1, "b", 1))]),
            "protocol",
            "HelloAccepted is not for a listener",
        ),
        (
            MAGIC[Role.CLIENT] + b"\xff\xff\xff\xff\xf0",
            "protocol",
            "a handshake of 4294967295 bytes is beyond handshake_bytes, 4096",
        ),
        (MAGIC[Role.CLIENT] + b"\x00\x00\x0f\xff\xf0" + bytes(5000), "protocol", "bytes are no Hello"),
        (MAGIC[Role.CLIENT] + bytes(5), "protocol", "a handshake of 0 bytes is beyond handshake_bytes, 4096"),
    ],
)
def test_what_is_not_wanted_is_refused_with_a_reason_that_the_other_side_can_read(
    data: bytes, reason: str, problem: str
) -> None:
    listener = listening()
    with pytest.raises(HandshakeRefused) as caught:
        listener.feed(data)
    assert caught.value.reason == reason
    assert caught.value.problem.startswith(problem)
    with pytest.raises(HandshakeRefused) as told:
        Dialling(Role.CLIENT, "c1", 3, LIMITS, PROTOCOL_VERSIONS).feed(listener.answer)
    assert (told.value.reason, told.value.problem) == (reason, caught.value.problem)


def test_a_large_message_right_behind_the_handshake_is_not_part_of_it() -> None:
    large = encode_frames([(4, bytes(100_000))])
    assert listening().feed(hello() + large) == (Peer(Role.CLIENT, "c1", 3, 2), large)


def test_an_answer_in_a_version_that_was_not_offered_is_a_breach() -> None:
    answer = encode_frames([HANDSHAKE.encode(HelloAccepted(9, "b1", 1))])
    with pytest.raises(ProtocolError, match="the other side chose version 9, which was not offered"):
        Dialling(Role.CLIENT, "c1", 3, LIMITS, PROTOCOL_VERSIONS).feed(answer)


def test_a_broker_on_the_clients_listener_is_refused_and_the_other_way_round() -> None:
    for role, other in ((Role.CLIENT, Role.BROKER), (Role.BROKER, Role.CLIENT)):
        with pytest.raises(HandshakeRefused, match="this listener is for"):
            listening(role).feed(Dialling(other, "x", 1, LIMITS, PROTOCOL_VERSIONS).opening)


def test_a_listener_for_several_roles_tells_them_apart() -> None:
    for role in (Role.CLIENT, Role.OPERATOR):
        listener = Listening((Role.CLIENT, Role.OPERATOR), "b1", 5, LIMITS, PROTOCOL_VERSIONS)
        peer, _ = listener.feed(Dialling(role, "x", 3, LIMITS, PROTOCOL_VERSIONS).opening)
        assert peer == Peer(role, "x", 3, 2)
    listener = Listening((Role.CLIENT, Role.OPERATOR), "b1", 5, LIMITS, PROTOCOL_VERSIONS)
    with pytest.raises(HandshakeRefused, match="this listener is for clients and operators, not for brokers"):
        listener.feed(Dialling(Role.BROKER, "x", 3, LIMITS, PROTOCOL_VERSIONS).opening)


def test_brokers_of_two_schemes_do_not_come_together_and_both_hear_why() -> None:
    listener = Listening((Role.BROKER,), "b1", 5, LIMITS, PROTOCOL_VERSIONS, "tree")
    dialling = Dialling(Role.BROKER, "b2", 3, LIMITS, PROTOCOL_VERSIONS, "paxos")
    with pytest.raises(HandshakeRefused) as caught:
        listener.feed(dialling.opening)
    assert (caught.value.reason, caught.value.problem) == ("scheme", "b2 is of the scheme 'paxos', and b1 of 'tree'")
    with pytest.raises(HandshakeRefused, match="b2 is of the scheme 'paxos', and b1 of 'tree'"):
        dialling.feed(listener.answer)


@pytest.mark.parametrize(("own", "other"), [("tree", "tree"), ("tree", ""), ("", "tree")])
def test_a_broker_that_names_no_scheme_may_be_of_any(own: str, other: str) -> None:
    listener = Listening((Role.BROKER,), "b1", 5, LIMITS, PROTOCOL_VERSIONS, own)
    peer, _ = listener.feed(Dialling(Role.BROKER, "b2", 3, LIMITS, PROTOCOL_VERSIONS, other).opening)
    assert peer == Peer(Role.BROKER, "b2", 3, 2)


def test_only_a_few_characters_are_repeated_of_what_a_stranger_calls_its_scheme() -> None:
    listener = Listening((Role.BROKER,), "b1", 5, LIMITS, PROTOCOL_VERSIONS, "tree")
    with pytest.raises(HandshakeRefused) as caught:
        listener.feed(Dialling(Role.BROKER, "b2", 3, LIMITS, PROTOCOL_VERSIONS, "x" * 3000).opening)
    assert len(caught.value.problem) < 200


@pytest.mark.parametrize("own", [Role.BROKER, Role.CLIENT])
def test_whoever_answers_says_what_it_is_and_of_which_scheme(own: Role) -> None:
    listener = Listening((Role.CLIENT,), "x", 5, LIMITS, PROTOCOL_VERSIONS, "paxos", own)
    dialling = Dialling(Role.CLIENT, "c1", 3, LIMITS, PROTOCOL_VERSIONS)
    listener.feed(dialling.opening)
    assert dialling.feed(listener.answer) == (Peer(own, "x", 5, 2, "paxos"), b"")


def test_an_answer_by_an_operator_is_a_breach_for_operators_take_no_links() -> None:
    answer = encode_frames([HANDSHAKE.encode(HelloAccepted(2, "b1", 1, role=Role.OPERATOR))])
    with pytest.raises(ProtocolError, match="an operator takes no links"):
        Dialling(Role.CLIENT, "c1", 3, LIMITS, PROTOCOL_VERSIONS).feed(answer)


# How each was written when it got the fields that it has; a line is added when it gets another, and none is changed.
GOLDEN = [
    (Hello((1,), "c1", 3), 240, "959101a263310390c400"),
    (Hello((1,), "b2", 3, scheme="tree"), 240, "969101a262320390c400a474726565"),
    (HelloAccepted(1, "b1", 5), 241, "9401a262310590"),
    (HelloAccepted(1, "b1", 5, (), "tree"), 241, "9601a262310590a474726565a662726f6b6572"),
    (HelloAccepted(1, "c1", 5, (), "tree", Role.CLIENT), 241, "9601a263310590a474726565a6636c69656e74"),
    (HelloRefused(Reason.LIMIT, "no"), 242, "92a56c696d6974a26e6f"),
    (LinkClosed(Reason.BREACH, "no"), 243, "92a6627265616368a26e6f"),
]


@pytest.mark.parametrize(("said", "kind", "body"), GOLDEN, ids=[type(line[0]).__name__ for line in GOLDEN])
def test_golden_bytes_of_a_handshake_are_read_as_what_they_were_written_for(
    said: Message, kind: int, body: str
) -> None:
    assert HANDSHAKE.decode(kind, bytes.fromhex(body)) == said


def test_a_handshake_is_written_as_the_newest_golden_bytes_say() -> None:
    newest = {type(said): (said, kind, bytes.fromhex(body)) for said, kind, body in GOLDEN}
    assert set(newest) == set(HANDSHAKE.kinds)
    assert [HANDSHAKE.encode(said) for said, *_ in newest.values()] == [line[1:] for line in newest.values()]


def test_magic_words_are_of_one_length() -> None:
    assert {len(word) for word in MAGIC.values()} == {MAGIC_BYTES}
