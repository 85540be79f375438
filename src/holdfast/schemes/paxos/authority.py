"""Authority: which ballots count here, those of others and our own next one.

A ballot counts among the voters that it is made for, and for the replica whose place it holds. One of older voters is
told so; if its voters are newer, we have to catch up first.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.errors import ProtocolError
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.schemes.paxos.ballots import EPOCH, PLACES, epoch_of, next_ballot
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import CanvassAnswer
from holdfast.schemes.paxos.notices import BallotOvertaken
from holdfast.schemes.paxos.proposer import Phase


class Stragglers(Protocol):
    """Who asks others for what they are ahead."""

    def later(self, out: Outbox) -> None: ...

    def ask(self, out: Outbox) -> None: ...


class Authority:
    """What is promised, what was seen, and who votes, taken together."""

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        catching_up: Stragglers,
    ) -> None:
        self._roster, self._peers, self._liveness = view.roster, view.peers, view.liveness
        self._acceptor, self._proposer, self._decided = memory.acceptor, memory.proposer, memory.decided
        self._catching_up = catching_up

    def is_of_our_time(self, peer: str, ballot: int, out: Outbox) -> bool:
        """Whether a leader, or one that wants to be, has the same voters as we. Raises ProtocolError if the ballot is
        another one's."""
        if not self._peers.hears(peer):
            return False
        epoch = ballot // EPOCH
        if epoch < self._roster.epoch:
            out.send(peer, CanvassAnswer(ballot, False, self.floor()), after=NOW)
            return False
        if epoch > self._roster.epoch:
            self._liveness.is_ahead(peer, self._decided.executed + 1)
            self._catching_up.later(out)
            return False
        if ballot % PLACES != self._roster.places.get(peer, -1):
            raise ProtocolError(f"ballot {ballot} is not {peer}'s")
        return True

    def takes_from(self, peer: str, ballot: int, out: Outbox) -> bool:
        """Whether a peer leads by this ballot, among the same voters; whoever leads below it does not any more."""
        if not self.is_of_our_time(peer, ballot, out):
            return False
        self._liveness.see(ballot)
        self.give_way(ballot, out)
        return True

    def give_way(self, ballot: int, out: Outbox) -> None:
        """Someone uses a ballot: we do not lead below it, nor want to."""
        if ballot > self._proposer.ballot and self._proposer.phase is not Phase.FOLLOWING:
            out.tell(BallotOvertaken())

    def floor(self) -> int:
        """What was promised; and that nothing below our epoch will be."""
        return max(self._acceptor.promised, next_ballot(0, 0, self._roster.epoch) if self._roster.epoch else 0)

    def is_outdated(self, out: Outbox) -> bool:
        """Whether the voters are others by now: all that we can do is to catch up."""
        if epoch_of(self._liveness.highest) <= self._roster.epoch:
            return False
        self._catching_up.ask(out)
        return True

    def next_ballot(self) -> int:
        above = max(self._liveness.highest, self._acceptor.promised)
        return next_ballot(above, self._roster.places.get(self._roster.name, -1), self._roster.epoch)
