"""How runs of one broker, and of networks, are drawn and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.broker.site import Site
from holdfast.errors import TopologyError
from holdfast.kernel.settings import written
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.draw_network import NetworkShape, network_promises
from holdfast.schemes.tree.network_checker import Network
from holdfast.schemes.tree.one_broker import OneBrokerShape, one_broker_promises
from holdfast.schemes.tree.settings import SIMULATED, routing_settings
from holdfast.sim.scenario import Broker, Scenario
from holdfast.sim.swarm import Refuse, Shape, settings_of
from holdfast.topology.graph import BrokerGraph
from holdfast.trace.checkers.registry import Known

# Of a site, what its runs keep: its times are the simulator's, and shorter.
_KEPT: Final = ("reliability", "advertisements", "covering", "ask_neighbours")


class TreeSwarm:
    settings: RoutingSettings = SIMULATED
    shapes: Mapping[str, Shape] = {"tree": OneBrokerShape(), "network": NetworkShape()}
    checkers: Mapping[str, Known] = {
        "network": Known(lambda _: Network(), "events reach whom the network's level of reliability promises them to")
    }

    def shape_of(self, site: Site, brokers: Sequence[Broker]) -> Shape:
        if not site.links:
            return OneBrokerShape(name=site.name, brokers=tuple(brokers), fixed_brokers=True)
        said = {key: value for key, value in written(site.settings).items() if key in _KEPT}
        level = routing_settings(site.settings).reliability
        return NetworkShape(name=site.name, brokers=tuple(brokers), links=site.links, settings=said, reliability=level)

    def check(self, scenario: Scenario, refuse: Refuse) -> None:
        if not scenario.links:
            if scenario.settings:
                refuse("settings are given, and the brokers have no links", "they are of a network: give it links")
            return
        level = routing_settings(settings_of(scenario)).reliability
        graph = BrokerGraph([broker.id for broker in scenario.brokers], scenario.links)
        try:
            graph.spanning_tree()
        except TopologyError as error:
            refuse(error.problem, "correct the links")
        if graph.has_cycle and not level.detours:
            refuse(f"the links form a cycle, which {level.value!r} has no use for", "leave a link out")
        for broker in scenario.brokers:
            if level.buffers and not broker.durable:
                refuse(f"broker {broker.id!r} has no disk, and is to buffer", 'say "durable": true')

    def promises(self, scenario: Scenario) -> tuple[str, ...]:
        return network_promises(scenario) if scenario.links else one_broker_promises(scenario)

    def header(self, scenario: Scenario) -> dict[str, Any]:
        if not scenario.links:
            return {}
        brokers = [broker.id for broker in scenario.brokers]
        return {"brokers": brokers, "links": scenario.links, **written(settings_of(scenario))}


SWARM: Final = TreeSwarm()
