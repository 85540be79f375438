"""Networks in which brokers are replaced and have their places back, under faults, by seed."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.network_map import StandInProtocol
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.draw_standing_in import StandingInShape
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.settings import routing_settings
from holdfast.schemes.tree.standin.messages import StandInPreferred
from holdfast.schemes.tree.standin.teaching import Teaching
from holdfast.schemes.tree.timeline import ADOPTED, is_failure
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Cut, DiskSlow, Kill, Pause, PowerCut, Reset
from holdfast.sim.scenario_file import check_scenario
from holdfast.sim.swarm import settings_of
from holdfast.trace.schema import Control, Fault, Row
from tests.sim.claims import claims_watched
from tests.sim.clean import check_block, check_campaign
from tests.tiers import blocks, scarce

SEEDS = 400
SEEDS_LONG = 20_000

# What happens in a run, at the least, on average over a block.
HAPPENS = {
    "stand-in-done": 1.0,
    "stand-in-without": 0.005,
    "link-moved": 0.1,
    "learning met by a fault": 0.1,
    "events moved": 1.0,
    "order heard": 0.02,
    "replaced one is back": 0.1,
}


class _Life:
    """Counts what happened to the networks of many runs."""

    def __init__(self) -> None:
        self.what: Counter[str] = Counter()
        self._learning: set[str] = set()
        self._members: tuple[str, ...] = ()

    def see(self, row: Row) -> None:
        match row:
            case Fault(t=t) if is_failure(row.state) and self._learning and t:
                self.what["learning met by a fault"] += 1
            case Control(what="stand-in-learns", node=node):
                self._learning.add(node)
            case Control(what="stand-in-done", node=node):
                self._learning.discard(node)
                self.what["stand-in-done"] += 1
            case Control(what=what, t=0) if what == ADOPTED:
                self._learning.clear()  # another run
            case Control(what=what, detail=detail, node=node) if what == ADOPTED:
                self.what["replaced one is back"] += node.startswith("b") and node not in detail["members"]
            case Control(what=what):
                self.what[what] += 1
            case _:
                pass

    @property
    def factories(self) -> Factories:
        counted = self.what

        class CountsMoved(Forwarding):
            def _move(self, old: str, new: str, all_of_it: bool, out: Outbox) -> None:
                before = len(self.feeds[new])
                super()._move(old, new, all_of_it, out)
                counted["events moved"] += len(self.feeds[new]) - before

        class CountsOrders(Teaching):
            def on_stand_in_preferred(self, peer: str, message: StandInPreferred, out: Outbox) -> None:
                super().on_stand_in_preferred(peer, message, out)
                counted["order heard"] += 1

        kit = NetworkKit(forwarding=CountsMoved, teaching=CountsOrders)
        return claims_watched(Factories(kit=BrokerKit(scheme=kit)))


@pytest.mark.parametrize("seeds", blocks(SEEDS, size=100))  # little of it happens often
def test_seeds_of_networks_with_stand_ins_are_clean(seeds: range) -> None:
    """D0-C28, D0-F6, D0-C3, D0-C4, D1-C2, D1-C3"""
    life = _Life()
    check_block(StandingInShape(), seeds, delivered=30, faults=1, sinks=[life], factories=life.factories)
    assert scarce(life.what, HAPPENS, len(seeds)) == {}


@pytest.mark.long
def test_many_seeds_of_networks_with_stand_ins_are_clean() -> None:
    check_campaign(StandingInShape(name="stands-in"), range(1, SEEDS_LONG + 1), "networks with stand-ins")


# -------------------------------------------------------------------------------------------------------- what is drawn
def test_seeds_reach_every_level_protocol_and_fault() -> None:
    levels: Counter[Reliability] = Counter()
    asked: Counter[str] = Counter()
    faults: Counter[type] = Counter()
    more: Counter[str] = Counter()
    for seed in range(1, SEEDS + 1):
        scenario = StandingInShape().draw(seed)
        check_scenario(scenario, f"seed {seed}")
        levels[routing_settings(settings_of(scenario)).reliability] += 1
        asked.update(operation.told.get("protocol", operation.action) for operation in scenario.operations)
        faults.update(type(fault) for fault in scenario.faults)
        replaced = [operation.told["id"] for operation in scenario.operations if operation.action == "replace"]
        more["the keeper"] += "b1" in replaced
        more["a stand-in"] += any(name.startswith("s") for name in replaced)
        more["several"] += len(replaced) > 1
        more["twice"] += len(replaced) > len(set(replaced))
        more["in the middle"] += any(
            operation.at_ms <= fault.at_ms <= operation.at_ms + 400
            for operation in scenario.operations
            for fault in scenario.faults
        )
        more["its clients have another home"] += any(len(client.brokers) > 1 for client in scenario.clients)
        more["narrow"] += "window_bytes" in scenario.settings
        more[f"order {scenario.settings.get('order', 'table')}"] += 1
        more["nothing advertised"] += scenario.settings.get("advertisements", True) is False
    assert set(levels) == {Reliability.NONE, Reliability.PERIODIC, Reliability.BUFFERED}
    assert set(asked) == {*(protocol.value for protocol in StandInProtocol), "hand-back"}
    assert set(faults) == {Kill, PowerCut, Pause, Cut, Reset, DiskSlow}
    for counted in (levels, asked, faults, more):
        assert {what: count for what, count in counted.items() if count < SEEDS // 50} == {}


def test_the_same_seed_gives_the_same_run() -> None:
    digests = [run_scenario(StandingInShape().draw(7)).digest for _ in range(2)]
    assert digests[0] == digests[1]
