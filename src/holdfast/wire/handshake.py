"""The handshake: who is there, of which role, in which version; before anything else, and within narrow limits.

The one that dials says a magic word, which differs between clients, operators and brokers, and a `Hello`. The one that
was dialled answers `HelloAccepted`, or `HelloRefused` and closes. Which roles there can be is decided by the listener:
the one for brokers serves no one else, and the one for clients and operators serves no broker. The answer also says
what answers, since a client may listen too, and of which scheme it is, so that whoever dialled knows what is spoken
there. A broker that dials says its own scheme, and one of another refuses it. Whoever was dialled and closes a link
later says why: `LinkClosed` is the last frame of it.

A machine without I/O: bytes in; out come bytes to send, and the peer when it is known.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NoReturn

import msgspec

from holdfast.codec import Registry
from holdfast.errors import HandshakeRefused, ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.wire.framing import HEADER_BYTES, encode_frames
from holdfast.wire.limits import WireLimits

# All of one length: who says one of another listener is told so.
MAGIC: Final = {
    Role.CLIENT: b"HOLDFAST-CLIENT\n",
    Role.BROKER: b"HOLDFAST-BROKER\n",
    Role.OPERATOR: b"HOLDFAST-MANAGE\n",
}
MAGIC_BYTES: Final = 16
SHOWN_CHARACTERS_MAX: Final = 64  # of what a peer calls its scheme
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_name(name: str) -> None:
    """Refuses what no peer may be called, with the error that a listener would give."""
    if not NAME.fullmatch(name):
        problem = f"{name[:64]!r} is no name: letters, digits, '_', '.' and '-', up to 64"
        raise HandshakeRefused(Reason.NAME.value, problem)


class Reason(enum.Enum):
    """Why a handshake was refused, or a link closed."""

    PROTOCOL = "protocol"  # this is no handshake
    ROLE = "role"  # of another listener
    VERSION = "version"  # no version in common
    NAME = "name"  # no name, or one that may not be used
    SCHEME = "scheme"  # a broker of another scheme
    LIMIT = "limit"  # too many connections
    LATE = "late"  # no handshake within its time
    CROWDED = "crowded"  # too many connections without a handshake: the oldest goes
    FRAME = "frame"  # one that is too long, or empty
    MESSAGE = "message"  # one that there is not, or that can't be read
    BREACH = "breach"  # a message that may not be said, or not now
    CLOSING = "closing"  # nobody's fault


class Hello(Message, frozen=True):
    """The versions that the dialling side speaks, best first, and who it is; of a broker, also its scheme."""

    versions: tuple[int, ...]
    name: str
    incarnation: int
    features: tuple[str, ...] = ()
    credentials: bytes = b""
    scheme: str = ""


class HelloAccepted(Message, frozen=True):
    """Who answers: its scheme (empty from a broker of before there were several), and what it is."""

    version: int
    name: str
    incarnation: int
    features: tuple[str, ...] = ()
    scheme: str = ""
    role: Role = Role.BROKER


class HelloRefused(Message, frozen=True):
    reason: Reason
    problem: str


class LinkClosed(Message, frozen=True):
    """The last frame of a link, from the side that was dialled."""

    reason: Reason
    problem: str


HANDSHAKE: Final = Registry[Message]({240: Hello, 241: HelloAccepted, 242: HelloRefused, 243: LinkClosed})


def refusal(reason: Reason, problem: str) -> bytes:
    """The bytes that say no."""
    return encode_frames([HANDSHAKE.encode(HelloRefused(reason, problem))])


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end. `scheme` is what one that was dialled named; the side that dials names none."""

    role: Role
    name: str
    incarnation: int
    version: int
    scheme: str = ""


class _Step:
    """What both sides share: bytes until the other side's one message is whole."""

    def __init__(self, limits: WireLimits, versions: tuple[int, ...]) -> None:
        self._limits = limits
        self._versions = versions  # that are spoken here, best first
        self._buffer = b""

    def _message(self, data: bytes) -> tuple[Message | None, bytes]:
        """The other side's message, when it is whole, and the bytes behind it, which belong to what follows."""
        self._buffer += data
        if len(self._buffer) < HEADER_BYTES:
            return None, b""
        length = int.from_bytes(self._buffer[:4], "big")
        if not 1 <= length <= self._limits.handshake_bytes:
            raise ProtocolError(
                f"a handshake of {length} bytes is beyond handshake_bytes, {self._limits.handshake_bytes}"
            )
        if len(self._buffer) < 4 + length:
            return None, b""
        body, rest = self._buffer[HEADER_BYTES : 4 + length], self._buffer[4 + length :]
        return HANDSHAKE.decode(self._buffer[4], body), rest


