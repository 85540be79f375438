"""What a replica is told. Times are nanoseconds."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from holdfast.kernel.time import MILLISECOND


class Protocol(enum.Enum):
    """How requests become values (D4-A4)."""

    MULTI = "multi"  # one request a slot
    BATCH = "batch"  # all that wait, in one slot
    FAST = "fast"  # clients propose to all replicas themselves; what the leader proposes, as in a batch


CLASSIC: Final = (Protocol.MULTI, Protocol.BATCH)


class Member(msgspec.Struct, frozen=True, gc=False):
    """One replica of the group: where the others find it, and where clients do."""

    name: str
    peer_address: str
    client_address: str


class PaxosSettings(msgspec.Struct, frozen=True):
    """`members` are those that the group begins with; `spares` may be added later."""

    name: str
    members: tuple[Member, ...]
    protocol: Protocol = Protocol.BATCH
    pipeline: int = 10  # slots that may be undecided at once: the papers' alpha
    batch_commands: int = 256
    batch_bytes: int = 256 * 1024
    heartbeat: int = 50 * MILLISECOND
    patience: int = 300 * MILLISECOND  # without a heartbeat, before a replica wants to lead, if they come regularly …
    patience_max: int = 2_000 * MILLISECOND  # … and at most, if they do not
    stagger: int = 20 * MILLISECOND  # between replicas that want to lead after a link broke
    recover_after: int = 5 * MILLISECOND  # without a decision in a fast round, before the leader looks into it
    fast_pause: int = 1_000 * MILLISECOND  # without fast rounds after they did not pay off; the double each time …
    fast_pause_max: int = 30_000 * MILLISECOND  # … up to this
    time_every: int = 1_000 * MILLISECOND  # says the leader what time it is, in fast rounds: what clients say has none
    direct_max: int = 1_024  # proposals of clients that wait for a slot here
    repeat_after: int = 100 * MILLISECOND
    dial_every: int = 200 * MILLISECOND
    trim_every: int = 2_000  # slots, between snapshots …
    trim_bytes: int = 16 * 1024 * 1024  # … or bytes that were decided
    trim_ratio: int = 1  # but so many times as many bytes as the last snapshot had, so that large ones are rare
    trim_keep: int = 500  # slots that are kept in memory for those who lag
    part_bytes: int = 256 * 1024  # of a snapshot, or of decided values, in one message
    unread_bytes_max: int = 32 * 1024 * 1024  # that wait for a replica that does not read; more is not said to it
    invited_within: int = 30_000 * MILLISECOND  # for a replica that is to be added to answer
    caught_up_slots: int = 64  # so far behind, and less, a learner is when it comes to vote
    spares: tuple[Member, ...] = ()
    rules: tuple[tuple[str, int | str], ...] = ()  # of the application: what comes of commands depends on them

    def terms(self) -> dict[str, str]:
        """What all replicas must have alike when they form a group. A ballot holds a place among the members, so their
        order counts: with two orders two replicas would use the same ballot. With other rules the same commands would
        have other results, also later; members and protocol are changed by the log then, and by nothing else."""
        members = ", ".join(member.name for member in self.members)
        rules = {name: str(value) for name, value in self.rules}
        return {"members": members, "protocol": self.protocol.value, **rules}
