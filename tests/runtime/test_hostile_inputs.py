"""What hostile peers send to a real broker process harms no one else, and makes it neither fall nor grow.

Tests are named by their number in the list of hostile inputs that the project keeps; docs/limits.md has the limits. The
common oracle is `Watch`. Inputs 11 to 15 and 23 to 25 concern peers, credentials and groups of brokers.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator

import msgspec
import pytest

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.protocols.sessions.messages import (
    SESSION_MESSAGES,
    Accepted,
    Advertise,
    AskApplication,
    CloseSession,
    Deliver,
    OpenSession,
    Overflow,
    Ping,
    Pong,
    Progress,
    Publish,
    Refusal,
    SessionClosed,
    SessionOpened,
    Subscribe,
    Subscribed,
    SubscribeRefused,
    Unadvertise,
    Unsubscribe,
)
from holdfast.schemes.catalogue import MESSAGES
from holdfast.wire.handshake import MAGIC, HelloRefused, LinkClosed, Reason
from tests.codec.examples import MESSAGE_EXAMPLES
from tests.runtime.broker_process import BrokerProcess
from tests.runtime.hostile import Bystanders, RawPeer, Watch, events, frame, hello, message, opened, publish
from tests.tiers import one_always

PUBLISH, SUBSCRIBE, OPEN_SESSION, PROGRESS = (MESSAGES.kinds[t] for t in (Publish, Subscribe, OpenSession, Progress))
FROM_CLIENTS = {
    OpenSession, Subscribe, Unsubscribe, Publish, Progress, CloseSession, Ping, Advertise, Unadvertise, AskApplication,
}  # fmt: skip
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site"), log="debug") as process:
        yield process
        assert process.stop() == 0


@pytest.fixture(scope="module")
def bystanders(broker: BrokerProcess) -> Iterator[Bystanders]:
    pair = Bystanders(broker.url)
    yield pair
    pair.stop()
    assert not pair.problem


@pytest.fixture
def watch(broker: BrokerProcess, bystanders: Bystanders) -> Iterator[Watch]:
    with Watch(broker, bystanders) as watch:
        yield watch


def refusal(port: int, data: bytes) -> tuple[Reason, str]:
    """Why the broker closes a connection on which this is said; asserts that it does, and says so."""
    with RawPeer(port, data) as peer:
        last = peer.until_closed()
    assert isinstance(last, HelloRefused | LinkClosed), last
    return last.reason, last.problem


def attempts(port: int, data: bytes, reason: Reason, problem: str) -> None:
    """The same again and again gets the same answer."""
    for _ in range(3):
        assert refusal(port, data) == (reason, problem)


# ------------------------------------------------------------------------------------------------ 1 to 7: bytes, sizes
@pytest.mark.parametrize(
    ("data", "reason", "problem"),
    [
        (b"\xff\xff\xff\xff", Reason.PROTOCOL, "this is no Holdfast handshake"),
        (
            MAGIC[Role.CLIENT] + b"\xff\xff\xff\xff\xf0",
            Reason.PROTOCOL,
            "a handshake of 4294967295 bytes is beyond handshake_bytes, 4096",
        ),
        (
            opened() + b"\xff\xff\xff\xff" + bytes([PUBLISH]),
            Reason.FRAME,
            "a frame of 4294967295 bytes is beyond frame_bytes, 1048576",
        ),
        (
            opened() + b"\xff\xff\xff\xff" + bytes([SUBSCRIBE]),
            Reason.FRAME,
            "a control frame of 4294967295 bytes is beyond control_frame_bytes, 16384",
        ),
        (opened() + bytes(5), Reason.FRAME, "a frame of no bytes has no kind"),
    ],
    ids=["first bytes", "handshake", "events", "control", "nothing"],
)
def test_1_a_length_of_four_gigabytes_and_then_nothing_is_refused_when_it_is_seen(
    watch: Watch, data: bytes, reason: Reason, problem: str
) -> None:
    attempts(watch.broker.port, data, reason, problem)


@pytest.mark.parametrize(
    ("kind", "body", "reason", "problem"),
    [
        (PUBLISH, b"\x93\x01\xdd\xff\xff\xff\xff\x00", Reason.MESSAGE, "bytes are no Publish"),
        (OPEN_SESSION, b"\x95\x01\x00\xdd\xff\xff\xff\xff", Reason.MESSAGE, "bytes are no OpenSession"),
        (PUBLISH, b"\xdd\xff\xff\xff\xff\x01", Reason.MESSAGE, "bytes are no Publish"),
        (
            PUBLISH,
            b"\x93\x01\x91\x95\xa4evil\x01\x01\xa0\xdf\xff\xff\xff\xff\x00",
            Reason.MESSAGE,
            "bytes are no Publish",
        ),
        (SUBSCRIBE, b"\x92\x01\xdb\xff\xff\xff\xff", Reason.MESSAGE, "bytes are no Subscribe"),
        (PUBLISH, b"\x93\x01\xc6\xff\xff\xff\xff", Reason.MESSAGE, "bytes are no Publish"),
    ],
    ids=["events", "subscriptions", "fields", "attributes", "text", "binary"],
)
def test_2_four_billion_elements_declared_in_five_bytes_are_no_message(
    watch: Watch, kind: int, body: bytes, reason: Reason, problem: str
) -> None:
    attempts(watch.broker.port, opened() + frame(kind, body), reason, problem)


def test_3_many_small_frames_whose_sum_is_too_much_are_cut_off_at_the_window(watch: Watch) -> None:
    batch = message(Publish(4_000, events(*[{"a": 1}] * 97)))  # behind a gap: not taken in, and not kept either
    with RawPeer(watch.broker.port, opened()) as peer:
        peer.until(SessionOpened)
        for _ in range(40):
            peer.send(batch * 50)
        peer.send(message(Ping()))
        peer.until(Pong)
        peer.send(message(Publish(4_000, events(*[{"a": 1}] * 98))))
        assert peer.until_closed() == LinkClosed(Reason.BREACH, "events 4000 to 4097 are beyond the window after 0")


def test_3_a_frame_that_comes_byte_by_byte_is_kept_no_longer_than_its_link(watch: Watch) -> None:
    peers = [
        RawPeer(watch.broker.port, opened(f"evil-{n}") + b"\x00\x0f\xff\xff" + bytes([PUBLISH])) for n in range(30)
    ]
    for peer in peers:
        peer.until(SessionOpened)
        peer.send(bytes(MIB // 2))
    watch.bystanders.check()
    for peer in peers:
        peer.close()


@pytest.mark.parametrize(
    ("body", "reason", "problem"),
    [
        # Empty events, as many as a frame holds: refused for their number, before one is made.
        (
            msgspec.msgpack.encode([1, msgspec.Raw(b"\xdd\x00\x01\x86\xa0" + b"\x90" * 100_000)]),
            Reason.BREACH,
            "in Publish, bytes are no events: Expected `array` of length <= 8192",
        ),
        (
            msgspec.msgpack.encode([1, events(*[{}] * 8_000)]),
            Reason.BREACH,
            "events 1 to 8000 are beyond the window after 0",
        ),
        # One event of very many attributes of nothing.
        (
            msgspec.msgpack.encode([1, msgspec.Raw(b"\x91\x96\xa4evil\x01\x01\xa0\x9f" + b"\x90" * 15 + b"\xc4\x00")]),
            Reason.BREACH,
            "in Publish, bytes are no events: Expected `object`, got `array` - at `$[0][4]`",
        ),
    ],
    ids=["events of nothing", "more than the window", "arrays in arrays"],
)
def test_4_many_legal_arrays_that_expand_are_bounded_by_their_number(
    watch: Watch, body: bytes, reason: Reason, problem: str
) -> None:
    attempts(watch.broker.port, opened() + frame(PUBLISH, body), reason, problem)


def test_4_an_event_of_thousands_of_attributes_is_refused_and_the_others_with_it_are_not(watch: Watch) -> None:
    many = {f"a{n}": True for n in range(60_000)}
    with RawPeer(watch.broker.port, opened() + publish({"n": 1}, many, {"n": 2})) as peer:
        problem = "an event's attributes are 60000, beyond attributes_max, 64"
        assert peer.until(Accepted) == Accepted(3, ((2, Refusal.EVENT, problem),))


@pytest.mark.parametrize("kind", [OPEN_SESSION, PROGRESS], ids=["OpenSession", "Progress"])
def test_4_a_list_of_more_subscriptions_than_anyone_has_is_a_breach(watch: Watch, kind: int) -> None:
    numbers = b"\xdd\x00\x04\x00\x00" + bytes(0x40000)
    body = b"\x95\x01\x00" + numbers * 3 if kind == OPEN_SESSION else b"\x93" + numbers * 3
    what = SESSION_MESSAGES[kind].__name__
    problem = f"{what} names 262144 subscriptions, beyond named_max, 10000"
    attempts(watch.broker.port, opened() + frame(kind, body), Reason.BREACH, problem)


def test_5_a_compression_bomb_is_not_decompressed_before_or_after_the_handshake(watch: Watch) -> None:
    bomb = zlib.compress(bytes(100 * MIB), 9)
    attempts(watch.broker.port, bomb, Reason.PROTOCOL, "this is no Holdfast handshake")
    attempts(watch.broker.port, opened() + frame(PUBLISH, bomb), Reason.MESSAGE, "bytes are no Publish")
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, "bomb = TRUE"))) as peer:
        peer.send(publish({"bomb": True}, payload=bomb))
        assert peer.until(Deliver).events == events({"bomb": True}, payload=bomb)


@pytest.mark.parametrize("depth", [100_000, 10_000, 1_000, 500, 60, 9])
@pytest.mark.parametrize("opener", [b"\x91", b"\x81\xa1a"], ids=["arrays", "maps"])
def test_6_and_7_nesting_of_any_depth_is_no_message_and_is_logged_without_being_walked(
    watch: Watch, depth: int, opener: bytes
) -> None:
    nested = opener * depth + b"\xc0"
    reason, problem = refusal(watch.broker.port, opened() + frame(PUBLISH, b"\x92\x01\x91" + nested))
    assert reason in {Reason.MESSAGE, Reason.BREACH}
    assert problem.startswith(("bytes are no Publish", "in Publish, bytes are no events: "))
    if len(nested) < 16_000:
        attempts(watch.broker.port, opened() + frame(SUBSCRIBE, nested), Reason.MESSAGE, "bytes are no Subscribe")
    assert "RecursionError" not in "\n".join(watch.broker.log_lines())


def test_7_the_log_has_a_line_for_each_kind_of_breach_and_repeats_nothing_that_was_sent(watch: Watch) -> None:
    secret = "pa55word"
    with RawPeer(watch.broker.port, opened("logged") + frame(SUBSCRIBE, b"\x93\x01\xa0\xa8pa55word")) as peer:
        assert peer.until_closed() == LinkClosed(Reason.MESSAGE, "bytes are no Subscribe")
    for _ in range(200):
        refusal(watch.broker.port, opened() + publish({secret: secret}, payload=secret.encode(), first=5_000))
    lines = watch.broker.log_lines()
    assert not [line for line in lines if secret in line]
    breaches = [line for line in lines if "refused client:evil, breach" in line]
    assert breaches
    assert len(breaches) < 100
    assert not [line for line in lines if "Traceback" in line]


# --------------------------------------------------------------------------------------------- 8 to 10: the handshake
@pytest.mark.full
def test_8_connections_that_say_nothing_or_little_are_closed_in_time_and_told_why(watch: Watch) -> None:
    silent = [RawPeer(watch.broker.port, hello()[: n % len(hello())]) for n in range(300)]
    for peer in silent:
        last = peer.until_closed()
        assert last == HelloRefused(Reason.LATE, "no handshake within 5 s")
        peer.close()


@pytest.mark.full
def test_8_thousands_of_slow_connections_take_the_place_of_each_other_and_of_no_one_else(watch: Watch) -> None:
    before = watch.broker.descriptors()
    slow: list[RawPeer] = []
    for n in range(2_000):
        slow.append(RawPeer(watch.broker.port, hello()[: n % len(hello())]))
        if n % 500 == 499:
            with RawPeer(watch.broker.port, opened(f"late-{n}")) as fair:
                fair.until(SessionOpened)  # comes in all the same
            assert watch.broker.descriptors() - before <= 1_000 + 10
    first = slow[0].until_closed()
    assert isinstance(first, HelloRefused)
    assert first.reason in {Reason.CROWDED, Reason.LATE}
    for peer in slow:
        peer.close()


@pytest.mark.full
def test_8_a_byte_now_and_then_does_not_win_more_time(watch: Watch) -> None:
    with RawPeer(watch.broker.port, timeout_s=0.2) as peer:
        for byte in MAGIC[Role.CLIENT] + b"\x00\x00\x0f\xff" + bytes(1000):
            peer.send(bytes([byte]))
            try:
                if peer.until_closed() is not None:
                    break
            except TimeoutError:
                continue
    assert peer.heard == [HelloRefused(Reason.LATE, "no handshake within 5 s")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Reason.PROTOCOL),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), Reason.PROTOCOL),
        (bytes(4 * MIB), Reason.PROTOCOL),
        (message(OpenSession(1)) + bytes(MIB), Reason.PROTOCOL),
        (MAGIC[Role.CLIENT] + message(OpenSession(1)), Reason.PROTOCOL),
        (MAGIC[Role.CLIENT] + frame(PUBLISH, bytes(MIB // 2)), Reason.PROTOCOL),
        (MAGIC[Role.CLIENT] + frame(240, bytes(4095)), Reason.PROTOCOL),
        (MAGIC[Role.BROKER] + hello()[16:], Reason.ROLE),
    ],
    ids=["HTTP", "TLS", "zeros", "no magic", "no Hello", "a large frame", "a Hello of zeros", "for brokers"],
)
def test_9_a_first_packet_that_is_no_hello_is_refused_and_not_kept(watch: Watch, data: bytes, reason: Reason) -> None:
    for _ in range(3):
        assert refusal(watch.broker.port, data)[0] is reason


@pytest.mark.parametrize("kind", [kind for kind, t in SESSION_MESSAGES.items() if t not in FROM_CLIENTS])
def test_10_what_only_brokers_say_is_a_breach(watch: Watch, kind: int) -> None:
    example: Message = next(m for m in MESSAGE_EXAMPLES if MESSAGES.kinds[type(m)] == kind)
    problem = f"{type(example).__name__} is not for this node to receive from client:evil"
    attempts(watch.broker.port, opened() + message(example), Reason.BREACH, problem)


@pytest.mark.parametrize("kind", [0, 13, 15, 37, 100, 240, 241, 242, 243, 255])
def test_10_a_number_that_no_message_has_is_refused_also_those_of_the_handshake(watch: Watch, kind: int) -> None:
    attempts(
        watch.broker.port,
        opened() + frame(kind, b"\x90"),
        Reason.MESSAGE,
        f"there is no message with the number {kind}",
    )


# -------------------------------------------------------------------------------------------------- 16 to 18: filters
@pytest.mark.parametrize(
    "text",
    [
        "(" * 2_000 + "a" + ")" * 2_000,
        "NOT " * 1_000 + "a",
        "a = 1 OR " * 400 + "a = 1",
        "a = " + "-" * 4_000 + "1",
        "(",
    ],
    ids=["parentheses", "NOT", "OR", "signs", "unfinished"],
)
def test_16_a_filter_that_is_too_deep_or_too_large_is_refused_with_its_place(watch: Watch, text: str) -> None:
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, text))) as peer:
        refused = peer.until(SubscribeRefused)
        assert (refused.subscription, refused.reason) == (1, Refusal.FILTER)
        assert refused.problem
        peer.send(message(Subscribe(1, "fine = TRUE")))
        assert peer.until(Subscribed) == Subscribed(1)


def test_16_a_filter_of_65000_levels_does_not_even_fit_into_a_frame(watch: Watch) -> None:
    data = opened() + message(Subscribe(1, "(" * 65_000 + "a" + ")" * 65_000))
    problem = f"a control frame of {130_001 + 5 + 15} bytes is beyond control_frame_bytes, 16384"
    reason, told = refusal(watch.broker.port, data)
    assert reason is Reason.FRAME
    assert told.endswith(problem[-40:])


def test_16_a_topic_of_65400_separators_is_a_text_like_any_other(watch: Watch) -> None:
    topic = "/" * 65_400
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, "topic LIKE '/%/'"))) as peer:
        peer.send(publish({}, topic=topic))
        (delivered,) = msgspec.msgpack.decode(peer.until(Deliver).events)
        assert delivered[3] == topic


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("%a" * 50 + "%", "a" * 65_000 + "b"),
        ("%a" * 50 + "b", "a" * 65_000),
        ("a%" * 50 + "_b", "a" * 65_000),
        ("%_a" * 16 + "%b", "ab" * 32_000),
        ("(a+)+$", "a" * 65_000 + "!"),
    ],
)
def test_17_a_pattern_that_makes_matchers_explode_does_not(watch: Watch, pattern: str, value: str) -> None:
    wanted = f"value LIKE '{pattern}' OR bell = TRUE"
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, wanted))) as peer:
        peer.until(Subscribed)
        for first in range(1, 51):
            peer.send(publish({"value": value}, first=first))
        peer.send(publish({"bell": True}, first=51))
        while b"bell" not in bytes(peer.until(Deliver).events):
            pass


def test_18_the_thousand_and_first_subscription_is_refused_and_so_is_the_millionth(watch: Watch) -> None:
    def subscribe(first: int, count: int) -> bytes:
        return b"".join(message(Subscribe(n, f"evil = {n}")) for n in range(first, first + count))

    with RawPeer(watch.broker.port, opened()) as peer:
        peer.send(subscribe(1, 1_000))
        assert [peer.until(Subscribed).subscription for _ in range(1_000)] == list(range(1, 1_001))
        problem = "a session has at most 1000 subscriptions"
        for first in range(1_001, 51_001, 1_000):
            peer.send(subscribe(first, 1_000))
            for n in range(first, first + 1_000):
                assert peer.receive() == SubscribeRefused(
                    n, Refusal.LIMIT, problem, limit="subscriptions_per_session", allowed=1_000
                )
        peer.send(message(Unsubscribe(7)) + subscribe(2_000_000, 1))
        assert peer.until(Subscribed) == Subscribed(2_000_000)


@pytest.mark.full
def test_18_subscribing_without_reading_the_answers_is_cut_off(watch: Watch) -> None:
    with RawPeer(watch.broker.port, opened()) as peer:
        peer.until(SessionOpened)
        for n in range(1, 400_001, 1_000):
            peer.send(b"".join(message(Subscribe(n + k, "evil = 1")) for k in range(1_000)))
        last = peer.until_closed()
    assert last is None or isinstance(last, SubscribeRefused | LinkClosed)


@pytest.mark.full
def test_18_a_hundred_thousand_names_of_attributes_cost_little_and_are_forgotten(watch: Watch) -> None:
    for life in range(6):
        with RawPeer(watch.broker.port, opened("names")) as peer:
            peer.until(SessionOpened)
            made = 0
            for n in range(1_000):
                names = (f"x{life}_{n}_{k}" for k in range(100))
                peer.send(message(Subscribe(n + 1, " OR ".join(f"{name}=1" for name in names))))
                answer = peer.receive()
                made += isinstance(answer, Subscribed)
            assert isinstance(answer, SubscribeRefused)
            assert (answer.reason, answer.limit, answer.allowed) == (
                Refusal.LIMIT,
                "filter_bytes_per_session",
                256 * 1024,
            )
            assert made >= 180
            peer.send(publish(*[{f"y{life}_{row}_{k}": 1 for k in range(64)} for row in range(100)], name="names"))
            peer.until(Accepted)
            watch.bystanders.go_on()
            peer.send(message(CloseSession()))
            peer.until(SessionClosed)


# ------------------------------------------------------------------------------------------------ 19: slow consumers
@pytest.mark.parametrize("overflow", Overflow)
def test_19_a_subscriber_that_never_reads_costs_little(watch: Watch, overflow: Overflow) -> None:
    with (
        RawPeer(watch.broker.port, opened("lazy")) as lazy,
        RawPeer(watch.broker.port, opened("busy")) as busy,
    ):
        lazy.send(message(Subscribe(1, "topic = 'flood'", overflow, window=60_000)))
        lazy.until(Subscribed)
        busy.until(SessionOpened)
        accepted = 0
        for first in range(1, 30_000, 256):
            row = [{"n": n, "text": "x" * 1_000} for n in range(256)]
            busy.send(message(Publish(first, events(*row, name="busy", topic="flood"), accepted)))
            while accepted < first + 255 - 2_000:
                if overflow is Overflow.BLOCK and not busy.has_something(0.5):
                    return  # the publisher waits, as the subscriber wanted it
                accepted = busy.until(Accepted).sequence


@pytest.mark.parametrize("overflow", [Overflow.DISCONNECT, Overflow.DROP_OLDEST])
def test_19_many_subscriptions_that_are_never_read_cost_no_more_together(watch: Watch, overflow: Overflow) -> None:
    with RawPeer(watch.broker.port, opened("lazy")) as lazy, RawPeer(watch.broker.port, opened("busy")) as busy:
        for number in range(1, 101):
            lazy.send(message(Subscribe(number, f"flood = {number}", overflow, window=1)))
            lazy.until(Subscribed)
        busy.until(SessionOpened)
        first = 1
        for number in range(1, 101):
            row = [{"flood": number, "text": "x" * 15_000}] * 64
            busy.send(message(Publish(first, events(*row, name="busy"), first - 1)))
            first += 64
            while busy.until(Accepted).sequence < first - 1:
                pass


@pytest.mark.parametrize(
    "asking",
    one_always([Ping(), Unsubscribe(1), OpenSession(1), Subscribe(1, "(")]),
    ids=lambda message: type(message).__name__,
)
def test_19_asking_without_reading_the_answers_is_cut_off_at_eight_mebibytes(watch: Watch, asking: Message) -> None:
    questions = message(asking) * 2_000
    with RawPeer(watch.broker.port, opened()) as peer:
        peer.until(SessionOpened)
        closed = False
        for _ in range(2_000):
            if not peer.try_to_send(questions):
                closed = True
                break
        assert closed


def test_19_refusals_of_a_whole_window_again_and_again_are_cut_off(watch: Watch) -> None:
    bad = [{"n" * 120: float("nan")}] * 2_000
    with RawPeer(watch.broker.port, opened()) as peer:
        peer.send(publish(*bad) + publish(*bad, first=2_001))
        peer.until(SessionOpened)
        closed = False
        for _ in range(5_000):
            # Events that were answered before: the answer is the whole list again.
            if not peer.try_to_send(publish({"n": 1})):
                closed = True
                break
            watch.bystanders.go_on(1)
            if watch.growth() > 200 * MIB:
                break
        # A link that is cut off stays for a moment, in case that its peer reads why; what is sent meanwhile is dropped.
        if not closed:
            peer.until_closed()  # TimeoutError if the link stays


# ------------------------------------------------------------------------------------------------ 20 to 22: values
BAD_VALUES: dict[str, tuple[bytes, str]] = {
    "NaN": (b"\xcb\x7f\xf8" + bytes(6), "attribute 'n' is nan; only finite numbers can be compared"),
    "infinity": (b"\xcb\x7f\xf0" + bytes(6), "attribute 'n' is inf; only finite numbers can be compared"),
    "minus infinity": (b"\xcb\xff\xf0" + bytes(6), "attribute 'n' is -inf; only finite numbers can be compared"),
    "a NaN of 32 bits": (b"\xca\x7f\xc0\x00\x00", "attribute 'n' is nan; only finite numbers can be compared"),
    "2 to the 63rd": (b"\xcf\x80" + bytes(7), "attribute 'n' is an integer outside the range of 64 bits"),
    "2 to the 64th less 1": (b"\xcf" + b"\xff" * 8, "attribute 'n' is an integer outside the range of 64 bits"),
}  # fmt: skip


def raw_event(value: bytes, name: bytes = b"\xa1n") -> bytes:
    return message(Publish(1, msgspec.Raw(b"\x91\x95\xa4evil\x01\x01\xa1t\x81" + name + value)))


@pytest.mark.parametrize("case", BAD_VALUES)
@pytest.mark.parametrize("watched", [False, True], ids=["no one wants it", "someone wants it"])
def test_20_a_value_that_can_not_be_compared_is_refused_and_never_forwarded(
    watch: Watch, case: str, watched: bool
) -> None:
    value, problem = BAD_VALUES[case]
    with RawPeer(watch.broker.port, opened()) as peer:
        if watched:
            peer.send(message(Subscribe(1, "topic = 't' OR n > 0 OR NOT n > 0")))
        peer.send(raw_event(value))
        assert peer.until(Accepted) == Accepted(1, ((1, Refusal.EVENT, problem),))
        peer.send(message(Ping()))
        peer.until(Pong)
        assert not [said for said in peer.heard if isinstance(said, Deliver)]


@pytest.mark.parametrize(
    "value",
    [b"\xc0", b"\x90", b"\x80", b"\xc4\x01x", b"\xc7\x09\x00" + b"\xff" * 9, b"\xd6\xff" + bytes(4), b"\xc1"],
    ids=["nil", "array", "map", "bytes", "an integer of 70 bits", "a timestamp", "nothing at all"],
)
def test_20_and_22_a_value_of_another_kind_is_a_breach(watch: Watch, value: bytes) -> None:
    reason, problem = refusal(watch.broker.port, opened() + raw_event(value))
    assert reason in {Reason.BREACH, Reason.MESSAGE}
    assert "bytes are no" in problem


@pytest.mark.parametrize(
    ("value", "matching", "other"),
    [
        (-0.0, "n = 0", "n < 0"),
        (5e-324, "n > 0", "n = 0"),
        (1.7976931348623157e308, "n > 9223372036854775807", "n < 0"),
        (2**63 - 1, "n = 9223372036854775807", "n > 9223372036854775807"),
        (-(2**63), "n < 0", "n = 0"),
        (2**53 + 1, "n = 9007199254740993", "n = 9007199254740992"),
        (True, "n = TRUE", "n = 1"),
        (1, "n = 1", "n = TRUE"),
        ("1", "n = '1'", "n = 1"),
    ],
)
def test_20_values_at_the_edges_match_exactly(watch: Watch, value: object, matching: str, other: str) -> None:
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, matching)) + message(Subscribe(2, other))) as peer:
        peer.send(publish({"n": value}))
        assert peer.until(Deliver).runs == [(1, 1, 1)]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_21_text_that_is_no_utf8_is_a_breach_wherever_it_stands(watch: Watch, text: bytes) -> None:
    quoted = bytes([0xA0 + len(text)]) + text
    for data in (
        raw_event(b"\x01", name=quoted),
        raw_event(quoted),
        message(Publish(1, msgspec.Raw(b"\x91\x95\xa4evil\x01\x01" + quoted + b"\x80"))),
        frame(SUBSCRIBE, b"\x92\x01" + quoted),
    ):
        reason, problem = refusal(watch.broker.port, opened() + data)
        assert reason in {Reason.BREACH, Reason.MESSAGE}
        assert "bytes are no" in problem
    assert (
        refusal(watch.broker.port, MAGIC[Role.CLIENT] + frame(240, b"\x93\x91\x01" + quoted + b"\x01"))[0]
        is Reason.PROTOCOL
    )


def test_21_names_that_look_alike_are_different_names(watch: Watch) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    with RawPeer(watch.broker.port, opened()) as peer:
        peer.send(
            message(Subscribe(1, f"{composed} = 1"))
            + message(Subscribe(2, "a = 1"))
            + message(Subscribe(3, "topic = 't'"))
        )
        peer.send(publish({decomposed: 1, "a\0b": 1, "\0a": 1, "a\0": 1}, {composed: 1}, topic="t"))
        delivered = peer.until(Deliver)
        assert sorted(delivered.runs) == [(1, 1, 1), (3, 1, 2)]


def test_21_names_and_texts_are_taken_up_to_their_limits_and_not_beyond(watch: Watch) -> None:
    rows = [
        {"é" * 64: 1},
        {"é" * 64 + "x": 1},
        {"n": "é" * 32_768},
        {"n": "é" * 32_768 + "x"},
        {f"a{n}": n for n in range(64)},
        {f"a{n}": n for n in range(65)},
        {"x" * 900_000: 1},
    ]
    refused = [2, 4, 6, 1]
    with RawPeer(watch.broker.port, opened()) as peer:
        for row in rows[:6]:
            peer.send(publish(row, first=rows.index(row) + 1))
        accepted: list[int] = []
        while not accepted or accepted[-1] < 6:
            answer = peer.until(Accepted)
            accepted.append(answer.sequence)
        assert [number for number, _, _ in answer.refused] == refused[:3]
    with RawPeer(watch.broker.port, opened("other") + publish(rows[6], name="other")) as peer:
        ((number, reason, problem),) = peer.until(Accepted).refused
        assert (number, reason) == (1, Refusal.EVENT)
        assert len(problem) < 200


class _Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("import os; os._exit(66)",))


def test_22_a_pickle_in_a_payload_is_bytes_like_any_other(watch: Watch) -> None:
    payload = pickle.dumps(_Runs())
    with RawPeer(watch.broker.port, opened() + message(Subscribe(1, "topic = 't'"))) as peer:
        peer.send(publish({}, topic="t", payload=payload))
        (delivered,) = msgspec.msgpack.decode(peer.until(Deliver).events)
        assert delivered[5] == payload
    attempts(watch.broker.port, opened() + frame(PUBLISH, payload), Reason.MESSAGE, "bytes are no Publish")


@pytest.mark.parametrize(
    "extension", [b"\xd4\x05\x00", b"\xd8\x7f" + bytes(16), b"\xc7\x00\x01", b"\xc9\x00\x00\x00\x01\x2ax"]
)
def test_22_an_extension_type_is_refused_wherever_it_stands(watch: Watch, extension: bytes) -> None:
    for data in (
        raw_event(extension),
        message(Publish(1, msgspec.Raw(b"\x91\x96\xa4evil\x01\x01\xa0\x80" + extension))),
        message(Publish(1, msgspec.Raw(b"\x91" + extension))),
        message(Publish(1, msgspec.Raw(extension))),
        frame(SUBSCRIBE, b"\x92\x01" + extension),
    ):
        reason, problem = refusal(watch.broker.port, opened() + data)
        assert reason in {Reason.BREACH, Reason.MESSAGE}
        assert "bytes are no" in problem


# ------------------------------------------------------------------------------------------------------------- others
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (message(Subscribe(1, "", window=2**40)), "a subscription's window is 1 to 65536, not 1099511627776"),
        (
            message(Subscribe(1, "e = 1")) + publish({"e": 1}) + message(Progress((1,), (99,), (99,))),
            "subscription 1 has 1 events, not 99",
        ),
        (message(Publish(2**63, events({}))), f"events {2**63} to {2**63} are beyond the window after 0"),
        (message(OpenSession(1, 2**63)), f"an epoch is 0 to {2**62}, not {2**63}"),
        (publish({}, name="someone"), "an event names 'someone' as its publisher, not 'evil'"),
        (publish({}, name="x" * 100_000), f"an event names '{'x' * 64}' as its publisher, not 'evil'"),
    ],
    ids=["a window", "progress", "a number", "an epoch", "a publisher", "a long publisher"],
)  # fmt: skip
def test_numbers_that_can_not_be_are_a_breach(watch: Watch, data: bytes, problem: str) -> None:
    attempts(watch.broker.port, opened() + data, Reason.BREACH, problem)
