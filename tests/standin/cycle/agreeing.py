"""A world for `Agreement`: members that ask each other over links which lose what is under way, with disks that are
late, restarts, and makers who believe in different failures.

Links keep what the kernel promises of them: what waits for the disk leaves in order, and so does what does not; of what
is under way only the end is lost.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, Final

from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import NOW, RecordingOutbox, Send, Snapshot
from holdfast.kernel.parts import handler_name
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.network_map import (
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    ReplaceBroker,
    StandInMode,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.agreement import Agreement
from holdfast.schemes.tree.standin.cycle.case import wanted
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.messages import Consented
from holdfast.topology.generators import Kind, links_of

SPARES: Final = ("s1", "s2")
MAP: Final = "map"  # a stream, and what tells one


class Told(Message, frozen=True):
    """A map, told to another member."""

    map: NetworkMap


class Kept(Record, frozen=True):
    """A map on a disk."""

    map: NetworkMap


class Reach:
    """What `Calls` say."""

    def __init__(self, world: AgreeingWorld, name: str) -> None:
        self._world, self._name = world, name

    def reach(self, peer: str, out: Any, address: str = "") -> bool:
        is_cut = frozenset((self._name, peer)) in self._world.cut
        return not (is_cut or peer in self._world.down or self._is_deaf_to(peer))

    def is_absent(self, peer: str) -> bool:
        return peer in self._world.down or self._is_deaf_to(peer)

    def _is_deaf_to(self, peer: str) -> bool:
        return peer in self._world.members[self._name].deaf_to


class Member:
    """A broker, or what there is of it for `Agreement`."""

    def __init__(self, world: AgreeingWorld, name: str, network: NetworkMap) -> None:
        self.world, self.name, self.founding = world, name, network
        self.deaf_to: dict[str, None] = {}  # those that it believes to have failed
        self.disk: dict[str, Record] = {}
        self.pending: deque[Snapshot | Send] = deque()  # what is to be written, and what waits for it
        self.change: Any = None  # that it asks for
        self.start()

    def start(self) -> None:
        """Of what was not on the disk nothing is left."""
        self.pending.clear()
        self.out = RecordingOutbox()
        kept = self.disk.get(MAP)
        self.roster = Roster(self.name, kept.map if isinstance(kept, Kept) else self.founding, {})
        streams: Any = {stream: [record] for stream, record in self.disk.items() if stream != MAP}
        self.memory = self.world.memory(self.name, True, streams)
        calls: Any = Reach(self.world, self.name)
        self.agreement = self.world.agreement(self.roster, calls, self.memory)

    # -------------------------------------------------------------------------------------------------------- turns
    def begin_turn(self) -> RecordingOutbox:
        self.out.begin(self.world.now, self.world.now)
        return self.out

    def end_turn(self) -> None:
        for effect in self.out.take_effects():
            match effect:
                case Send(after=after) if after is NOW or not self.pending:
                    self._leave(effect)
                case Send() | Snapshot():
                    self.pending.append(effect)
                case _:
                    pass

    def write(self) -> None:
        """The disk has one thing more, and what waited for it leaves."""
        if self.pending:
            effect = self.pending.popleft()
            if isinstance(effect, Snapshot):
                self.disk[effect.stream] = effect.record
                if isinstance(effect.record, Kept):
                    self.world.made_by(self, effect.record.map)
            else:
                self._leave(effect)
        while self.pending and isinstance(self.pending[0], Send):
            self._leave(self.pending.popleft())  # type: ignore[arg-type]

    def _leave(self, send: Send) -> None:
        self.world.links.setdefault((self.name, send.to), deque()).append(send.message)

    # ------------------------------------------------------------------------------------------------- what it does
    def begin(self, faulty: str, by: str) -> str:
        """Asks the others; gives what is against it."""
        network, out = self.roster.map, self.begin_turn()
        how = wanted(faulty, StandInMode.FAILOVER, self.world.protocol)
        change: Any = RemoveBroker(faulty, lost=True)
        if by:
            change = ReplaceBroker(faulty, by, by, by, how.protocol, how.mode)
        problem = "no member" if not self.roster.is_member or network.find(faulty) is None else ""
        problem = problem or objection(network, change, False)
        problem = problem or self.agreement.begin(network, change, planned(network, change), out)
        self.end_turn()
        return problem

    def look(self) -> str:
        """What is against what it asks for; makes the map when all agree."""
        if not self.agreement.is_asking:
            return ""
        out = self.begin_turn()
        before, answer = self.roster.map, self.agreement.look(out)
        if answer.map is not None:
            self.world.before[answer.map.digest] = before
            self._take_up(answer.map)
        self.end_turn()
        return answer.problem

    def give_up(self) -> None:
        self.agreement.give_up(self.begin_turn())
        self.end_turn()

    def hear(self, peer: str, message: Message) -> None:
        self.begin_turn()
        if isinstance(message, Told):
            if message.map.number > self.roster.map.number:
                self._take_up(message.map)
        else:
            getattr(self.agreement, handler_name(type(message)))(peer, message, self.out)
        self._look_at_consent()
        self.end_turn()

    def _look_at_consent(self) -> None:
        for effect in self.out.effects:
            if isinstance(effect, Send) and isinstance(effect.message, Consented) and not effect.message.problem:
                promised = self.memory.promised
                assert promised is not None
                self.world.consents += 1

    def take_up(self, network: NetworkMap) -> None:
        self.begin_turn()
        self._take_up(network)
        self.end_turn()

    def _take_up(self, network: NetworkMap) -> None:
        """As the mapping does: on the disk before anyone hears of it; and the steward gives up what it wanted."""
        self.out.snapshot(MAP, Kept(network))
        self.roster.adopt(network)
        self.agreement.give_up(self.out)

    def tell(self, other: str) -> None:
        """Its map, to another one."""
        self.begin_turn().send(other, Told(self.roster.map))
        self.end_turn()


class AgreeingWorld:
    """Draws what happens; says what went wrong."""

    def __init__(
        self, rng: Random, members: int, agreement: type[Agreement] = Agreement, memory: type[Memory] = Memory
    ) -> None:
        self.rng, self.agreement, self.memory = rng, agreement, memory
        self.now = SECOND
        self.protocol = wanted("", StandInMode.FAILOVER, _synch()).protocol
        self.links: dict[tuple[str, str], deque[Message]] = {}
        self.cut: set[frozenset[str]] = set()
        self.down: dict[str, None] = {}
        self.before: dict[str, NetworkMap] = {}  # by the digest of the one that follows
        self.follows: dict[str, dict[str, str]] = {}  # map → those that follow it → who made each
        self.consents = 0
        self.wrong = ""
        names = [f"b{number}" for number in range(1, members + 1)]
        network = founding_map(
            [NetworkMember(name, name, name) for name in names], links_of(Kind.RANDOM_TREE, names, rng)
        )
        self.members = {name: Member(self, name, network) for name in (*names, *SPARES)}
        self.names = names
        for faulty in rng.sample(names, rng.choice((1, 1, 2))):  # that most believe to have failed
            for name in names:
                if name != faulty and rng.random() < 0.8:
                    self.members[name].deaf_to[faulty] = None

    def made_by(self, member: Member, network: NetworkMap) -> None:
        """A map is on the disk of a member: now it counts."""
        if network.digest not in self.before:
            return  # the stand-in has learned: that is asked of nobody
        before = self.before[network.digest]
        follows = self.follows.setdefault(before.digest, {})
        follows.setdefault(network.digest, member.name)
        if len(follows) > 1 and not self.wrong:
            self.wrong = (
                f"of map {before.number} there are {len(follows)} that follow, by {', '.join(follows.values())}"
            )

    # ------------------------------------------------------------------------------------------------ what happens
    def step(self) -> None:
        rng, choices = self.rng, ["hear"] * 36 + ["write"] * 24 + ["look"] * 8 + ["tell"] * 4 + ["done"] * 2
        choices += ["begin"] * 4 + ["give up", "give up", "restart", "lose", "deaf"]
        what, name = rng.choice(choices), rng.choice(self.names)
        member = self.members[name]
        match what:
            case "hear":
                self._hear()
            case "write":
                self._write()
            case "tell":
                member.tell(rng.choice([other for other in self.members if other != name]))
            case "look":
                self.now += rng.choice((SECOND // 8, SECOND // 4, SECOND // 4, 3 * SECOND))
                for each in self.members.values():
                    each.look()
            case "done":
                self._do_step()
            case "begin":
                self._begin(member)
            case "give up":
                asking = rng.choice([one for one in self.members.values() if one.agreement.is_asking] or [member])
                asking.give_up()
                self._begin(asking)
            case "restart":
                late = [one.name for one in self.members.values() if one.pending and one.name in self.names]
                self.restart(rng.choice(late or [name]))  # the disk is to matter
            case "lose":
                self._lose()
            case _:
                self._turn_deaf(member)

    def _write(self) -> None:
        if waiting := [member for member in self.members.values() if member.pending]:
            self.rng.choice(waiting).write()

    def _hear(self) -> None:
        if waiting := [ends for ends, link in self.links.items() if link]:
            source, target = self.rng.choice(waiting)
            self.members[target].hear(source, self.links[source, target].popleft())

    def _begin(self, member: Member) -> None:
        """One asks for what it believes in."""
        network = member.roster.map
        believed = [name for name in member.deaf_to if network.find(name) is not None]
        if believed and not member.agreement.is_asking:
            member.begin(self.rng.choice(believed), self.rng.choice((*SPARES, "")))

    def _do_step(self) -> None:
        """A stand-in has learned everything."""
        for member in self.members.values():
            network = member.roster.map
            if network.steps and network.maker == member.name:
                member.take_up(done(network))

    def _lose(self) -> None:
        """A link breaks: of what is under way the end is lost."""
        if waiting := [link for link in self.links.values() if link]:
            link = self.rng.choice(waiting)
            for _ in range(self.rng.randint(1, len(link))):
                link.pop()

    def _turn_deaf(self, member: Member) -> None:
        other = self.rng.choice([name for name in self.names if name != member.name])
        if other in member.deaf_to:
            del member.deaf_to[other]
        else:
            member.deaf_to[other] = None

    def restart(self, name: str) -> None:
        for (source, target), link in self.links.items():
            if target == name:
                link.clear()
            elif source == name:
                for _ in range(self.rng.randint(0, len(link))):
                    link.pop()
        self.members[name].start()

    # ------------------------------------------------------------------------------------------------------ in peace
    def fail(self, faulty: str) -> None:
        """All the others hear nothing of one broker, and hear each other."""
        self.down = {faulty: None}
        for member in self.members.values():
            member.deaf_to = {faulty: None}

    def tell_all(self, network: NetworkMap) -> None:
        """All have the newest map."""
        for member in self.members.values():
            if member.roster.map != network:
                member.take_up(network)
        self.settle()

    def settle(self) -> None:
        """All that is under way comes, and all that is to be written is."""
        for _ in range(10_000):
            for member in self.members.values():
                while member.pending:
                    member.write()
            if not any(self.links.values()):
                return
            self._hear()
        raise AssertionError("they never stop talking")

    def ask_in_peace(self, maker: str, faulty: str, by: str) -> str:
        """One asks, and nothing is lost: what is against it, once it has ended; `-` if it never does."""
        if problem := self.members[maker].begin(faulty, by):
            self.settle()
            return problem
        for _ in range(60):
            self.settle()
            problem = self.members[maker].look()
            if problem or not self.members[maker].agreement.is_asking:
                self.settle()
                return problem
            self.now += SECOND // 4
        return "-"


def _synch() -> Any:
    return ReplaceBroker("", "", "", "").protocol
