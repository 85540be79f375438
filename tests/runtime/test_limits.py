"""Every limit of docs/limits.md: what is at it is taken, what is beyond is refused, at the broker and in clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.registry import SCHEMES
from holdfast.client import State, connect
from holdfast.errors import (
    EventError,
    FilterError,
    HandshakeRefused,
    HoldfastError,
    LimitReached,
    NotConnected,
    SubscriptionEnded,
    Superseded,
)
from holdfast.kernel.links import Role
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import (
    ATTRIBUTES_MAX,
    EVENT_BYTES_MAX,
    NAME_BYTES_MAX,
    STRING_BYTES_MAX,
)
from holdfast.model.limits import FilterLimits
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.sessions.messages import (
    Accepted,
    Ping,
    Pong,
    Publish,
    Refusal,
    SessionOpened,
    Subscribe,
)
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.tree.parts import make_broker
from holdfast.wire.framing import encode_frames
from holdfast.wire.handshake import HANDSHAKE, MAGIC, Hello, HelloAccepted, HelloRefused, LinkClosed, Reason
from holdfast.wire.limits import WireLimits
from tests.runtime.broker_process import BrokerProcess
from tests.runtime.hostile import RawPeer, events, frame, hello, message, opened, publish
from tests.runtime.test_bus import _publish_until_it_fails, run

SPOKEN = SCHEMES["tree"].catalogue

PUBLISH, SUBSCRIBE = MESSAGES.kinds[Publish], MESSAGES.kinds[Subscribe]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def test_the_defaults_are_those_that_are_promised() -> None:
    wire, core, host = WireLimits(), CoreLimits(), DeskSettings()
    assert (wire.handshake_bytes, wire.handshake_time) == (4 * 1024, 5 * 10**9)
    assert (wire.frame_bytes, wire.control_frame_bytes) == (1024 * 1024, 16 * 1024)
    assert (wire.connections, core.subscriptions_per_session) == (10_000, 1_000)
    assert host.queue_bytes_max < host.unread_bytes_max == 8 * 1024 * 1024
    assert (ATTRIBUTES_MAX, NAME_BYTES_MAX, STRING_BYTES_MAX) == (64, 128, 64 * 1024)


# ------------------------------------------------------------------------------------------------------------- events
def sized_event(size: int) -> dict[str, str]:
    """Attributes of an event of about a megabyte, none of which is beyond a limit; its bytes are `size`."""
    attributes = {f"a{n:02}": "x" * STRING_BYTES_MAX for n in range(15)}
    rest = size - len(bytes(events(attributes, payload=b"")))
    # The batch's first byte is no part of the event; one more attribute takes its name, the header of its value, and
    # two bytes of the map's header.
    attributes["b"] = "x" * (rest + 1 - 2 - 3 - 2)
    return attributes


# (limit, allowed, the attribute that is named, what is at the limit, what is one beyond: attributes, topic, payload)
EVENTS: list[tuple[str, int, str, tuple[Any, str, bytes], tuple[Any, str, bytes]]] = [
    (
        "attributes_max",
        64,
        "",
        ({f"a{n}": True for n in range(64)}, "", b""),
        ({f"a{n}": True for n in range(65)}, "", b""),
    ),
    ("name_bytes_max", 128, "é" * 64 + "x", ({"é" * 64: 1}, "", b""), ({"é" * 64 + "x": 1}, "", b"")),
    ("string_bytes_max", 65_536, "s", ({"s": "é" * 32_768}, "", b""), ({"s": "é" * 32_768 + "x"}, "", b"")),
    ("string_bytes_max", 65_536, "topic", ({}, "t" * 65_536, b""), ({}, "t" * 65_537, b"")),
    ("payload_bytes_max", 524_288, "", ({}, "", bytes(524_288)), ({}, "", bytes(524_289))),
]
IDS = ["attributes", "names", "strings", "topics", "payloads"]


@pytest.mark.parametrize(("limit", "allowed", "attribute", "at", "beyond"), EVENTS, ids=IDS)
def test_a_broker_takes_an_event_at_a_limit_and_refuses_one_beyond(
    broker: BrokerProcess, limit: str, allowed: int, attribute: str, at: Any, beyond: Any
) -> None:
    with RawPeer(broker.port, opened()) as peer:
        peer.send(publish(at[0], topic=at[1], payload=at[2]))
        assert peer.until(Accepted) == Accepted(1)
        peer.send(publish(beyond[0], topic=beyond[1], payload=beyond[2], first=2))
        ((number, reason, problem),) = peer.until(Accepted).refused
        assert (number, reason) == (2, Refusal.EVENT)
        assert problem.endswith(f"beyond {limit}, {allowed}")


@pytest.mark.parametrize(("limit", "allowed", "attribute", "at", "beyond"), EVENTS, ids=IDS)
def test_the_library_refuses_what_a_broker_would_and_says_which_limit(
    broker: BrokerProcess, limit: str, allowed: int, attribute: str, at: Any, beyond: Any
) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            await bus.publish(at[0], topic=at[1], payload=at[2])
            with pytest.raises(EventError) as caught:
                await bus.publish(beyond[0], topic=beyond[1], payload=beyond[2])
            assert (caught.value.limit, caught.value.allowed, caught.value.attribute) == (limit, allowed, attribute)
            await bus.post(beyond[0], topic=beyond[1], payload=beyond[2])
            with pytest.raises(EventError) as posted:
                await bus.flush()
            assert posted.value.limit == limit

    run(scene)


def test_an_event_that_no_frame_holds_is_refused_on_both_sides_and_one_that_fits_goes_all_the_way(
    broker: BrokerProcess,
) -> None:
    with RawPeer(broker.port, opened()) as peer:
        for size, refused in ((EVENT_BYTES_MAX, 0), (EVENT_BYTES_MAX + 1, 1)):
            batch = events(sized_event(size))
            assert len(bytes(batch)) == size + 1
            peer.send(message(Publish(1 if not refused else 2, batch)))
            assert len(peer.until(Accepted).refused) == refused

    async def scene() -> None:
        async with connect(broker.url) as bus, bus.subscribe("a00 IS NOT NULL") as wanted:
            await bus.publish(sized_event(EVENT_BYTES_MAX - 100))
            assert len((await wanted.next()).attributes) == 16
            with pytest.raises(EventError) as caught:
                await bus.publish(sized_event(EVENT_BYTES_MAX + 1))
            assert (caught.value.limit, caught.value.allowed) == ("event_bytes_max", EVENT_BYTES_MAX)
            await bus.publish({})

    run(scene)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "attribute 'n' is nan; only finite numbers can be compared"),
        (float("inf"), "attribute 'n' is inf; only finite numbers can be compared"),
        (float("-inf"), "attribute 'n' is -inf; only finite numbers can be compared"),
        (2**63, "attribute 'n' is an integer outside the range of 64 bits"),
        (2**70, "attribute 'n' is an integer outside the range of 64 bits"),
        (-(2**63) - 1, "attribute 'n' is an integer outside the range of 64 bits"),
        ("\ud800", "attribute 'n' holds a lone surrogate, which is no Unicode text"),
        (None, "attribute 'n' is of type NoneType, not int, float, str or bool; leave an attribute out instead of"),
        (b"x", "attribute 'n' is of type bytes, not int, float, str or bool"),
        ([1], "attribute 'n' is of type list, not int, float, str or bool"),
    ],
)
def test_20_the_library_refuses_a_value_that_no_event_can_have_and_names_the_attribute(
    broker: BrokerProcess, value: Any, problem: str
) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            with pytest.raises(EventError) as caught:
                await bus.publish({"m": 1, "n": value})
            assert caught.value.attribute == "n"
            assert caught.value.problem.startswith(problem)
            with pytest.raises(EventError):
                await bus.publish({"\udc80": 1})
            await bus.publish({"m": 1, "n": -0.0})

    run(scene)


# ------------------------------------------------------------------------------------------------------------- frames
@pytest.mark.parametrize(("kind", "allowed"), [(PUBLISH, 1024 * 1024), (SUBSCRIBE, 16 * 1024)])
def test_a_frame_at_its_limit_is_read_and_one_beyond_is_not(broker: BrokerProcess, kind: int, allowed: int) -> None:
    name = {PUBLISH: "Publish", SUBSCRIBE: "Subscribe"}[kind]
    for length, reason, problem in (
        (allowed, Reason.MESSAGE, f"bytes are no {name}"),  # read, and found to be nothing
        (allowed + 1, Reason.FRAME, f"frame of {allowed + 1} bytes is beyond"),
    ):
        with RawPeer(broker.port, opened() + frame(kind, bytes(length - 1))) as peer:
            last = peer.until_closed()
        assert isinstance(last, LinkClosed)
        assert last.reason is reason
        assert problem in last.problem


def test_a_handshake_at_its_limit_is_read_and_one_beyond_is_not(broker: BrokerProcess) -> None:
    def padded(length: int) -> bytes:
        """A handshake whose frame has this length."""
        bare = len(HANDSHAKE.encode(Hello((2,), "evil", 1, (), b""))[1]) + 1
        credentials = bytes(length - bare - 1)  # of more than 255 bytes: their header is one byte longer
        return MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(Hello((2,), "evil", 1, (), credentials))])

    assert int.from_bytes(padded(4096)[16:20], "big") == 4096
    with RawPeer(broker.port, padded(4096)) as peer:
        assert isinstance(peer.receive(), HelloAccepted)
    with RawPeer(broker.port, padded(4097)) as peer:
        problem = "a handshake of 4097 bytes is beyond handshake_bytes, 4096"
        assert peer.until_closed() == HelloRefused(Reason.PROTOCOL, problem)


# --------------------------------------------------------------------------------------------- what one client may have
def test_the_library_raises_the_limit_of_subscriptions_with_its_name(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            many = [await bus.subscribe(f"n = {n}").__aenter__() for n in range(1_000)]
            with pytest.raises(LimitReached) as caught:
                await bus.subscribe("n = -1").__aenter__()
            assert (caught.value.limit, caught.value.allowed) == ("subscriptions_per_session", 1_000)
            await many[0].close()
            await bus.subscribe("n = -1").__aenter__()
            await bus.publish({"n": 5})
            assert (await many[5].next()).attributes == {"n": 5}

    run(scene)


def test_a_filter_beyond_a_limit_is_refused_in_the_library_before_anything_is_sent(broker: BrokerProcess) -> None:
    states: list[State] = []

    async def scene() -> None:
        async with connect(broker.url, on_state=lambda state, _: states.append(state)) as bus:
            fits = "n = 1" + " " * (FilterLimits().text_bytes - 5)
            async with bus.subscribe(fits):
                pass
            for text in (fits + " ", "n = 1" + " " * 100_000, "(" * 65 + "n" + ")" * 65):
                with pytest.raises(FilterError):
                    bus.subscribe(text)
            await bus.publish({})
            assert states == [State.CONNECTED]

    run(scene)


@pytest.mark.full
def test_outgoing_bytes_are_bounded_and_whoever_goes_on_asking_is_told(broker: BrokerProcess) -> None:
    with RawPeer(broker.port, opened()) as peer:
        peer.until(SessionOpened)
        while peer.try_to_send(message(Ping()) * 10_000):
            pass
    # What waited for it at the broker is gone with it.
    with RawPeer(broker.port, opened() + message(Ping())) as peer:
        peer.until(Pong)


# --------------------------------------------------------------------------------------------- a broker in this process
class Served:
    """A broker in this process, whose counters can be read."""

    def __init__(self, limits: WireLimits | None = None, core: CoreLimits | None = None, **host: Any) -> None:
        settings = BrokerSettings("b1", limits=core or CoreLimits(), desk=DeskSettings(**host))
        self.runner = NodeRunner(
            "b1",
            Role.BROKER,
            lambda rng, streams: make_broker(settings, rng, streams),
            SPOKEN,
            limits=limits,
        )
        self.port = 0
        self.url = ""

    async def __aenter__(self) -> Served:
        self.runner.start()
        self.port = await self.runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        self.url = f"holdfast://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.stop()

    async def ask(self, data: bytes) -> Any:
        """The last thing that is said on a connection on which this is said."""

        def talk() -> Any:
            with RawPeer(self.port, data) as peer:
                return peer.until_closed()

        return await asyncio.to_thread(talk)


FULL = "the broker has all the connections that it takes"
LATE = WireLimits(handshake_time=50 * MILLISECOND)


@pytest.mark.parametrize(
    ("limits", "data", "reason", "problem"),
    [
        (None, b"GET /", Reason.PROTOCOL, "this is no Holdfast handshake"),
        (None, MAGIC[Role.BROKER], Reason.ROLE, "this listener is for clients, not for brokers"),
        (
            None,
            MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(Hello((9,), "x", 1))]),
            Reason.VERSION,
            "versions 9 were offered; this broker speaks 2",
        ),
        (
            None,
            MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(Hello((2,), "*", 1))]),
            Reason.NAME,
            "'*' is no name: letters, digits, '_', '.' and '-', up to 64",
        ),
        (WireLimits(connections=0), hello(), Reason.LIMIT, f"{FULL}: connections, 0"),
        (LATE, b"", Reason.LATE, "no handshake within 0 s"),
        (None, opened() + bytes(5), Reason.FRAME, "a frame of no bytes has no kind"),
        (None, opened() + frame(99, b""), Reason.MESSAGE, "there is no message with the number 99"),
        (None, opened() + message(Pong()), Reason.BREACH, "Pong is not for this node to receive from client:evil"),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "",
)  # fmt: skip
def test_every_breach_is_answered_with_its_reason_and_counted(
    limits: WireLimits | None, data: bytes, reason: Reason, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with Served(limits) as served:
            told = await served.ask(data)
            expected = LinkClosed if data.startswith(hello()) and reason is not Reason.LIMIT else HelloRefused
            assert told == expected(reason, problem)
            assert served.runner.refusals == {reason.value: 1}
            assert [r.getMessage() for r in caplog.records if f", {reason.value}: {problem}" in r.getMessage()]
            for _ in range(20):
                await served.ask(data)
            assert served.runner.refusals == {reason.value: 21}
            lines = [r for r in caplog.records if "b1 refused" in r.getMessage()]
            assert len(lines) < 21

    run(scene)


def test_the_oldest_handshake_makes_room_and_is_counted() -> None:
    async def scene() -> None:
        async with Served(WireLimits(handshakes=2)) as served:
            slow = [await asyncio.to_thread(RawPeer, served.port) for _ in range(2)]
            async with connect(served.url) as bus:
                await bus.publish({})
            told = await asyncio.to_thread(slow[0].until_closed)
            problem = "more than handshakes, 2, connections have not said who they are"
            assert told == HelloRefused(Reason.CROWDED, problem)
            assert served.runner.refusals == {"crowded": 1}
            for peer in slow:
                peer.close()

    run(scene)


def test_a_connection_at_the_limit_is_taken_and_one_beyond_is_refused_until_one_leaves() -> None:
    async def scene() -> None:
        async with Served(WireLimits(connections=2)) as served, connect(served.url), connect(served.url) as second:
            with pytest.raises(NotConnected) as caught:
                await connect(served.url, timeout_s=0.3).open()
            assert caught.value.refusal == "limit"
            assert "all the connections that it takes: connections, 2" in str(caught.value)
            await second.close()
            async with connect(served.url) as third:
                await third.publish({})

    run(scene)


# ------------------------------------------------------------------------------- refusals as the library raises them
async def _connect(served: Served) -> None:
    async with connect(served.url, timeout_s=0.3):
        pass


async def _subscribe_twice(served: Served) -> None:
    async with connect(served.url) as bus, bus.subscribe("a = 1"), bus.subscribe("a = 2"):
        pass


async def _subscribe_at_length(served: Served) -> None:
    async with connect(served.url) as bus, bus.subscribe("a = 1 AND a = 2 AND a = 3"):
        pass


async def _advertise_twice(served: Served) -> None:
    async with connect(served.url) as bus:
        await bus.advertise("a = 1")
        await bus.advertise("a = 2")


async def _advertise_what_is_no_filter(served: Served) -> None:
    async with connect(served.url) as bus:
        await bus.advertise("a = '" + "x" * 100_000 + "'")


async def _overflow(served: Served) -> None:
    async with connect(served.url) as bus, bus.subscribe("a = 1", window=1) as wanted:
        await bus.publish_many([{"a": 1}] * 20)
        async for _ in wanted:
            pass


async def _another_name(served: Served) -> None:
    async with connect(served.url, name="desk") as first, connect(served.url, name="desk"):
        while True:
            await first.publish({})


def _fields(error: HoldfastError) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if not name.startswith("__") and name != "problem"}


@pytest.mark.parametrize(
    ("limits", "core", "act", "expected", "fields"),
    [
        (
            WireLimits(connections=0),
            None,
            _connect,
            NotConnected,
            {"refusal": "limit", "reason": "refused: the broker has all the connections that it takes: connections, 0"},
        ),
        (
            None,
            CoreLimits(sessions=0),
            _connect,
            NotConnected,
            {"refusal": "limit", "reason": "the broker has 0 sessions, and takes no more"},
        ),
        (
            None,
            CoreLimits(subscriptions_per_session=1),
            _subscribe_twice,
            LimitReached,
            {"limit": "subscriptions_per_session", "allowed": 1},
        ),
        (
            None,
            CoreLimits(filter_bytes_per_session=20),
            _subscribe_at_length,
            LimitReached,
            {"limit": "filter_bytes_per_session", "allowed": 20},
        ),
        (
            None,
            CoreLimits(advertisements_per_session=1),
            _advertise_twice,
            LimitReached,
            {"limit": "advertisements_per_session", "allowed": 1},
        ),
        (
            None,
            CoreLimits(filter_bytes_per_session=9),
            _advertise_twice,
            LimitReached,
            {"limit": "filter_bytes_per_session", "allowed": 9},
        ),
        (None, CoreLimits(backlog_events=5), _overflow, SubscriptionEnded, {"filter": "a = 1"}),
        (None, None, _another_name, Superseded, {}),
    ],
    ids=["connections", "sessions", "subscriptions", "filters", "advertisements", "advertising", "overflow", "name"],
)
def test_every_refusal_is_an_exception_with_its_fields(
    limits: WireLimits | None,
    core: CoreLimits | None,
    act: Callable[[Served], Any],
    expected: type[HoldfastError],
    fields: dict[str, Any],
) -> None:
    async def scene() -> None:
        async with Served(limits, core) as served:
            with pytest.raises(expected) as caught:
                await act(served)
            found = _fields(caught.value)
            if "reason" in found:
                found["reason"] = found["reason"].removeprefix(f"127.0.0.1:{served.port}: ")
            assert found == fields
            assert str(caught.value)

    run(scene)


def test_an_advertisement_that_is_far_too_long_is_refused_before_it_is_sent() -> None:
    async def scene() -> None:
        async with Served() as served:
            with pytest.raises(FilterError):
                await _advertise_what_is_no_filter(served)
            assert served.runner.refusals == {}

    run(scene)


class _Answers:
    """A listener that gives everyone the same answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def serve(self) -> tuple[asyncio.Server, str]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(self._answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        return server, f"holdfast://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("reason", [Reason.VERSION, Reason.ROLE, Reason.NAME, Reason.LIMIT, Reason.PROTOCOL])
def test_a_refused_handshake_is_told_to_the_callback_the_log_and_the_caller(
    reason: Reason, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "holdfast")
    states: list[tuple[State, str]] = []

    async def scene() -> None:
        server, url = await _Answers(encode_frames([HANDSHAKE.encode(HelloRefused(reason, "not you"))])).serve()
        with pytest.raises(NotConnected) as caught:
            await connect(url, timeout_s=0.3, on_state=lambda *state: states.append(state)).open()
        assert caught.value.refusal == reason.value
        assert caught.value.reason.endswith("refused: not you")
        assert "not you" in str(caught.value)
        server.close()

    run(scene)
    told = [state for state, detail in states if detail.endswith("refused: not you")]
    assert told == [State.DISCONNECTED, State.CLOSED]
    assert any("refused: not you" in record.getMessage() for record in caplog.records)


def test_a_link_that_the_broker_closes_says_why() -> None:
    states: list[tuple[State, str]] = []

    async def scene() -> None:
        async with Served() as served, connect(served.url, on_state=lambda *state: states.append(state)) as bus:
            await bus.publish({})
            await served.runner.stop("the broker is stopping")
            with pytest.raises(NotConnected) as caught:
                await _publish_until_it_fails(bus, retry=False)
            assert "the broker is stopping" in caught.value.reason or "Connect call failed" in caught.value.reason

    run(scene)
    assert (State.DISCONNECTED, "the other side closed: the broker is stopping") in states


@pytest.mark.parametrize("name", ["a b", "*", "", "#", "x" * 65, "ä"])
def test_a_name_that_no_broker_takes_is_refused_at_once(name: str) -> None:
    if not name:
        assert connect("holdfast://127.0.0.1:1").name.startswith("anonymous-")
        return
    with pytest.raises(HandshakeRefused) as caught:
        connect("holdfast://127.0.0.1:1", name=name)
    assert caught.value.reason == "name"


@pytest.mark.long
def test_ten_thousand_connections_are_served_and_the_next_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("many")) as broker:
        peers = []
        for n in range(10_000):
            peers.append(RawPeer(broker.port, opened(f"peer-{n}")))
            peers[-1].until(SessionOpened)
        with RawPeer(broker.port, opened("late")) as late:
            problem = "the broker has all the connections that it takes: connections, 10000"
            assert late.until_closed() == HelloRefused(Reason.LIMIT, problem)
        for peer in peers:
            peer.close()
        with RawPeer(broker.port, opened("later")) as later:
            later.receive()
            assert broker.alive
