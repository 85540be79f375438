"""One TCP connection: handshake, then frames in and frames out. Knows nothing of nodes."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

from holdfast.codec import UNREADABLE
from holdfast.errors import HandshakeRefused, ProtocolError
from holdfast.kernel.messages import Message
from holdfast.protocols.catalogue import MESSAGES
from holdfast.wire.addresses import is_loopback
from holdfast.wire.framing import FrameReader
from holdfast.wire.handshake import Dialling, Listening, Peer
from holdfast.wire.limits import WireLimits

SECONDS = 1e-9
# What the operating system and asyncio hold for a slow reader before the node's queue fills up.
WRITE_BUFFER_BYTES = 256 * 1024
CLOSE_WITHIN_S = 2.0


class Owner(Protocol):
    """Who makes connections and hears of them."""

    def on_open(self, connection: Connection, peer: Peer) -> bool:
        """It is known who is there. False if the connection is not wanted, and was closed with a reason."""
        ...

    def on_messages(self, connection: Connection, messages: list[Message]) -> None: ...

    def on_writable(self, connection: Connection) -> None: ...

    def on_closed(self, connection: Connection, reason: str) -> None:
        """Comes once, whether or not the connection ever opened. What was written may still be on its way."""
        ...

    def on_gone(self, connection: Connection) -> None:
        """The socket is closed too."""
        ...


class Connection(asyncio.Protocol):
    """`handshake` says which side this is."""

    def __init__(
        self, owner: Owner, handshake: Dialling | Listening, limits: WireLimits, address: str = "", expected: str = ""
    ) -> None:
        self.link = 0  # given by the owner
        self.peer = ""
        self.address = address  # what was dialled
        self.expected = expected  # who should be there; empty for anyone
        self.writable = True
        self.known = False  # to the owner's node
        self.is_refused = False  # by us, or for a breach of protocol
        self.bytes_read = 0
        self.bytes_written = 0
        self._owner = owner
        self._handshake: Dialling | Listening | None = handshake
        self._limits = limits
        self._reader = FrameReader(limits)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._reason = ""  # why it was closed from here
        self._closed = False

    @property
    def is_local(self) -> bool:
        """Whether the other side is on this machine."""
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return name is not None and is_loopback(str(name[0]))

    @property
    def has_socket(self) -> bool:
        return self._transport is not None

    # ------------------------------------------------------------------------------------------ called by asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._limits.handshake_time * SECONDS, self._too_late)
        if isinstance(self._handshake, Dialling):
            transport.write(self._handshake.opening)

    def data_received(self, data: bytes) -> None:
        self.bytes_read += len(data)
        if self._closed or self._reason:
            return
        try:
            if self._handshake is not None:
                data = self._greet(self._handshake, data)
                if not data:
                    return
            frames = self._reader.feed(data)
            if frames:
                decoders = MESSAGES.decoders
                self._owner.on_messages(self, [decoders[kind](body) for kind, body in frames])
        except HandshakeRefused as refused:
            if isinstance(self._handshake, Listening):
                self.write(self._handshake.answer)
                self.is_refused = True
            self.close(str(refused))
        except ProtocolError as error:
            self._breach(str(error))
        except KeyError as error:
            self._breach(f"there is no message with the number {error}")
        except UNREADABLE as error:
            self._breach(str(error))

    def _breach(self, problem: str) -> None:
        self.is_refused = True
        self.close(f"protocol error: {problem}")

    def _greet(self, handshake: Dialling | Listening, data: bytes) -> bytes:
        peer, rest = handshake.feed(data)
        if peer is None:
            return b""
        if self._deadline is not None:
            self._deadline.cancel()
        self._handshake = None
        if not self._owner.on_open(self, peer):
            return b""
        if isinstance(handshake, Listening):
            self.write(handshake.answer)
        return rest

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if not self._closed:
            self._owner.on_writable(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if not self._closed:
            self._closed = True
            self._owner.on_closed(self, self._reason or (str(exc) if exc else "closed by the other side"))
        self._owner.on_gone(self)

    # --------------------------------------------------------------------------------------------- called by the owner
    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._closed:
            self.bytes_written += len(data)
            self._transport.write(data)

    def close(self, reason: str) -> None:
        """Closes after what was written; the owner hears of it at once."""
        if self._closed:
            return
        self._reason = reason
        self._closed = True
        if self._transport is not None:
            self._transport.close()
            # A reader that never reads would keep the connection for ever.
            asyncio.get_running_loop().call_later(CLOSE_WITHIN_S, self._transport.abort)
        if self._deadline is not None:
            self._deadline.cancel()
        self._owner.on_closed(self, reason)

    def _too_late(self) -> None:
        seconds = self._limits.handshake_time * SECONDS
        self.close(f"no handshake within {seconds:.0f} s")