class Dialling(_Step):
    """The side that dialled."""

    def __init__(
        self,
        role: Role,
        name: str,
        incarnation: int,
        limits: WireLimits,
        versions: tuple[int, ...],
        scheme: str = "",
    ) -> None:
        """`scheme` is that of a broker; others get to know which one it is by the answer."""
        super().__init__(limits, versions)
        hello = Hello(versions, name, incarnation, scheme=scheme)
        self.opening = MAGIC[role] + encode_frames([HANDSHAKE.encode(hello)])

    def feed(self, data: bytes) -> tuple[Peer | None, bytes]:
        """The peer, when it has answered, and the bytes behind the answer. HandshakeRefused if it refused."""
        message, rest = self._message(data)
        match message:
            case None:
                return None, b""
            case HelloAccepted():
                if message.version not in self._versions:
                    raise ProtocolError(f"the other side chose version {message.version}, which was not offered")
                if message.role is Role.OPERATOR:
                    raise ProtocolError("an operator takes no links")
                return Peer(message.role, message.name, message.incarnation, message.version, message.scheme), rest
            case HelloRefused():
                raise HandshakeRefused(message.reason.value, message.problem)
            case _:
                raise ProtocolError(f"{type(message).__name__} is no answer to Hello")


class Listening(_Step):
    """The side that was dialled, on a listener for some roles; `own` is what it is itself."""

    def __init__(
        self,
        roles: tuple[Role, ...],
        name: str,
        incarnation: int,
        limits: WireLimits,
        versions: tuple[int, ...],
        scheme: str = "",
        own: Role = Role.BROKER,
    ) -> None:
        super().__init__(limits, versions)
        self._roles = roles
        self._scheme = scheme
        self._own = own
        self._role = roles[0]  # of the peer, when its magic word is known
        self._name = name
        self._incarnation = incarnation
        self._magic = b""
        self.answer = b""  # to be sent, when feed has returned or raised

    def feed(self, data: bytes) -> tuple[Peer | None, bytes]:
        """The peer, when it has said who it is, and the bytes behind that. HandshakeRefused if it is not wanted."""
        missing = MAGIC_BYTES - len(self._magic)
        if missing:
            self._magic += data[:missing]
            data = data[missing:]
            possible = [role for role, magic in MAGIC.items() if magic.startswith(self._magic)]
            if not possible:
                self._refuse(Reason.PROTOCOL, "this is no Holdfast handshake")
            if len(self._magic) < MAGIC_BYTES:
                return None, b""
            self._role = possible[0]
            if self._role not in self._roles:
                served = " and ".join(f"{role.value}s" for role in self._roles)
                self._refuse(Reason.ROLE, f"this listener is for {served}, not for {self._role.value}s")
        try:
            message, rest = self._message(data)
        except ProtocolError as error:
            self._refuse(Reason.PROTOCOL, str(error))
        if message is None:
            return None, b""
        if not isinstance(message, Hello):
            self._refuse(Reason.PROTOCOL, f"{type(message).__name__} is not for a listener")
        return self._judge(message), rest

    def _judge(self, hello: Hello) -> Peer:
        common = [version for version in hello.versions if version in self._versions]
        if not common:
            offered, spoken = (", ".join(map(str, versions)) for versions in (hello.versions, self._versions))
            self._refuse(
                Reason.VERSION, f"versions {offered or 'none'} were offered; this {self._own.value} speaks {spoken}"
            )
        try:
            check_name(hello.name)
        except HandshakeRefused as refused:
            self._refuse(Reason.NAME, refused.problem)
        if self._role is Role.BROKER and self._scheme and hello.scheme not in ("", self._scheme):
            named = repr(hello.scheme[:SHOWN_CHARACTERS_MAX])
            self._refuse(Reason.SCHEME, f"{hello.name} is of the scheme {named}, and {self._name} of {self._scheme!r}")
        accepted = HelloAccepted(common[0], self._name, self._incarnation, scheme=self._scheme, role=self._own)
        self.answer = encode_frames([HANDSHAKE.encode(accepted)])
        return Peer(self._role, hello.name, hello.incarnation, common[0])

    def _refuse(self, reason: Reason, problem: str) -> NoReturn:
        self.answer = refusal(reason, problem)
        raise HandshakeRefused(reason.value, problem)
