"""A core that holds something of everything, as commands make it: what a snapshot is made of, for golden bytes."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.event import Event, EventBytes, encode_batch, encode_event
from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.sessions.messages import Overflow

WALL = 1_794_700_800_000_000_000
SECOND = 1_000_000_000
LIMITS = CoreLimits(backlog_events=4)
A, B = "client:a", "client:b"
EPOCH = WALL // 1_000_000  # what sessions of that time are called


def event(n: int, lifetime: int = 0) -> EventBytes:
    return encode_event(Event(A, 1, n, "stock", {"n": n, "größe": 1.5}, b"payload", WALL, lifetime))


def _commands(log: bool) -> Iterator[Command]:
    for client in (A, B):
        yield commands.OpenSession(client, 7, 0, 3)
    yield commands.Subscribe(B, EPOCH, 1, "n > 0", Overflow.DROP_OLDEST, 10)
    yield commands.Subscribe(B, EPOCH, 2, "n > 1", Overflow.BLOCK, 10)
    yield commands.Subscribe(A, EPOCH, 1, "topic = 'bond'", Overflow.DISCONNECT, 10)
    yield commands.Advertise(A, EPOCH, 1, "n < 100")
    if log:
        yield commands.OpenCursor(B, EPOCH, 1, "risk", "n > 1", 0, False, 9, 0, 0, -1)
        yield commands.StageEvents(B, EPOCH, 1, "query", 1, 0, "stage", 1, encode_batch([event(50), event(51)]))
        yield commands.StageEvents(B, EPOCH, 2, "query", 2, 0, "later", 1, encode_batch([event(52)]))
        yield commands.CommitStages(B, EPOCH, 3, "query", 1, ("stage",))
    yield commands.Publish(A, EPOCH, 1, 0, encode_batch([event(1), event(2, 5 * SECOND), event(300)]))
    yield commands.Receive(B, EPOCH, (1,), (1,))
    yield commands.Publish(A, EPOCH, 4, 2, encode_batch([event(4, SECOND), event(5, 9 * SECOND), event(6)]))


def play(log: bool) -> BrokerCore:
    """Deterministic: the same commands at the same times."""
    core = BrokerCore(LIMITS, log)
    for number, command in enumerate(_commands(log), 1):
        core.apply(number, WALL + number, command)
    return core
