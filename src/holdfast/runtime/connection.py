"""One TCP connection: handshake, then frames in and frames out. Knows nothing of nodes."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Protocol, cast

from holdfast.codec import UNREADABLE
from holdfast.codec.catalogue import Catalogue
from holdfast.errors import HandshakeRefused, ProtocolError
from holdfast.kernel.messages import Message
from holdfast.wire.addresses import is_loopback
from holdfast.wire.framing import Frame, FrameReader, encode_frames
from holdfast.wire.handshake import HANDSHAKE, Dialling, HelloRefused, LinkClosed, Listening, Peer, Reason
from holdfast.wire.limits import WireLimits

SECONDS = 1e-9
# What the operating system and asyncio hold for a slow reader before the node's queue fills up.
WRITE_BUFFER_BYTES = 256 * 1024
# What is read from one connection before the node has dealt with it. The event loop may read many times in a row, and
# small messages take up a hundred times their bytes.
READ_BYTES_MAX = 256 * 1024
READ_AT_ONCE_BYTES = 256 * 1024  # asked of a socket
CLOSE_WITHIN_S = 2.0
PROBLEM_CHARACTERS_MAX = 400  # that the other side is told


class Owner(Protocol):
    """Who makes connections and hears of them."""

    def on_open(self, connection: Connection, peer: Peer) -> bool:
        """It is known who is there. False if the connection is not wanted, and was closed with a reason."""
        ...

    def on_refused(self, connection: Connection, reason: Reason, problem: str) -> None:
        """The other side did what it may not; the connection is being closed for that."""
        ...

    def on_messages(self, connection: Connection, messages: list[Message]) -> bool:
        """Whether the node has dealt with them. If not, it says so later."""
        ...

    def on_writable(self, connection: Connection) -> None: ...

    def on_closed(self, connection: Connection, reason: str) -> None:
        """Comes once, whether or not the connection ever opened. What was written may still be on its way."""
        ...

    def on_gone(self, connection: Connection) -> None:
        """The socket is closed too."""
        ...


class _ReadBuffer(threading.local):
    """Where an event loop's connections read into, one after the other: to make room for a large read and to give it
    back costs ten times as much as a small read itself."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_AT_ONCE_BYTES))


_read_buffer = _ReadBuffer()


