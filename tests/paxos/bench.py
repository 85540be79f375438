"""One replica on a bench: its peers are the test, which says what they say, and its disk is quick."""

from __future__ import annotations

from random import Random
from typing import Any

from holdfast.kernel.inputs import Durable, Input, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Append, RecordingOutbox, Send, Snapshot
from holdfast.kernel.parts import Assembly
from holdfast.schemes.paxos.holdings import NoHoldings
from holdfast.schemes.paxos.membership import founders
from holdfast.schemes.paxos.messages import Canvass, CanvassAnswer, Greeting, Prepare, Promise, Vote
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from tests.paxos.ledger import Ledger, make_parts

DISK = "disk-0"
PART_OF_TIMER = {"behind": "catching-up", "greet": "peers", "dial": "peers", "recover": "coordinator"}
PART_OF_TIMER |= {"beat": "elections", "patience": "elections", "repeat": "leader"}


class Bench:
    """The replica `r0` of three, or whatever is wanted. `streams` is its disk; what is appended is safe at once."""

    def __init__(self, members: int = 3, streams: dict[str, list[Record]] | None = None, **settings: Any) -> None:
        names = [f"r{n}" for n in range(members)]
        self.peers = names[1:]
        self.streams: dict[str, list[Record]] = streams if streams is not None else {}
        self.ledger = Ledger()
        group = tuple(Member(name, name, name) for name in names)
        self.settings = PaxosSettings("r0", group, **settings)
        self.holdings = NoHoldings()
        self.parts = make_parts(self.settings, self.ledger, Random(1), self.streams, holdings=self.holdings)
        self.replica = self.parts.replica
        self._node = Assembly(self.parts.parts)
        self.out = RecordingOutbox()
        self.disks = dict.fromkeys(names, DISK)
        self.members = tuple(names)
        self.supporters: list[str] = []  # of a candidate, beside `r1`
        self.handle(Started(1, DISK))

    def handle(self, *inputs: Input) -> list[Send]:
        """What is sent because of the inputs, and of what became durable."""
        sent: list[Send] = []
        todo = list(inputs)
        while todo:
            self._node.handle(todo, self.out)
            self._node.check_invariants()
            effects = self.out.take_effects()
            sent += [effect for effect in effects if isinstance(effect, Send)]
            todo = [Durable(self.out.token)] if self.out.stored else []
            for operation in self.out.stored:
                if isinstance(operation, Append | Snapshot):
                    kept = self.streams.setdefault(operation.stream, [])
                    if isinstance(operation, Snapshot):
                        kept.clear()
                    kept.append(operation.record)
            self.out.stored.clear()
        return sent

    def say(self, peer: str, *messages: Message) -> list[Send]:
        return self.handle(Received(self.peers.index(peer) + 1, peer, list(messages)))

    def fire(self, name: str, after_ms: int = 0) -> list[Send]:
        self.out.now += after_ms * 1_000_000
        return self.handle(TimerFired((PART_OF_TIMER[name], name)))

    def link(self) -> None:
        for link, peer in enumerate(self.peers, 1):
            self.handle(LinkUp(link, peer, 1, Role.BROKER, True))

    def greeting(self, formed: bool = True, hears: bool = False, confirmed: bool = False) -> Greeting:
        """What a peer with the same site file says."""
        settings = self.settings
        membership = founders(settings.members, self.disks, settings.protocol) if confirmed else None
        return Greeting(DISK, self.disks if formed else {}, hears, confirmed, settings.terms(), membership)

    def meet(self) -> None:
        """Links to all, and a group that is formed."""
        self.link()
        for peer in self.peers:
            self.say(peer, self.greeting(hears=True))

    def canvass(self) -> int:
        """Wants to lead, and `r1` has nothing against it. Gives the ballot that is prepared."""
        sent = self.fire("patience", 2_000)
        canvass = next(send.message for send in sent if isinstance(send.message, Canvass))
        sent = self.say("r1", CanvassAnswer(canvass.ballot, True))
        for peer in self.supporters:
            sent += self.say(peer, CanvassAnswer(canvass.ballot, True))
        return next(send.message.ballot for send in sent if isinstance(send.message, Prepare))

    def lead(self, executed: int = 0, votes: list[Vote] | None = None) -> int:
        """Is elected by `r1`, which has executed so much and voted so, and by as many others as are needed, which have
        not. Gives the ballot."""
        more = self.peers[1 : len(self.members) // 2]
        self.supporters = more
        ballot = self.canvass()
        self.say("r1", Promise(ballot, self.parts.memory.decided.executed + 1, votes or [], executed))
        for peer in more:
            self.say(peer, Promise(ballot, self.parts.memory.decided.executed + 1, [], 0))
        assert self.parts.memory.proposer.is_leading
        return ballot


def messages(sent: list[Send], kind: type[Message]) -> list[Any]:
    return [send.message for send in sent if type(send.message) is kind]
