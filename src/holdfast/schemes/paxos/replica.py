"""A replica as a sequencer: it decides the order of commands for the host on top (D4-A2, A9).

Every replica applies the same commands in the same order, and only the leader is asked. What is done about a command is
done below: by the leader, the voter and the learner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.liveness import Liveness
from holdfast.schemes.paxos.proposer import Proposer
from holdfast.schemes.paxos.roster import Roster


class FastProposals(Protocol):
    """Who takes what clients say to every replica."""

    @property
    def is_open(self) -> bool: ...

    def propose(self, command: msgspec.Raw) -> bool: ...


class Replica:
    """The sequencer of a broker's commands. `encode` is the application's: a command as bytes."""

    applies_at_once = False
    applied_is_safe = True
    shares_log = True

    def __init__(
        self,
        encode: Callable[[Any], bytes],
        roster: Roster,
        liveness: Liveness,
        proposer: Proposer,
        fast: FastProposals,
    ) -> None:
        self._encode = encode
        self._roster = roster
        self._liveness = liveness
        self._proposer = proposer
        self._fast = fast

    @property
    def is_serving(self) -> bool:
        return self._proposer.is_serving

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        """Where clients find the leader, if this replica knows of another that leads."""
        leader = self._liveness.leader
        if not leader or leader == self._roster.name:
            return ()
        address = self._roster.client_address(leader)
        return (address,) if address else ()

    def submit(self, command: Any, out: Outbox, known: object = None) -> None:
        """Puts a command in its place, some time. Without leading it is dropped: whoever asked will ask the leader."""
        if self._proposer.is_leading:
            self._proposer.submit(msgspec.Raw(self._encode(command)))

    @property
    def takes_direct(self) -> bool:
        """Whether clients may propose publications to every replica themselves (D4-A6)."""
        return self._fast.is_open

    @property
    def direct_addresses(self) -> tuple[str, ...]:
        """Where clients find the other replicas."""
        others = (self._roster.client_address(name) for name in self._roster.voters if name != self._roster.name)
        return tuple(address for address in others if address)

    def submit_direct(self, command: Any, out: Outbox) -> None:
        """What a client says to every replica itself. In classic rounds only the leader takes it."""
        raw = msgspec.Raw(self._encode(command))
        if not (self._fast.is_open and self._fast.propose(raw)) and self._proposer.is_leading:
            self._proposer.submit(raw)