class Connection(asyncio.BufferedProtocol):
    """`handshake` says which side this is."""

    def __init__(
        self,
        owner: Owner,
        handshake: Dialling | Listening,
        limits: WireLimits,
        catalogue: Catalogue,
        address: str = "",
        expected: str = "",
    ) -> None:
        self.link = 0  # given by the owner, with the peer
        self.peer = ""
        self.address = address  # what was dialled
        self.expected = expected  # who should be there; empty for anyone
        self.writable = True
        self.refusal = ""  # the other side's reason, if it did not want us
        self.origin = ""  # the other side's address, for the log
        self.bytes_read = 0
        self.bytes_written = 0
        self._owner = owner
        self._handshake: Dialling | Listening | None = handshake
        self._listening = isinstance(handshake, Listening)
        self._limits = limits
        self.speak(catalogue)
        self._buffer = _read_buffer.view
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._undigested = 0  # bytes that the owner's node has not dealt with
        self._paused = False
        self._reason = ""  # why it was closed from here
        self._closed = False

    @property
    def is_local(self) -> bool:
        """Whether the other side is on this machine: it comes over loopback, or from the address that it came to."""
        if self._transport is None:
            return False
        theirs, ours = (self._transport.get_extra_info(name) for name in ("peername", "sockname"))
        return theirs is not None and (is_loopback(str(theirs[0])) or (ours is not None and theirs[0] == ours[0]))

    @property
    def has_socket(self) -> bool:
        return self._transport is not None

    # ------------------------------------------------------------------------------------------ called by asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self.origin = "{}:{}".format(*(transport.get_extra_info("peername") or ("?", "?"))[:2])
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._limits.handshake_time * SECONDS, self._too_late)
        if isinstance(self._handshake, Dialling):
            transport.write(self._handshake.opening)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_read += nbytes
        if not self._closed and not self._reason:
            self._read(bytes(self._buffer[:nbytes]))

    def _read(self, data: bytes) -> None:
        try:
            if self._handshake is not None:
                data = self._greet(self._handshake, data)
                if not data:
                    return
            frames = self._reader.feed(data)
        except HandshakeRefused as refused:
            if self._listening:
                self.refuse(Reason(refused.reason), refused.problem)
            else:
                self.refusal = refused.reason
                self.close(f"refused: {refused.problem}")
            return
        except ProtocolError as error:
            self.refuse(Reason.PROTOCOL if self._handshake is not None else Reason.FRAME, str(error))
            return
        if frames:
            decoders = self._messages.decoders
            try:
                messages = [decoders[kind](body) for kind, body in frames]
            except (KeyError, *UNREADABLE):
                self._on_unreadable(frames)
                return
            if self._owner.on_messages(self, messages):
                return
            self._undigested += len(data)
            if self._undigested >= READ_BYTES_MAX and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()

    def _on_unreadable(self, frames: list[Frame]) -> None:
        """One of the frames holds no message. Those before it count: they may be why the other side said goodbye."""
        messages: list[Message] = []
        for kind, body in frames:
            decode = self._messages.decoders.get(kind)
            try:
                if decode is None:
                    reason, problem = self._read_farewell(kind, body)
                    break
                messages.append(decode(body))
            except UNREADABLE:
                # What the decoder says may quote the peer's own words, which belong into no log.
                reason, problem = Reason.MESSAGE, f"bytes are no {self._messages.types[kind].__name__}"
                break
        if messages:
            self._owner.on_messages(self, messages)
        if reason is Reason.MESSAGE:
            self.refuse(reason, problem)
        else:
            self.refusal = reason.value
            self.close(f"the other side closed: {problem}")

    def _read_farewell(self, kind: int, body: bytes) -> tuple[Reason, str]:
        try:
            farewell = None if self._listening else HANDSHAKE.decode(kind, body)
        except ProtocolError:
            farewell = None
        if isinstance(farewell, LinkClosed):
            # MESSAGE is for what was not understood here; what the other side did not understand is a breach of ours.
            reason = Reason.BREACH if farewell.reason is Reason.MESSAGE else farewell.reason
            return reason, farewell.problem
        return Reason.MESSAGE, f"there is no message with the number {kind}"

    def _greet(self, handshake: Dialling | Listening, data: bytes) -> bytes:
        peer, rest = handshake.feed(data)
        if peer is None:
            return b""
        if not self._owner.on_open(self, peer):
            return b""
        if self._deadline is not None:
            self._deadline.cancel()
        self._handshake = None
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
    def name(self, link: int, peer: str) -> None:
        """What the owner calls the connection, and who is there."""
        self.link, self.peer = link, peer

    def speak(self, catalogue: Catalogue) -> None:
        """What is said here; decided before the first frame behind the handshake."""
        self._messages = catalogue.messages
        self.kinds, self.encode = catalogue.messages.kinds, catalogue.messages.encoder  # for who writes many at a time
        self._reader = FrameReader(self._limits, catalogue.large_kinds)

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._closed:
            self.bytes_written += len(data)
            self._transport.write(data)

    def digested(self) -> None:
        """What was handed over so far is dealt with."""
        self._undigested = 0
        if self._paused:
            self._paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def refuse(self, reason: Reason, problem: str) -> None:
        """Closes for something that the other side did, and tells it what."""
        if not self._closed:
            self._owner.on_refused(self, reason, problem)
            self._close(reason, problem, f"protocol error: {problem}")

    def close(self, reason: str) -> None:
        """Closes after what was written; the owner hears of it at once."""
        if not self._closed:
            self._close(Reason.CLOSING, reason, reason)

    def _close(self, why: Reason, problem: str, reason: str) -> None:
        if self._listening:
            said = HelloRefused if self._handshake is not None else LinkClosed
            self.write(encode_frames([HANDSHAKE.encode(said(why, problem[:PROBLEM_CHARACTERS_MAX]))]))
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
        problem = f"no handshake within {self._limits.handshake_time * SECONDS:.0f} s"
        if self._listening:
            self.refuse(Reason.LATE, problem)
        else:
            self.close(problem)
