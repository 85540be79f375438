"""Mutations of what a client really says, on the live port: whatever comes of them, the broker serves everyone else.

A transcript is a handshake and some frames. A mutation flips bits, cuts, doubles, splices or shuffles; the seed of what
does harm is in the failure.
"""

from __future__ import annotations

import random
import socket
from collections import deque
from collections.abc import Iterator

import pytest

from holdfast.kernel.messages import Message
from holdfast.protocols.sessions.messages import (
    CloseSession,
    OpenSession,
    Overflow,
    Ping,
    Progress,
    Publish,
    Subscribe,
    Unsubscribe,
)
from tests.runtime.broker_process import BrokerProcess
from tests.runtime.hostile import Bystanders, Watch, events, hello, message

OPEN_AT_ONCE = 100

FRAMES: list[Message] = [
    OpenSession(1),
    OpenSession(1, 5, (1, 2), (3, 4), (3, 4)),
    Subscribe(1, "fuzz > 1 AND topic = 't'", Overflow.DROP_OLDEST, 10),
    Subscribe(2, "fuzz LIKE '%a_b%' OR NOT (fuzz IN ('x', 'y'))", Overflow.BLOCK, 3),
    Subscribe(3, "fuzz BETWEEN -1.5 AND 2e9", Overflow.DISCONNECT, 65_536),
    Publish(1, events({"fuzz": 2}, {"fuzz": "a-b", "n": -0.0, "yes": True}, topic="t", payload=b"\x00\xff")),
    Publish(3, events(*[{"fuzz": n} for n in range(40)])),
    Progress((1, 2), (1, 1), (1, 0), True),
    Unsubscribe(2),
    Ping(),
    CloseSession(),
]


def mutated(rng: random.Random) -> bytes:
    """A conversation with one to four things wrong."""
    frames = [hello(), message(FRAMES[0]), *(message(rng.choice(FRAMES)) for _ in range(rng.randint(1, 6)))]
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(frames))
        # Most mistakes after the handshake: before it there is little to get wrong.
        if place == 0 and rng.random() < 0.8:
            place = rng.randrange(1, len(frames))
        frame = bytearray(frames[place])
        match rng.randrange(7):
            case 0 if frame:
                frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            case 1 if frame:
                frame[rng.randrange(len(frame))] = rng.choice((0x00, 0x7F, 0x80, 0xC1, 0xDD, 0xDF, 0xFF))
            case 2:
                del frame[rng.randrange(len(frame) + 1) :]
            case 3:
                frames.insert(place, frames[place])
                continue
            case 4:
                other = frames[rng.randrange(len(frames))]
                frame[rng.randrange(len(frame) + 1) :] = other[rng.randrange(len(other) + 1) :]
            case 5:
                at = rng.randrange(len(frame) + 1)
                frame[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                rng.shuffle(frames)
                continue
        frames[place] = bytes(frame)
    return b"".join(frames)


def bombard(port: int, count: int, seed: int) -> None:
    """Says so many mutated conversations, a hundred at a time, some of them in two pieces."""
    rng = random.Random(seed)
    peers: deque[socket.socket] = deque()
    for _ in range(count):
        data = mutated(rng)
        cut = rng.randrange(len(data) + 1) if rng.random() < 0.3 else len(data)
        peer = socket.create_connection(("127.0.0.1", port))
        peers.append(peer)
        try:
            peer.sendall(data[:cut])
            peer.sendall(data[cut:])
        except ConnectionError:
            pass
        if len(peers) > OPEN_AT_ONCE:
            peers.popleft().close()
    for peer in peers:
        peer.close()


@pytest.fixture
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    with BrokerProcess(tmp_path_factory.mktemp("site"), log="debug") as broker:
        bystanders = Bystanders(broker.url)
        with Watch(broker, bystanders) as watch:
            yield watch
        bystanders.stop()
        assert not bystanders.problem
        assert not [line for line in broker.log_lines() if "Traceback" in line]
        assert broker.stop() == 0


@pytest.mark.full
def test_thousands_of_mutated_conversations_harm_no_one(watch: Watch) -> None:
    for seed in range(6):
        bombard(watch.broker.port, 500, seed)
        watch.bystanders.check()
        assert watch.broker.alive, seed


@pytest.mark.long
def test_many_more_mutated_conversations_harm_no_one(watch: Watch) -> None:
    first = random.SystemRandom().getrandbits(32)
    for seed in range(first, first + 200):
        bombard(watch.broker.port, 500, seed)
        watch.bystanders.check()
        assert watch.broker.alive, seed
