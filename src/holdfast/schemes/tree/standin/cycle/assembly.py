"""The parts of the cycle, put together: what watches, what sees to it, what agrees; and what operators ask of it."""

from __future__ import annotations

from collections.abc import Mapping as Fields

from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.failure.detector import FailureDetector
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.network_map import RemoveBroker, ReplaceBroker, StandInMode
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.mapping import Mapping
from holdfast.schemes.tree.operations import change_of, lost_beside, unnamed_replacement
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.directory import Directory, GroupDirectory
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.history import History
from holdfast.schemes.tree.standin.cycle.lending_desk import LendingDesk
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.monitor import Monitor
from holdfast.schemes.tree.standin.cycle.returning import Returning
from holdfast.schemes.tree.standin.cycle.spares import Pool
from holdfast.schemes.tree.standin.cycle.steward import Steward


class Cycle:
    """Of one broker."""

    def __init__(
        self,
        roster: Roster,
        memory: Memory,
        parts: tuple[Part, ...],
        monitor: Monitor,
        steward: Steward,
        returning: Returning,
        lending: LendingDesk,
    ) -> None:
        self.parts = parts
        self._roster = roster
        self._memory = memory
        self._monitor = monitor
        self._steward = steward
        self._returning = returning
        self._lending = lending

    def facts(self) -> dict[str, str]:
        own = self._monitor.facts() | self._steward.facts() | self._returning.facts()
        return {"sla": "yes"} | own | self._lending.facts()

    def takes(self, action: str, told: Fields[str, str]) -> bool:
        """Whether it is for the steward to find out who stands in, or another site asks for a spare."""
        return self._lending.takes(action) or (action in ("replace", "relieve") and not told.get("by"))

    def against(self, action: str, told: Fields[str, str]) -> str:
        """What is against a map that an operator wants to be made here: another broker may make one with the same
        number, as was agreed to. It does not, if it is among those that the operator says are down."""
        maker = self._memory.promised_to(self._roster.map.number)
        match change_of(action, told):
            case ReplaceBroker(name, mode=StandInMode.FAILOVER) | RemoveBroker(name, lost=True):
                lost = [name, *lost_beside(told)]
            case _:
                lost = []
        if not maker or maker in lost:
            return ""
        problem = f"{maker} is about to have a broker replaced, and {self._roster.name} has agreed"
        return f"{problem}: ask again in a moment; if {maker} is down, replace that first, or say --also-lost {maker}"

    def ask(self, action: str, told: Fields[str, str], out: Outbox) -> str:
        if self._lending.takes(action):
            return self._lending.change(action, told, out)
        asked = unnamed_replacement(action, told)
        return asked if isinstance(asked, str) else self._steward.ask(*asked, out)


def make_cycle(
    settings: RoutingSettings,
    roster: Roster,
    mapping: Mapping,
    links: Links,
    detector: FailureDetector,
    forwarding: Forwarding,
    durable: bool,
    streams: StoredStreams,
    kit: NetworkKit,
) -> Cycle:
    levels = settings.stand_ins.levels
    memory = Memory(settings.name, durable, streams)
    pool = Pool(settings)
    errands = ErrandDesk()
    calls = Calls(roster, links, detector)
    monitor = kit.monitor(levels, roster, detector, links.acquaintances, forwarding)
    complaints = kit.complaints(roster, monitor, calls)
    agreement = kit.agreement(roster, calls, memory)
    group = GroupDirectory(errands) if settings.stand_ins.in_group else None
    directory: Directory = agreement if group is None else group
    steward = kit.steward(levels, roster, mapping, calls, complaints, directory, pool, errands, memory)
    returning = kit.returning(levels, roster, mapping, links, calls, complaints, steward, pool, errands, memory)
    reservation, history = kit.reservation(roster), History(settings.name, memory)
    lending = LendingDesk(roster, errands)
    parts: list[Part] = [calls, monitor, complaints, agreement, reservation, errands, steward, returning, history]
    parts = [*([] if group is None else [group]), *parts, lending]
    return Cycle(roster, memory, tuple(parts), monitor, steward, returning, lending)
