"""All agree that a broker is replaced, and how: the directory of a site that has no group for it (D0-A10).

Who is next to whom, the site file says, and the map that follows from it: each member knows it. To let only one map
follow another, whoever makes it asks all members but the one that failed. Each agrees to one map after its own, and has
that on its disk; it disagrees if it hears from the broker itself, which it calls for that if it is no neighbour, or has
another map. So two maps never follow one, and a part of the network that is cut off replaces nobody: the others do not
answer. That is also so when two have failed at once: then it is for a directory in a group, or for an operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, TypeAlias

import msgspec

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.flaws import flaw, is_name
from holdfast.protocols.routing.network_map import (
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    ReplaceBroker,
    StandInProtocol,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.directory import Answer
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.messages import (
    AskConsent,
    Consented,
    ConsentQuestioned,
    ConsentReturned,
    Promised,
    short,
)
from holdfast.schemes.tree.standin.cycle.notices import Looked

BROKERS: Final = frozenset({Role.BROKER})
AGREED_WITHIN: Final = 8 * SECOND
ASKED_EVERY: Final = SECOND // 2
QUESTIONED_EVERY: Final = 2 * SECOND


Wish: TypeAlias = ReplaceBroker | RemoveBroker


class Asking:
    """What this broker asks the others to agree to."""

    def __init__(self, before: NetworkMap, change: Wish, after: NetworkMap, others: list[str], now: int) -> None:
        self.before = before
        self.change = change
        self.after = after
        self.digest = after.digest
        self.waiting = dict.fromkeys(others)
        self.begun = now
        self.asked_at = now - ASKED_EVERY
        self.problem = ""

    def was_asked(self, now: int) -> None:
        self.asked_at = now

    def object(self, problem: str) -> None:
        self.problem = problem


class Agreement(Part):
    """Asks for one thing at a time."""

    name: ClassVar[str] = "agreement"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (AskConsent, Consented, ConsentQuestioned, ConsentReturned), BROKERS
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (Looked,)
    due = False

    def __init__(self, roster: Roster, calls: Calls, memory: Memory) -> None:
        self._roster = roster
        self._calls = calls
        self._memory = memory
        self._asking: Asking | None = None
        self._questioned_at = 0

    # ------------------------------------------------------------------------------------------------------- asking
    @property
    def is_asking(self) -> bool:
        return self._asking is not None

    def obstacle(self, before: NetworkMap, faulty: str, out: Outbox) -> str | None:
        others = self._others(before, faulty)
        if 2 * (len(others) + 1) <= len(before.names):
            return "of two brokers nobody can tell which of them failed: say it by `holdfast standin replace … --by`"
        silent = [name for name in others if not self._calls.reach(name, out)]
        if absent := [name for name in silent if self._calls.is_absent(name)]:
            return _not_there(absent)
        return None if silent else ""

    def _others(self, before: NetworkMap, faulty: str) -> list[str]:
        return [name for name in before.names if name not in (faulty, self._roster.name)]

    def begin(self, before: NetworkMap, change: Wish, after: NetworkMap, out: Outbox) -> str:
        """Asks all others; gives what is against it at once."""
        others = self._others(before, change.name)
        if 2 * (len(others) + 1) <= len(before.names):
            return "of two brokers nobody can tell which of them failed: say it by `holdfast standin replace … --by`"
        if problem := self._promise(before.number, self._roster.name, after.digest, out):
            return problem
        self._asking = Asking(before, change, after, others, out.now)
        return ""

    def look(self, out: Outbox) -> Answer:
        asking = self._asking
        if asking is None:
            return Answer(problem="nobody was asked")
        if not asking.waiting:
            self._asking = None
            return Answer(asking.after)
        absent = [name for name in asking.waiting if not self._calls.reach(name, out) and self._calls.is_absent(name)]
        if absent and not asking.problem:
            asking.object(_not_there(absent))
        if asking.problem or out.now - asking.begun >= AGREED_WITHIN:
            problem = asking.problem or f"{', '.join(asking.waiting)} did not answer in time"
            self.give_up(out)
            return Answer(problem=problem)
        if out.now - asking.asked_at >= ASKED_EVERY:
            asking.was_asked(out.now)
            self._ask(asking, out)
        return Answer()

    def _ask(self, asking: Asking, out: Outbox) -> None:
        before, by, protocol = asking.before, None, StandInProtocol.SYNCH
        match asking.change:
            case ReplaceBroker() as change:
                by = NetworkMember(change.by, change.client_address, change.peer_address)
                protocol = change.protocol
            case _:
                pass
        said = AskConsent(
            before.number, before.digest, asking.begun, asking.change.name, by, protocol, asking.digest
        )  # fmt: skip
        for name in asking.waiting:
            if self._calls.reach(name, out):
                out.send(name, said)

    def give_up(self, out: Outbox) -> None:
        """Nothing comes of what was asked."""
        asking, self._asking = self._asking, None
        if asking is None:
            return
        for name in asking.before.names:
            if name != self._roster.name and self._calls.reach(name, out):
                out.send(name, ConsentReturned(asking.before.number, asking.digest), after=NOW)
        self._return(asking.before.number, self._roster.name, asking.digest, out)

    def on_consented(self, peer: str, said: Consented, out: Outbox) -> None:
        asking = self._asking
        if asking is None or (said.number, said.after, said.round) != (
            asking.before.number, asking.digest, asking.begun,
        ):  # fmt: skip
            return
        if said.problem:
            asking.object(f"{peer} does not agree: {short(said.problem)}")
        else:
            asking.waiting.pop(peer, None)

    # -------------------------------------------------------------------------------------------------- being asked
    def on_ask_consent(self, peer: str, asked: AskConsent, out: Outbox) -> None:
        by = asked.by
        if not is_name(asked.faulty) or (by is not None and not is_name(by.name)) or len(asked.after) > 64:
            raise ProtocolError("nobody is replaced so")
        problem = self._against(peer, asked)
        if not problem:
            if self._calls.reach(asked.faulty, out):
                problem = f"hears from {asked.faulty}"
            elif not self._calls.is_absent(asked.faulty):
                return  # it is called, or has a link and says nothing yet; who asks will ask again
        problem = problem or self._promise(asked.number, peer, asked.after, out)
        out.send(peer, Consented(asked.number, asked.after, asked.round, problem))  # when the disk here knows it

    def _against(self, peer: str, asked: AskConsent) -> str:
        network = self._roster.map
        if (asked.number, asked.digest) != (network.number, network.digest):
            return f"has map {network.number}"
        if network.find(peer) is None or not self._roster.is_member:
            return "only members agree on something"
        if asked.faulty == self._roster.name:
            return "is there"
        by = asked.by
        changes: list[Wish] = [RemoveBroker(asked.faulty, lost=True)]
        if by is not None:  # whether an operator wants it is in the map, too
            change = ReplaceBroker(asked.faulty, by.name, by.client_address, by.peer_address, asked.protocol)
            changes = [change, msgspec.structs.replace(change, asked=True)]
        if problem := objection(network, changes[0], False):
            return problem
        after = next((map for each in changes if (map := planned(network, each)).digest == asked.after), None)
        return "would make another map of it" if after is None else flaw(after)

    def _promise(self, number: int, maker: str, after: str, out: Outbox) -> str:
        """To one maker at a time; that one may have another thing in mind by now, since it knows what came of the
        first."""
        promised = self._memory.promised
        if promised is not None and promised.number == number and promised.maker != maker and self._holds(promised):
            if promised.maker != self._roster.name and self._calls.reach(promised.maker, out):
                out.send(promised.maker, ConsentQuestioned(number, promised.after), after=NOW)
            return f"has agreed to something else that {promised.maker} asked for"
        self._memory.promise(Promised(number, maker, after), out)
        return ""

    def _holds(self, promised: Promised) -> bool:
        """Of its own wishes from before a restart, a broker knows that nothing came."""
        return promised.maker != self._roster.name or self._asking is not None

    def on_looked(self, looked: Looked, out: Outbox) -> None:
        """What was agreed to here keeps operators and hand-backs waiting: whether it is still wanted is asked now and
        then."""
        maker, promised = self._memory.promised_to(self._roster.map.number), self._memory.promised
        if promised is None or not maker:
            self._questioned_at = out.now
        elif out.now - self._questioned_at >= QUESTIONED_EVERY and self._calls.reach(maker, out):
            self._questioned_at = out.now
            out.send(maker, ConsentQuestioned(promised.number, promised.after), after=NOW)

    def on_consent_questioned(self, peer: str, questioned: ConsentQuestioned, out: Outbox) -> None:
        """That it is not wanted any more may have been said, and lost. What was made of it is told by its map."""
        asking, meant = self._asking, (questioned.number, questioned.after)
        is_wanted = asking is not None and (asking.before.number, asking.digest) == meant
        if not is_wanted and self._roster.map.number == questioned.number:
            out.send(peer, ConsentReturned(questioned.number, questioned.after), after=NOW)

    def on_consent_returned(self, peer: str, returned: ConsentReturned, out: Outbox) -> None:
        self._return(returned.number, peer, returned.after, out)

    def _return(self, number: int, maker: str, after: str, out: Outbox) -> None:
        if self._memory.promised == Promised(number, maker, after):
            self._memory.promise(None, out)


def _not_there(names: list[str]) -> str:
    return f"{', '.join(names)} can't be asked: more than one broker is down, or the network is split"
