"""A very small application for a group: it takes each client's numbers once and in order, and a door lets them in."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

import msgspec

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.kernel.storage import StoredStreams
from holdfast.schemes.paxos.holdings import Holdings
from holdfast.schemes.paxos.membership import Change
from holdfast.schemes.paxos.notices import BallotWanted
from holdfast.schemes.paxos.parts import GroupParts, PaxosKit, make_group, make_view
from holdfast.schemes.paxos.settings import PaxosSettings

DIRECT = "direct"  # before a command: a client says it to every replica itself
Command = tuple[str, int]  # who, and its number
Applied = Callable[[int, int, Command, bool, int], None]  # number, wall, command, whether it was new, chain


def link(chain: int, wall: int, command: Command, fresh: bool) -> int:
    """The next value of the hash over a whole history."""
    return zlib.crc32(f"{wall} {command[0]} {command[1]} {fresh}".encode(), chain)


def filler(chain: int) -> bytes:
    """So much that a state does not fit into one part, and other bytes in every state."""
    return b"".join(zlib.crc32(b"%d" % n, chain).to_bytes(4, "big") for n in range(40))


class Ledger:
    """`last` is its dedupe table; `chain` stands for all that ever happened to it."""

    def __init__(self, applied: Applied = lambda *_: None) -> None:
        self.number = 0
        self.chain = 0
        self.last: dict[str, int] = {}
        self._applied = applied

    def apply(self, number: int, wall: int, command: Command) -> list[Command]:
        assert number == self.number + 1
        self.number = number
        who, what = command
        fresh = what == self.last.get(who, 0) + 1
        if fresh:
            self.last[who] = what
        self.chain = link(self.chain, wall, command, fresh)
        self._applied(number, wall, command, fresh, self.chain)
        known = self.last.get(who, 0)
        return [(who, known)] if what <= known else []

    def get_state(self) -> bytes:
        return msgspec.msgpack.encode([self.number, self.chain, sorted(self.last.items()), filler(self.chain)])

    def set_state(self, state: bytes) -> None:
        try:
            self.number, self.chain, last, filled = msgspec.msgpack.decode(state)
            last = dict(last)
        except (ValueError, TypeError) as error:
            raise AssertionError("a state is put together from two") from error
        assert filled == filler(self.chain), "a state is put together from two"
        self.last = last


def encode(command: Command) -> bytes:
    return msgspec.msgpack.encode(command)


def decode(raw: msgspec.Raw) -> Command:
    who, what = msgspec.msgpack.decode(raw)
    return who, what


class Asked(msgspec.Struct, frozen=True):
    """What a test asks of a replica: a command, one for all replicas, a change, or to renew itself."""

    what: Any


def make_parts(
    settings: PaxosSettings,
    ledger: Ledger,
    rng: Random,
    streams: StoredStreams,
    kit: PaxosKit | None = None,
    holdings: Holdings | None = None,
) -> GroupParts:
    """A replica around a ledger."""
    kit = kit or PaxosKit()
    return make_group(ledger, encode, decode, make_view(settings, rng, kit), streams, kit, holdings)


class Door(Part):
    """Lets commands in, and writes down what came of them at the leader."""

    name: ClassVar[str] = "door"
    asked: ClassVar[tuple[type, ...]] = (Asked,)
    notices: ClassVar[tuple[type[Notice], ...]] = (CommandsApplied,)

    def __init__(self, parts: GroupParts, answered: Callable[[Command], None]) -> None:
        self._parts = parts
        self._answered = answered
        self.objections: list[str] = []  # to changes that were asked for

    def on_asked(self, request: int, asked: Asked, out: Outbox) -> None:
        what = asked.what
        if what == "renew":
            out.tell(BallotWanted())
        elif isinstance(what, Change):
            self.objections.append(self._parts.leader.change(what, out))
        elif what[0] == DIRECT:
            self._parts.replica.submit_direct(what[1], out)
        else:
            self._parts.replica.submit(what, out)

    def on_commands_applied(self, applied: CommandsApplied, out: Outbox) -> None:
        if self._parts.memory.proposer.is_leading:
            for output in applied.outputs:
                self._answered(output)
