"""A leader that too few answer leads no more, and lets the others know at once."""

from __future__ import annotations

from random import Random

import msgspec

from holdfast.kernel.inputs import Durable, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Disconnect, Effect, Send
from holdfast.kernel.parts import Assembly
from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.messages import (
    Canvass,
    CanvassAnswer,
    Greeting,
    Heartbeat,
    HeartbeatSeen,
    Prepare,
    Promise,
)
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from tests.paxos.ledger import Ledger, make_parts
from tests.sessions.bench import Bench

LINKS = {"r2": 1, "r3": 2}
STEP = 10 * MILLISECOND


class LeaderBench(Bench):
    """r1 of three, whose peers say what the test makes them say."""

    def __init__(self) -> None:
        members = tuple(Member(name, f"{name}:1", f"{name}:2") for name in ("r1", "r2", "r3"))
        self.settings = PaxosSettings("r1", members)
        self.parts = make_parts(self.settings, Ledger(), Random(1), {})
        super().__init__(Assembly(self.parts.parts))
        self.handle(Started(1, "d1"))
        for peer, link in LINKS.items():
            self.handle(LinkUp(link, peer, 1, Role.BROKER, True, f"{peer}:1"))
        disks, terms = {f"r{n}": f"d{n}" for n in (1, 2, 3)}, self.settings.terms()
        for peer in LINKS:
            self.say(peer, Greeting(disks[peer], disks, True, terms=terms))

    def leads(self) -> bool:
        return self.parts.memory.proposer.is_leading

    def say(self, peer: str, message: Message) -> list[Effect]:
        return self.handle(Received(LINKS[peer], peer, [message]))

    def advance_and_answer(self, by: int, answering: bool = True) -> list[Effect]:
        """Time passes, and one peer answers what it is asked, or hears nothing."""
        effects: list[Effect] = []
        for _ in range(by // STEP):
            now = self.advance(STEP)
            for effect in now:
                if isinstance(effect, Send) and effect.to == "r2" and answering:
                    effects += self._answer(effect.message)
            effects += now
        return effects

    def _answer(self, message: Message) -> list[Effect]:
        match message:
            case Canvass():
                effects = self.say("r2", CanvassAnswer(message.ballot, True))
                effects += self.handle(Durable(self.out.token))
                return [*effects, *self._answer(Prepare(self.parts.memory.proposer.ballot, 1))]
            case Prepare():
                return self.say("r2", Promise(message.ballot, 1, [], 0))
            case Heartbeat():
                return self.say("r2", HeartbeatSeen(message.ballot, 0, message.number))
            case _:
                return []


def _decode(raw: msgspec.Raw) -> tuple[str, int]:
    return msgspec.msgpack.decode(raw, type=tuple[str, int])


def test_a_leader_that_nobody_answers_steps_down_and_breaks_its_links() -> None:
    bench = LeaderBench()
    bench.advance_and_answer(1_000 * MILLISECOND)
    assert bench.leads()
    effects = bench.advance_and_answer(2_000 * MILLISECOND)
    assert bench.leads()  # one of two others is enough
    assert not any(isinstance(effect, Disconnect) for effect in effects)
    effects = bench.advance_and_answer(700 * MILLISECOND, answering=False)
    assert not bench.leads()
    assert [effect.link for effect in effects if isinstance(effect, Disconnect)] == [1, 2]


def test_a_follower_that_hangs_is_not_counted_among_those_that_may_take_over() -> None:
    """Its links stay open: whoever looked at them was told that one more might fail."""
    bench = LeaderBench()
    while not bench.leads():
        bench.advance_and_answer(STEP)
    assert bench.parts.report.measure()["replica_survives"] == 1
    bench.advance_and_answer(1_000 * MILLISECOND)  # r2 answers, and r3 does not
    assert bench.leads()
    assert bench.parts.report.measure()["replica_peers"] == 2
    assert bench.parts.report.measure()["replica_survives"] == 0
