"""What operators ask of a group, as its log has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.operating.changes import misunderstood, shown
from holdfast.schemes.paxos.membership import AddLearner, Cancel, Change, ChangeProtocol, Leave, Remove
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import Protocol as Rounds

# What is told of each: `address` is where clients find a replica, `replaces` who goes for it.
ACTIONS: Final = {
    "add": ("id", "address", "peer_address"),
    "replace": ("id", "address", "peer_address", "replaces"),
    "remove": ("id",),
    "cancel": (),
    "protocol": ("protocol",),
}


class Leading(Protocol):
    """Who changes the group, if it leads."""

    def change(self, change: Change, out: Outbox) -> str: ...


class Electing(Protocol):
    """Who asks another replica to lead."""

    def transfer(self, to: str, out: Outbox) -> tuple[str, str]: ...


class GroupOperations:
    """By way of one of its replicas."""

    def __init__(self, roster: Roster, leader: Leading, elections: Electing) -> None:
        self._roster = roster
        self._leader = leader
        self._elections = elections

    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        return self._elections.transfer(to, out)

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        """Gives what is against it."""
        change = self._change_of(action, told)
        return change if isinstance(change, str) else self._leader.change(change, out)

    def _change_of(self, action: str, told: Mapping[str, str]) -> Change | str:
        """What is asked for; or why it is nothing."""
        problem = misunderstood(action, told, ACTIONS)
        if problem:
            return problem
        name = told.get("id", "")
        match action:
            case "remove":
                member = self._roster.find(name)
                learns = member is not None and not member.votes
                return Remove(name) if learns else Leave(name)
            case "cancel":
                return Cancel()
            case "protocol":
                known = [rounds.value for rounds in Rounds]
                protocol = told.get("protocol", "")
                if protocol not in known:
                    return f"there is no protocol {shown(protocol)}; there is {', '.join(known)}"
                return ChangeProtocol(Rounds(protocol))
            case _:
                return AddLearner(
                    name, told.get("peer_address", ""), told.get("address", ""), "", told.get("replaces", "")
                )
