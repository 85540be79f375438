"""What a replica is told. Times are nanoseconds."""

from __future__ import annotations

import enum
from typing import Annotated, Final

import msgspec

from holdfast.kernel.settings import Setting, milliseconds
from holdfast.kernel.time import MILLISECOND

PIPELINE_MAX: Final = 1_000


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
    """The settings of one replica. `members` are those that the group begins with; `spares` may be added later."""

    name: str
    members: tuple[Member, ...]
    protocol: Annotated[
        Protocol,
        Setting(
            "protocol",
            '"batch": all that waits is decided at once; "multi": each on its own; "fast": as "batch", and clients'
            " propose to all replicas, where enough of them are there",
        ),
    ] = Protocol.BATCH
    # Slots that may be undecided at once: the papers' alpha.
    pipeline: Annotated[int, Setting("pipeline", "decisions that are under way at once", most=PIPELINE_MAX)] = 10
    batch_commands: Annotated[int, Setting("batch_commands", "that are decided at once, at most", most=65_536)] = 256
    batch_bytes: int = 256 * 1024
    heartbeat: Annotated[int, milliseconds("heartbeat_ms", "between the leader's signs of life")] = 50 * MILLISECOND
    # If heartbeats come regularly …
    patience: Annotated[int, milliseconds("patience_ms", "without a heartbeat, before a replica wants to lead")] = (
        300 * MILLISECOND
    )
    patience_max: int = 2_000 * MILLISECOND  # … and at most, if they do not
    stagger: int = 20 * MILLISECOND  # between replicas that want to lead after a link broke
    recover_after: int = 5 * MILLISECOND  # without a decision in a fast round, before the leader looks into it
    fast_pause: int = 1_000 * MILLISECOND  # without fast rounds after they did not pay off; the double each time …
    fast_pause_max: int = 30_000 * MILLISECOND  # … up to this
    time_every: int = 1_000 * MILLISECOND  # says the leader what time it is, in fast rounds: what clients say has none
    direct_max: int = 1_024  # proposals of clients that wait for a slot here
    repeat_after: int = 100 * MILLISECOND
    dial_every: int = 200 * MILLISECOND
    # Between snapshots: so many slots …
    trim_every: Annotated[int, Setting("trim_every", "decisions between two snapshots, at most")] = 2_000
    trim_bytes: int = 16 * 1024 * 1024  # … or bytes that were decided
    # … but so many times as many bytes as the last snapshot had, so that large ones are rare.
    trim_ratio: Annotated[
        int, Setting("trim_ratio", "and at least so many times as many bytes as the last snapshot had", least=0)
    ] = 1
    trim_keep: Annotated[
        int, Setting("trim_keep", "decisions that are kept in memory for replicas that lag", least=0)
    ] = 500
    part_bytes: Annotated[
        int, Setting("part_bytes", "of a snapshot, or of decisions, in one message", least=1_024, most=8 * 1024 * 1024)
    ] = 256 * 1024
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
