"""What operators ask of a group, as its log has it."""

from __future__ import annotations

from typing import assert_never

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.operating.messages import ChangeGroup, GroupAction
from holdfast.protocols.paxos.membership import AddLearner, Cancel, Change, ChangeProtocol, Leave, Remove
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.settings import Protocol


class GroupOperations:
    """By way of one of its replicas."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        return self._replica.elections.transfer(to, out)

    def change(self, asked: ChangeGroup, out: Outbox) -> str:
        """Gives what is against it."""
        change: Change
        match asked.action:
            case GroupAction.ADD | GroupAction.REPLACE:
                change = AddLearner(asked.id, asked.peer_address, asked.address, "", asked.replaces)
            case GroupAction.REMOVE:
                member = self._replica.roster.find(asked.id)
                learns = member is not None and not member.votes
                change = Remove(asked.id) if learns else Leave(asked.id)
            case GroupAction.CANCEL:
                change = Cancel()
            case GroupAction.PROTOCOL:
                known = [protocol.value for protocol in Protocol]
                if asked.protocol not in known:
                    return f"there is no protocol {asked.protocol[:64]!r}; there is {', '.join(known)}"
                change = ChangeProtocol(Protocol(asked.protocol))
            case _:
                assert_never(asked.action)
        return self._replica.change(change, out)
