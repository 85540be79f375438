"""What hostile peers send to a real broker process harms no one else, and makes it neither fall nor grow."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest

from holdfast.client import connect
from holdfast.kernel.links import Role
from holdfast.protocols.catalogue import MESSAGES
from holdfast.protocols.sessions.messages import Accepted, OpenSession, Progress, Publish, Subscribe
from holdfast.wire.framing import encode_frames
from holdfast.wire.handshake import MAGIC, Dialling
from holdfast.wire.limits import WireLimits
from tests.runtime.broker_process import BrokerProcess

GROWTH_MAX = 50 * 1024 * 1024
HELLO = Dialling(Role.CLIENT, "evil", 1, WireLimits()).opening
OPEN = HELLO + encode_frames([MESSAGES.encode(OpenSession(1))])


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def message(value: object) -> bytes:
    return encode_frames([MESSAGES.encode(value)])  # type: ignore[arg-type]


PUBLISH, SUBSCRIBE = MESSAGES.kinds[Publish], MESSAGES.kinds[Subscribe]
NESTED = b"\x91" * 100_000

HOSTILE = {
    "a length of four gigabytes": OPEN + b"\xff\xff\xff\xff" + bytes([PUBLISH]),
    "a length of four gigabytes before the handshake": b"\xff\xff\xff\xff",
    "an array of four billion elements": OPEN + frame(PUBLISH, b"\x93\x01\xdd\xff\xff\xff\xff\x00"),
    "a map of four billion attributes": OPEN
    + frame(PUBLISH, b"\x93\x01\x91\x98\xa4evil\x01\x01\xa0\xdf\xff\xff\xff\xff"),
    "nesting without end": OPEN + frame(PUBLISH, b"\x93\x01" + NESTED + b"\x00"),
    "nesting in a control frame": OPEN + frame(SUBSCRIBE, b"\x91" * 10_000),
    "no handshake at all": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a first packet that is large": bytes(1_000_000),
    "a handshake for brokers": MAGIC[Role.BROKER] + HELLO[16:],
    "a message that only brokers send": OPEN + message(Accepted(1)),
    "a number that no message has": OPEN + frame(200, b"\x90"),
    "a frame of nothing": OPEN + bytes(4) + b"\x01",
    "a control frame that is too long": OPEN + frame(SUBSCRIBE, bytes(20_000)),
    "a filter nested 65,000 levels": OPEN + message(Subscribe(1, "(" * 7_000 + "a" + ")" * 7_000)),
    "a pattern that makes matchers explode": OPEN
    + message(Subscribe(1, "a LIKE '" + "%a" * 50 + "'"))
    + message(Publish(1, msgspec.Raw(msgspec.msgpack.encode([["evil", 1, 1, "", {"a": "a" * 60_000 + "b"}]])))),
    "text that is no UTF-8": OPEN + frame(SUBSCRIBE, b"\x92\x01\xa2\xff\xfe"),
    "a window without end": OPEN + message(Subscribe(1, "", window=2**40)),
    "progress that can't be": OPEN + message(Subscribe(1, "")) + message(Progress((1,), (99,), (99,))),
    "a sequence of 64 bits": OPEN + message(Publish(2**63, msgspec.Raw(b"\x91\x90"))),
    "an extension type": OPEN + frame(PUBLISH, b"\x93\x01\x91\xd4\x05\x00\x00"),
    "an epoch of 64 bits": HELLO + message(OpenSession(1, 2**63)),
}  # fmt: skip


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def send(broker: BrokerProcess, data: bytes, wait_s: float = 3.0) -> bytes:
    """Everything that the broker says until it closes, or falls silent."""
    answer = b""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=wait_s) as peer:
        try:
            peer.sendall(data)
            while chunk := peer.recv(65_536):
                answer += chunk
                peer.settimeout(0.3)
        except (TimeoutError, ConnectionError):
            pass
    return answer


async def _publish_and_get(url: str) -> None:
    async with asyncio.timeout(10):
        async with connect(url) as bus, bus.subscribe("fine = TRUE") as events:
            await bus.publish({"fine": True})
            await events.next()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_peer_harms_no_one(broker: BrokerProcess, name: str) -> None:
    before = broker.resident_bytes()
    for _ in range(3):
        send(broker, HOSTILE[name])
    assert broker.alive
    asyncio.run(_publish_and_get(broker.url))
    assert broker.resident_bytes() - before < GROWTH_MAX


def test_many_small_frames_do_not_add_up(broker: BrokerProcess) -> None:
    before = broker.resident_bytes()
    events = msgspec.Raw(msgspec.msgpack.encode([["evil", 1, 1, "", {"a": 1}]] * 100))
    send(broker, OPEN + message(Publish(50, events)) * 2_000)
    assert broker.alive
    asyncio.run(_publish_and_get(broker.url))
    assert broker.resident_bytes() - before < GROWTH_MAX


def test_a_subscriber_that_never_reads_is_cut_off_and_costs_little(broker: BrokerProcess) -> None:
    before = broker.resident_bytes()

    async def flood() -> None:
        async with asyncio.timeout(60):
            async with connect(broker.url) as bus:
                await bus.publish_many(({"n": n, "text": "x" * 500}, "flood") for n in range(30_000))

    with socket.create_connection(("127.0.0.1", broker.port)) as lazy:
        lazy.sendall(OPEN + message(Subscribe(1, "topic = 'flood'", window=60_000)))
        asyncio.run(flood())
        assert broker.alive
        asyncio.run(_publish_and_get(broker.url))
        assert broker.resident_bytes() - before < GROWTH_MAX


def test_connections_that_say_nothing_are_closed_after_a_while(broker: BrokerProcess) -> None:
    silent = [socket.create_connection(("127.0.0.1", broker.port), timeout=8) for _ in range(200)]
    asyncio.run(_publish_and_get(broker.url))
    assert silent[0].recv(1) == b""
    for peer in silent:
        peer.close()
