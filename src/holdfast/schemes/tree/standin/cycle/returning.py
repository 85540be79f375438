"""The keeper gives a broker its place or its work back, when it has been well for a while: D0-F6.

A broker that was replaced is called now and then; it is well when it answers, and has heard that another one has its
place. One whose work is shared is well while nobody complains of it. One that is in need of a stand-in again soon after
is waited for longer, twice as long each time. What an operator has asked for, an operator gives back.
"""

from __future__ import annotations

from typing import ClassVar, Final

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.network_map import HandBack, NetworkMap, planned
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import ServiceLevels
from holdfast.schemes.tree.mapping import Mapping as MapKeeper
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.complaints import Complaints
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Release
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.notices import Looked
from holdfast.schemes.tree.standin.cycle.spares import Pool
from holdfast.schemes.tree.standin.cycle.steward import Steward

CALLED_EVERY: Final = SECOND
DOUBLED_MAX: Final = 8  # times that the wait is doubled
SOON: Final = 10  # times the wait within which the same broker is in need again


class _Record:
    """Of one broker: how often it was in need lately."""

    __slots__ = ("back_at", "times")

    def __init__(self) -> None:
        self.times = 0
        self.back_at = 0

    def wait(self, calm: int) -> int:
        return int(calm << min(self.times, DOUBLED_MAX))

    def needs(self, calm: int, now: int) -> None:
        """It has a stand-in."""
        soon = self.back_at and now - self.back_at < SOON * self.wait(calm)
        self.times = self.times + 1 if soon else 0
        self.back_at = 0

    def is_back(self, now: int) -> None:
        self.back_at = now


class Returning(Part):
    name: ClassVar[str] = "returning"
    notices: ClassVar[tuple[type[Notice], ...]] = (Looked, MapChanged)
    due = False

    def __init__(
        self,
        levels: ServiceLevels,
        roster: Roster,
        mapping: MapKeeper,
        links: Links,
        calls: Calls,
        complaints: Complaints,
        steward: Steward,
        pool: Pool,
        errands: ErrandDesk,
        memory: Memory,
    ) -> None:
        self._levels = levels
        self._roster = roster
        self._mapping = mapping
        self._links = links
        self._calls = calls
        self._complaints = complaints
        self._steward = steward
        self._pool = pool
        self._errands = errands
        self._memory = memory
        self._well_since: dict[str, int] = {}
        self._records: dict[str, _Record] = {}
        self._handed_back = 0

    # -------------------------------------------------------------------------------------------------- the map changes
    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """Who got a stand-in, who is back; and which stand-ins are not needed any more."""
        before, network = changed.before, self._roster.map
        had, has = _stood_in_for(before), _stood_in_for(network)
        for name in sorted(has - had):
            self._records.setdefault(name, _Record()).needs(self._levels.calm, out.now)
        for name in sorted(had - has):
            if network.find(name) is not None:
                self._records.setdefault(name, _Record()).is_back(out.now)
        for name in [name for name in self._records if not self._roster.remembers(name)]:
            del self._records[name]
        self._well_since = {name: since for name, since in self._well_since.items() if name in has}
        if network.keeper == self._roster.name:
            members = set(network.names)
            for name in before.names:
                if name not in members and network.rests(name) and not network.stand_in(name):
                    self._errands.give(Release(name), out)

    # -------------------------------------------------------------------------------------------------- looking after
    def on_looked(self, looked: Looked, out: Outbox) -> None:
        network = self._roster.map
        if network.keeper != self._roster.name or not self._levels.hand_back:
            self._well_since = {}
            return
        for one in network.resting:
            if one.by and not one.asked and network.stand_in(one.name):
                is_there = self._calls.reach(one.name, out)
                if is_there or self._calls.is_absent(one.name):
                    self._look_at(one.name, is_there and self._links.knows_map(one.name, network.number), out)
                # Else its link has ended, as calls do, and it is called anew.
        for beside in network.besides:
            if not beside.asked:
                self._look_at(beside.faulty, beside.faulty not in self._complaints.heard, out)

    def _look_at(self, name: str, well: bool, out: Outbox) -> None:
        if not well:
            self._well_since.pop(name, None)
            return
        since = self._well_since.setdefault(name, out.now)
        wait = self._records.setdefault(name, _Record()).wait(self._levels.calm)
        if out.now - since >= wait and not self._steward.is_busy and not self._roster.map.steps:
            self._hand_back(name, out)

    def _hand_back(self, name: str, out: Outbox) -> None:
        network, place = self._roster.map, self._pool.place(name)
        if network.beside_of(name) is not None:
            change = HandBack(name, "", "")
        elif place is None:
            return  # where it is found, only an operator can tell
        else:
            change = HandBack(name, place.client_address, place.peer_address)
        if objection(network, change, False) or self._memory.promised_to(network.number):
            return
        self._handed_back += 1
        what = "its work" if network.beside_of(name) is not None else "its place"
        self._memory.tell(network.number, f"{name} is well again, and gets {what} back", out)
        self._mapping.want(change, out)
        self._mapping.make(planned(network, change), out)

    def facts(self) -> dict[str, str]:
        if not self._well_since:
            return {}
        shared = [beside.faulty for beside in self._roster.map.besides]
        waits = [
            f"{name} is well again, and waits for its {'work' if name in shared else 'place'}"
            for name in self._well_since
        ]
        return {"standin_back": "; ".join(waits)}

    def measure(self) -> dict[str, int]:
        return {"standin_handed_back_total": self._handed_back}


def _stood_in_for(network: NetworkMap) -> set[str]:
    """Brokers whose place or work another one has."""
    return {one.name for one in network.resting if one.by} | {beside.faulty for beside in network.besides}
