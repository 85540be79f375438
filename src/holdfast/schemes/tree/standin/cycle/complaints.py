"""Complaints come together at one member, who sees to it that something is done.

About a broker that can't be reached, that is the first member that can, in the order of the members; about one that is
congested the keeper of the map, since the network is whole. Who is not the one hands on what it hears.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.flaws import is_name
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.levels import Cause
from holdfast.schemes.tree.standin.cycle.messages import TEXT_BYTES_MAX, Complained, short
from holdfast.schemes.tree.standin.cycle.monitor import Monitor
from holdfast.schemes.tree.standin.cycle.notices import Looked

BROKERS: Final = frozenset({Role.BROKER})
VALID_FOR: Final = 3 * SECOND  # a complaint that is not said again
SAID_EVERY: Final = SECOND // 2
NOBODY: Final = ""


class Heard(NamedTuple):
    """A complaint, and when it came. `handed_on`: when that was done last."""

    cause: Cause
    text: str
    at: int


class Complaints(Part):
    """Behind the monitor."""

    name: ClassVar[str] = "complaints"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Complained: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (Looked, MapChanged)
    due = False

    def __init__(self, roster: Roster, monitor: Monitor, calls: Calls) -> None:
        self._roster = roster
        self._monitor = monitor
        self._calls = calls
        self.heard: dict[str, dict[str, Heard]] = {}  # of whom → by whom
        self._said_at = -SAID_EVERY
        self._own: dict[str, Cause] = {}  # complaints when it was last said

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """Complaints were made by another map."""
        self.heard = {}

    def on_complained(self, peer: str, said: Complained, out: Outbox) -> None:
        cause = next((each for each in Cause if each.value == said.cause), None)
        if cause is None or not is_name(said.origin) or not is_name(said.faulty) or said.origin == said.faulty:
            raise ProtocolError("nobody complains so")
        if len(said.text.encode()) > TEXT_BYTES_MAX or not said.text.isprintable():
            raise ProtocolError(f"a complaint has at most {TEXT_BYTES_MAX} printable bytes")
        network = self._roster.map
        if said.number != network.number or not self._roster.knows(peer):
            return  # of another map: whoever has the older one is told
        if said.origin not in network.graph.neighbours(said.faulty) if self._roster.knows(said.faulty) else True:
            return
        self.heard.setdefault(said.faulty, {})[said.origin] = Heard(cause, said.text, out.now)

    def on_looked(self, looked: Looked, out: Outbox) -> None:
        name = self._roster.name
        for of in list(self.heard):
            fresh = {by: heard for by, heard in self.heard[of].items() if out.now - heard.at < VALID_FOR and by != name}
            self.heard[of] = fresh
            if not fresh:
                del self.heard[of]
        if not self._roster.is_member:
            return
        for of, complaint in self._monitor.complaints.items():
            self.heard.setdefault(of, {})[name] = Heard(complaint.cause, short(complaint.text), out.now)
        own = {of: complaint.cause for of, complaint in self._monitor.complaints.items()}
        if self.heard and (own != self._own or out.now - self._said_at >= SAID_EVERY):
            self._said_at, self._own = out.now, own
            self._hand_on(out)

    def _hand_on(self, out: Outbox) -> None:
        for of, by in self.heard.items():
            for origin, heard in by.items():
                whom = self.who_sees_to(of, heard.cause, out)
                if whom not in (NOBODY, self._roster.name, origin):
                    said = Complained(origin, of, heard.cause.value, heard.text, self._roster.map.number)
                    out.send(whom, said, after=NOW)

    def who_sees_to(self, of: str, cause: Cause, out: Outbox) -> str:
        """A member that can be reached; nobody, as long as it is not known of one that comes before."""
        network = self._roster.map
        names = [name for name in network.names if network.shares(name) is None]
        if cause is not Cause.CRASH:
            names = names[:1]
        for name in names:
            if name == of and cause is Cause.CRASH:
                continue
            if name == self._roster.name or self._calls.reach(name, out):
                return name
            if not self._calls.is_absent(name):
                return NOBODY
        return NOBODY

    # ------------------------------------------------------------------------------------------------- what comes of it
    def failed(self) -> dict[str, str]:
        """Brokers that all complain of who could, and what they say. Who is complained of itself need not be there."""
        network, found = self._roster.map, dict[str, str]()
        crashed = {of for of, by in self.heard.items() if any(heard.cause is Cause.CRASH for heard in by.values())}
        for of in crashed:
            said = {by: heard for by, heard in self.heard[of].items() if heard.cause is Cause.CRASH}
            near = [name for name in network.graph.neighbours(of) if name not in crashed]
            if near and all(name in said for name in near):
                found[of] = _told(said)
        return {name: found[name] for name in network.names if name in found}

    def congested(self) -> dict[str, str]:
        """Brokers that are congested, and what is said of them. One that complains itself waits for another."""
        complaining = {by for said in self.heard.values() for by in said}
        found = {}
        for of, by in self.heard.items():
            said = {name: heard for name, heard in by.items() if heard.cause is Cause.CONGESTION}
            if said and of not in complaining:
                found[of] = _told(said)
        return {name: found[name] for name in self._roster.map.names if name in found}


def _told(said: Mapping[str, Heard]) -> str:
    texts: dict[str, list[str]] = {}
    for by, heard in said.items():
        texts.setdefault(heard.text, []).append(by)
    return "; ".join(f"{', '.join(by)}: {text}" for text, by in texts.items())
