"""One replica of a group with fast rounds on a bench."""

from __future__ import annotations

import msgspec

from holdfast.kernel.inputs import Drained
from holdfast.kernel.messages import Record
from holdfast.kernel.outbox import Send
from holdfast.schemes.paxos.messages import FastLearn, Heartbeat, Prepare, Proposal, Value, digest_of_value
from holdfast.schemes.paxos.settings import Protocol
from tests.paxos.bench import Bench
from tests.paxos.ledger import Command, encode

BALLOT = 65  # r1's


def direct(command: Command) -> Value:
    """What every replica makes of it."""
    return msgspec.Raw(msgspec.msgpack.encode(Proposal(0, [msgspec.Raw(encode(command))])))


def learn(ballot: int, slot: int, value: Value) -> FastLearn:
    return FastLearn(ballot, [slot], [digest_of_value(value)])


A, B = direct(("a", 1)), direct(("b", 1))
OF_THE_LEADER = msgspec.Raw(msgspec.msgpack.encode(Proposal(7, [msgspec.Raw(encode(("c", 1)))])))


class FastBench(Bench):
    """`r0` in a group with fast rounds."""

    def __init__(self, members: int = 3, streams: dict[str, list[Record]] | None = None) -> None:
        super().__init__(members, streams, protocol=Protocol.FAST)
        self.meet()

    def follow(self, fast_from: int = 1, ballot: int = BALLOT) -> list[Send]:
        """`r1` leads, and has opened its fast rounds."""
        self.say("r1", Prepare(ballot, 1))
        return self.say("r1", Heartbeat(ballot, 0, 1, fast_from))

    def ask(self, command: Command) -> list[Send]:
        """A client says something to this replica, as to all."""
        self.replica.submit_direct(command, self.out)
        return self.handle(Drained("r1", 0, 0))

    @property
    def fast_votes(self) -> dict[int, Value]:
        return {slot: vote.value for slot, vote in self.parts.memory.acceptor.votes.items() if vote.fast}

    def takes_direct(self) -> bool:
        return self.replica.takes_direct
