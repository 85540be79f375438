"""What tests of hostile inputs share: a raw peer, clients that behave and must notice nothing, and the oracle.

`Watch` is the common oracle: the process lives, its memory never grew by 50 MiB (the peak, not what is left), and a
publisher and a subscriber that were there before exchanged events all the time, over the same connection, without loss.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import select
import socket
import struct
import threading
from types import TracebackType
from typing import Any

import msgspec

from holdfast.client import State, connect
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.model.event import EventBytes
from holdfast.protocols.client_catalogue import PROTOCOL_VERSIONS
from holdfast.protocols.sessions.messages import OpenSession, Publish
from holdfast.schemes.catalogue import MESSAGES
from holdfast.wire.framing import encode_frames
from holdfast.wire.handshake import HANDSHAKE, Dialling
from holdfast.wire.limits import WireLimits
from tests.runtime.broker_process import BrokerProcess

GROWTH_MAX = 50 * 1024 * 1024
PATIENCE_S = 30.0
LIMITS = WireLimits()


def hello(name: str = "evil") -> bytes:
    return Dialling(Role.CLIENT, name, 1, LIMITS, PROTOCOL_VERSIONS).opening


_instances = itertools.count(1)


def opened(name: str = "evil") -> bytes:
    """A handshake and an open session, in a new life of the client."""
    return hello(name) + message(OpenSession(next(_instances)))


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def message(value: Message) -> bytes:
    return encode_frames([MESSAGES.encode(value)])


def events(*attributes: object, name: str = "evil", topic: str = "", payload: bytes = b"") -> EventBytes:
    """A batch of events with these attributes, whatever they are."""
    rows = [[name, 1, place, topic, content, payload] for place, content in enumerate(attributes, 1)]
    return msgspec.Raw(msgspec.msgpack.encode(rows))


def publish(*attributes: object, first: int = 1, **fields: Any) -> bytes:
    return message(Publish(first, events(*attributes, **fields)))


class RawPeer:
    """A connection that says what it is told to, byte by byte, and understands what the broker says."""

    def __init__(self, port: int, data: bytes = b"", timeout_s: float = PATIENCE_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._buffer = b""
        self.heard: list[Message] = []
        if data:
            self.send(data)

    def send(self, data: bytes) -> None:
        """Says something; a broker that has closed already is no reason to stop."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def receive(self) -> Message | None:
        """The broker's next message; None when it has closed the connection. TimeoutError if it is silent."""
        while True:
            found = self._next()
            if found is not None:
                self.heard.append(found)
                return found
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._buffer += data

    def _next(self) -> Message | None:
        if len(self._buffer) < 5:
            return None
        length, kind = struct.unpack_from(">IB", self._buffer)
        if len(self._buffer) < 4 + length:
            return None
        body, self._buffer = self._buffer[5 : 4 + length], self._buffer[4 + length :]
        return HANDSHAKE.decode(kind, body) if kind in HANDSHAKE.types else MESSAGES.decode(kind, body)

    def until(self, wanted: type[Message]) -> Any:
        """The next message of this type."""
        while (found := self.receive()) is not None:
            if isinstance(found, wanted):
                return found
        raise AssertionError(f"closed without {wanted.__name__}, after {self.heard[-3:]}")

    def until_closed(self) -> Message | None:
        """The last thing that the broker said before it closed the connection."""
        while self.receive() is not None:
            pass
        return self.heard[-1] if self.heard else None

    def try_to_send(self, data: bytes) -> bool:
        """False if the broker has closed. TimeoutError if it neither closes nor takes anything in."""
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return False
        return True

    def has_something(self, wait_s: float) -> bool:
        """Whether the broker says something within this time."""
        return bool(self._buffer or select.select([self._socket], [], [], wait_s)[0])

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Bystanders:
    """A publisher and a subscriber that behave, in a thread of their own, exchanging events until they are stopped."""

    def __init__(self, url: str) -> None:
        self.rounds = 0
        self.states: list[tuple[State, str]] = []
        self.problem = ""
        self._moved = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._exchange(url)), daemon=True)
        self._thread.start()

    async def _exchange(self, url: str) -> None:
        try:
            async with (
                connect(url, on_state=self._heard) as publisher,
                connect(url, on_state=self._heard) as subscriber,
                subscriber.subscribe(f"bystander = '{publisher.name}'") as wanted,
            ):
                while not self._stopping:
                    await publisher.publish({"bystander": publisher.name, "round": self.rounds})
                    event = await wanted.next()
                    if event.attributes["round"] != self.rounds or wanted.missed or wanted.gaps:
                        raise AssertionError(f"round {self.rounds} brought {event.attributes}")
                    with self._moved:
                        self.rounds += 1
                        self._moved.notify_all()
                self.states = self.states[:2]  # what comes now is the end
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            with self._moved:
                self._moved.notify_all()

    def _heard(self, state: State, detail: str) -> None:
        if not self._stopping:
            self.states.append((state, detail))

    def go_on(self, rounds: int = 3) -> None:
        """Returns when some more events were exchanged."""
        with self._moved:
            target = self.rounds + rounds
            moved = self._moved.wait_for(lambda: self.problem or self.rounds >= target, PATIENCE_S)
        assert not self.problem, self.problem
        assert moved, f"no event came through for {PATIENCE_S} s"

    def check(self) -> None:
        """They noticed nothing."""
        self.go_on()
        assert [state for state, _ in self.states] == [State.CONNECTED] * 2, self.states

    def stop(self) -> None:
        self._stopping = True
        self._thread.join(PATIENCE_S)


class Watch:
    """The common oracle over what is done inside a `with`."""

    def __init__(self, broker: BrokerProcess, bystanders: Bystanders) -> None:
        self.broker = broker
        self.bystanders = bystanders

    def __enter__(self) -> Watch:
        self.bystanders.go_on()
        self._before = self.broker.resident_bytes()
        self.broker.forget_peak()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.check()

    def check(self) -> None:
        assert self.broker.alive
        self.bystanders.check()
        assert self.growth() < GROWTH_MAX, f"grew by {self.growth() >> 20} MiB"

    def growth(self) -> int:
        """By how much the broker's memory ever exceeded what it was."""
        return self.broker.peak_bytes() - self._before
