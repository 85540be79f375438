"""What operators ask of a group, as its log has it."""

from __future__ import annotations

from typing import Protocol, assert_never

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.operating.messages import ChangeGroup, GroupAction
from holdfast.schemes.paxos.membership import AddLearner, Cancel, Change, ChangeProtocol, Leave, Remove
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import Protocol as Rounds


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

    def change(self, asked: ChangeGroup, out: Outbox) -> str:
        """Gives what is against it."""
        change: Change
        match asked.action:
            case GroupAction.ADD | GroupAction.REPLACE:
                change = AddLearner(asked.id, asked.peer_address, asked.address, "", asked.replaces)
            case GroupAction.REMOVE:
                member = self._roster.find(asked.id)
                learns = member is not None and not member.votes
                change = Remove(asked.id) if learns else Leave(asked.id)
            case GroupAction.CANCEL:
                change = Cancel()
            case GroupAction.PROTOCOL:
                known = [rounds.value for rounds in Rounds]
                if asked.protocol not in known:
                    return f"there is no protocol {asked.protocol[:64]!r}; there is {', '.join(known)}"
                change = ChangeProtocol(Rounds(asked.protocol))
            case _:
                assert_never(asked.action)
        return self._leader.change(change, out)
