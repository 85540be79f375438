"""How runs of one broker, and of networks, are drawn and judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from holdfast.broker.site import Site
from holdfast.errors import TopologyError
from holdfast.kernel.settings import written
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.asked_changes import check_operations, header_of_changes
from holdfast.schemes.tree.at_home import ONCE_AT_HOME, ORDER_AT_HOME, AtHome
from holdfast.schemes.tree.draw_changes import ChangingShape
from holdfast.schemes.tree.draw_network import NetworkShape, network_promises
from holdfast.schemes.tree.draw_on_demand import OnDemandShape
from holdfast.schemes.tree.draw_standing_in import StandingInShape
from holdfast.schemes.tree.map_history import MapHistory
from holdfast.schemes.tree.network_checker import Network
from holdfast.schemes.tree.one_broker import OneBrokerShape, one_broker_promises
from holdfast.schemes.tree.operations import ACTIONS
from holdfast.schemes.tree.settings import SIMULATED, SLA, routing_settings
from holdfast.schemes.tree.understood import Understood
from holdfast.sim.scenario import Broker, Scenario
from holdfast.sim.swarm import Refuse, Shape, settings_of
from holdfast.topology.graph import BrokerGraph
from holdfast.trace.checkers.at_most_once import AtMostOnce
from holdfast.trace.checkers.publisher_order import PublisherOrder
from holdfast.trace.checkers.registry import Known

# Of a site, what its runs keep: its times are the simulator's, and shorter.
_KEPT: Final = ("reliability", "advertisements", "covering", "ask_neighbours")
_OF_STAND_INS: Final = ("protocol", "congestion", "order", "hand_back")


class TreeSwarm:
    settings: RoutingSettings = SIMULATED
    shapes: Mapping[str, Shape] = {
        "tree": OneBrokerShape(),
        "network": NetworkShape(),
        "changing": ChangingShape(),
        "standing-in": StandingInShape(),
        "on-demand": OnDemandShape(),
    }
    checkers: Mapping[str, Known] = {
        "network": Known(lambda _: Network(), "events reach whom the network's level of reliability promises them to"),
        "map-history": Known(lambda _: MapHistory(), "maps of a network have one history, and changes are done"),
        "understood": Known(lambda _: Understood(), "no broker takes what another one says for a mistake"),
        ONCE_AT_HOME: Known(lambda _: AtHome(AtMostOnce(ONCE_AT_HOME)), "at-most-once, at each broker of a subscriber"),
        ORDER_AT_HOME: Known(
            lambda _: AtHome(PublisherOrder(ORDER_AT_HOME)), "publisher-order, at each broker of a subscriber"
        ),
    }

    operations: Mapping[str, Collection[str]] = ACTIONS

    def shape_of(self, site: Site, brokers: Sequence[Broker]) -> Shape:
        if not site.links:
            return OneBrokerShape(name=site.name, brokers=tuple(brokers), fixed_brokers=True)
        said = {key: value for key, value in written(site.settings).items() if key in _KEPT}
        level = routing_settings(site.settings).reliability
        spares = [Broker(id=entry.id, durable=True, spare=True) for entry in site.brokers if entry.spare]
        if routing_settings(site.settings).stand_ins.levels.enabled and spares:
            said |= {key: value for key, value in written(site.settings).items() if key in _OF_STAND_INS}
            every = (*brokers, *spares)
            return OnDemandShape(name=site.name, brokers=every, links=site.links, settings=said, reliability=level)
        return NetworkShape(name=site.name, brokers=tuple(brokers), links=site.links, settings=said, reliability=level)

    def check(self, scenario: Scenario, refuse: Refuse) -> None:
        spares = [broker.id for broker in scenario.brokers if broker.spare]
        if not scenario.links:
            for what in ("settings", "operations"):
                if getattr(scenario, what):
                    refuse(f"{what} are given, and the brokers have no links", "they are of a network: give it links")
            if spares:
                refuse(f"broker {spares[0]!r} is spare, and there is no network", "give the brokers links")
            return
        level = routing_settings(settings_of(scenario)).reliability
        for one, other in scenario.links:
            if not {one, other}.isdisjoint(spares):
                refuse(f"a link joins {one!r} and {other!r}, one of which is spare", "spares have no links")
        graph = BrokerGraph([broker.id for broker in scenario.brokers if not broker.spare], scenario.links)
        try:
            graph.spanning_tree()
        except TopologyError as error:
            refuse(error.problem, "correct the links")
        if graph.has_cycle and not level.detours:
            refuse(f"the links form a cycle, which {level.value!r} has no use for", "leave a link out")
        for broker in scenario.brokers:
            if level.buffers and not broker.durable:
                refuse(f"broker {broker.id!r} has no disk, and is to buffer", 'say "durable": true')
        check_operations(scenario, refuse)

    def promises(self, scenario: Scenario) -> tuple[str, ...]:
        return network_promises(scenario) if scenario.links else one_broker_promises(scenario)

    def header(self, scenario: Scenario) -> dict[str, Any]:
        if not scenario.links:
            return {}
        brokers = [broker.id for broker in scenario.brokers if not broker.spare]
        said = {"brokers": brokers, "links": scenario.links, **written(settings_of(scenario))}
        changes = scenario.operations or scenario.settings.get(SLA)
        return said | header_of_changes(scenario) if changes else said


SWARM: Final = TreeSwarm()
