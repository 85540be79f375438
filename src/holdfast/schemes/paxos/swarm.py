"""How runs of groups are drawn and judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from holdfast.broker.site import Site
from holdfast.schemes.paxos.ballots import tolerated
from holdfast.schemes.paxos.draw import group_promises, group_shape
from holdfast.schemes.paxos.scheme import DEFAULTS, GROUP_SIZES, paxos_settings
from holdfast.schemes.paxos.settings import PaxosSettings
from holdfast.sim.scenario import Broker, PowerCut, Scenario
from holdfast.sim.swarm import Refuse, Shape
from holdfast.trace.checkers.registry import Known

_LIMITS: Final = ("sessions", "subscriptions_per_session", "backlog_events", "backlog_bytes")


class PaxosSwarm:
    settings: PaxosSettings = DEFAULTS
    shapes: Mapping[str, Shape] = {"paxos": group_shape()}
    checkers: Mapping[str, Known] = {}
    operations: Mapping[str, Collection[str]] = {}  # scenarios play no changes of groups

    def shape_of(self, site: Site, brokers: Sequence[Broker]) -> Shape:
        said = paxos_settings(site.settings)
        shape = group_shape([broker.id for broker in brokers], said.protocol, said.pipeline, site.name)
        return replace(shape, brokers=tuple(brokers))

    def check(self, scenario: Scenario, refuse: Refuse) -> None:
        """Refuses groups that could not be formed, or whose brokers would not come to the same state."""
        names = [broker.id for broker in scenario.brokers]
        if len(names) not in GROUP_SIZES:
            refuse(f"a group of {len(names)} brokers", f"make it one of {', '.join(map(str, GROUP_SIZES))}")
        first = scenario.brokers[0]
        for broker in scenario.brokers:
            if not broker.durable:
                remedy = 'say "durable": true: it must keep its votes'
                refuse(f"broker {broker.id!r} is of a group, and has no disk", remedy)
            if broker.snapshot_every != Broker(id="").snapshot_every:
                refuse(f"broker {broker.id!r} has snapshot_every", "say trim_every of the group instead")
            for limit in _LIMITS:
                if getattr(broker, limit) != getattr(first, limit):
                    remedy = "give a group's brokers the same limits"
                    refuse(f"{limit} of {broker.id!r} and of {first.id!r} differ", remedy)
        for client in scenario.clients:
            missing = [name for name in names if name not in client.brokers]
            if missing:
                refuse(f"client {client.id!r} does not know {', '.join(missing)}", "name all brokers of the group")
        wiped = {fault.host for fault in scenario.faults if isinstance(fault, PowerCut) and fault.wipe} & set(names)
        if len(wiped) > tolerated(len(names)):
            problem = f"the disks of {', '.join(sorted(wiped))} are wiped, and a wiped replica never votes again"
            refuse(problem, f"wipe those of {tolerated(len(names))} at most, or nothing can be decided")

    def promises(self, scenario: Scenario) -> tuple[str, ...]:
        return group_promises(scenario)

    def header(self, scenario: Scenario) -> dict[str, Any]:
        return {}


SWARM: Final = PaxosSwarm()
