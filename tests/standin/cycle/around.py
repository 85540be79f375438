"""What stands around a part of the cycle, in tests of that part alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.outbox import Outbox, RecordingOutbox, Send
from holdfast.protocols.routing.network_map import Link, NetworkMap, NetworkMember, founding_map
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.levels import Cause, Complaint

STAR: Sequence[Link] = [("n1", "f"), ("f", "n2"), ("f", "n3")]
CHAIN: Sequence[Link] = [("n1", "f"), ("f", "n2"), ("n2", "n3")]


def network(links: Sequence[Link] = STAR) -> NetworkMap:
    names = dict.fromkeys(name for link in links for name in link)
    return founding_map([NetworkMember(name, f"c-{name}", name) for name in names], links)


def roster(name: str, links: Sequence[Link] = STAR) -> Roster:
    return Roster(name, network(links), {})


def at(out: RecordingOutbox, now: int) -> RecordingOutbox:
    out.begin(now, now)
    return out


def sent(out: RecordingOutbox) -> list[tuple[str, Any]]:
    """To whom what was sent since the last time."""
    return [(effect.to, effect.message) for effect in out.take_effects() if isinstance(effect, Send)]


class Phone:
    """What `Calls` say: all can be reached, but who is said to be absent, or to be called yet."""

    def __init__(self) -> None:
        self.absent: set[str] = set()
        self.ringing: set[str] = set()

    def reach(self, peer: str, out: Outbox, address: str = "") -> bool:
        return peer not in self.absent | self.ringing

    def is_absent(self, peer: str) -> bool:
        return peer in self.absent


class Watch:
    """A monitor that says what the test wants."""

    def __init__(self) -> None:
        self.complaints: dict[str, Complaint] = {}

    def complain(self, of: str, cause: Cause = Cause.CRASH, text: str = "unreachable") -> None:
        self.complaints[of] = Complaint(cause, text, 0)
