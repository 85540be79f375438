"""The count of votes in fast rounds: what is decided there, and what a leader may make of it (D4-B4).

Votes come as digests; the values come from elsewhere: from the client, from the leader, or out of one's own vote.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from holdfast.schemes.paxos.messages import Value, digest_of_value
from holdfast.schemes.paxos.roster import Roster

VALUES_MAX: Final = 2_048
VALUE_BYTES_MAX: Final = 16 * 1024 * 1024
RECENT_MAX: Final = 4_096


class VoteCount:
    """Votes by slot and ballot, and the values that they may be for. `unknown` are slots that are decided, and whose
    value is not known; `is_used`: there are fast rounds here."""

    def __init__(self, roster: Roster) -> None:
        self.is_used = False
        self._is_open = False  # fast rounds were opened, whether someone has voted there or not
        self._found: dict[int, Value] = {}  # slots that are decided here, and were not fetched
        self.unknown: dict[int, bytes] = {}  # slot → digest
        self._roster = roster
        self._votes: dict[int, dict[int, dict[str, bytes]]] = {}  # slot → ballot → voter → digest
        self._values: dict[bytes, Value] = {}
        self._bytes = 0
        self._recent: dict[bytes, bool] = {}  # digests of what was executed lately → whether its proposal has come

    # -------------------------------------------------------------------------------------------------------- values
    def know(self, value: Value) -> bytes:
        """A value that votes may be for. Gives its digest."""
        digest = digest_of_value(value)
        if digest not in self._values:
            self._values[digest] = value.copy()
            self._bytes += len(value)
            # Executed ones too: the same value may have votes in another slot.
            while self._bytes > VALUE_BYTES_MAX or len(self._values) > VALUES_MAX:
                self._bytes -= len(self._values.pop(next(iter(self._values))))
            for slot in [slot for slot, wanted in self.unknown.items() if wanted == digest]:
                self._found[slot] = value
                del self.unknown[slot]
        return digest

    def value(self, digest: bytes) -> Value | None:
        return self._values.get(digest)

    def was_executed(self, digest: bytes) -> bool:
        """Whether the value was executed lately, or is about to be: a proposal that comes late is not voted for."""
        return digest in self._recent or digest in self.unknown.values()

    def is_late(self, digest: bytes) -> bool:
        """Whether a proposal of what was executed comes for the first time since: others have been quicker. The next
        time it is said again, for want of an answer."""
        late = not self._recent.get(digest, False)
        if digest in self._recent:
            self._recent[digest] = True
        return late

    # --------------------------------------------------------------------------------------------------------- votes
    def vote(self, ballot: int, slot: int, voter: str, digest: bytes) -> None:
        """Someone has voted, safely. In one fast round nobody votes twice."""
        self.is_used = True
        votes = self._votes.setdefault(slot, {}).setdefault(ballot, {})
        if voter in votes:
            return
        votes[voter] = digest
        if sum(other == digest for other in votes.values()) >= self._roster.fast_quorum:
            value = self._values.get(digest)
            if value is None:
                self.unknown[slot] = digest
            else:
                self._found[slot] = value

    def take_found(self) -> dict[int, Value]:
        """Slots that were decided since it was last asked, with their values."""
        found, self._found = self._found, {}
        return found

    def votes(self, ballot: int, slot: int) -> dict[str, bytes]:
        return self._votes.get(slot, {}).get(ballot, {})

    def is_split(self, ballot: int, slot: int) -> bool:
        """Whether nothing can be decided in the round any more, whatever those do who have not voted."""
        votes = self.votes(ballot, slot)
        most = max(Counter(votes.values()).values(), default=0)
        return most + len(self._roster.voters) - len(votes) < self._roster.fast_quorum

    def use(self) -> None:
        """Fast rounds are open."""
        self.is_used = self._is_open = True

    # ------------------------------------------------------------------------------------------------------ forgetting
    def executed(self, slot: int, value: Value) -> bytes:
        """The slot is behind us. Gives the digest of its value."""
        digest = digest_of_value(value)
        self._recent.setdefault(digest, digest in self._values)
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        self._votes.pop(slot, None)
        self._found.pop(slot, None)
        self.unknown.pop(slot, None)
        self.is_used = self._is_open or bool(self._votes)
        return digest

    def forget_votes(self) -> None:
        """The voters are others now: what the ones before voted for and did not decide counts no more."""
        self._votes.clear()
        self.unknown.clear()
        self.is_used = self._is_open

    def skip_to(self, slot: int) -> None:
        """All up to the slot is executed, by a snapshot."""
        for table in (self._votes, self._found, self.unknown):
            for old in [old for old in table if old <= slot]:
                del table[old]
        self.is_used = self._is_open or bool(self._votes)
