"""Networks that change while they run, under faults, by seed: everything once and in order, and one history of maps."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    HandBack,
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    RemoveLink,
    ReplaceBroker,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.notices import NeighbourAccepted
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.asked_changes import change_of
from holdfast.schemes.tree.draw_changes import ChangingShape
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.moving import Moving
from holdfast.schemes.tree.settings import routing_settings
from holdfast.schemes.tree.timeline import ADOPTED, is_failure
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import (
    ClockJump,
    Cut,
    DiskFull,
    DiskSlow,
    Kill,
    Pause,
    PowerCut,
    Reset,
    Scenario,
)
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
    "change-begun": 1.5,
    "link-moved": 0.8,
    "no-member-any-more": 0.4,
    "met by a fault": 0.2,
    "events moved": 0.3,
    "words repeated": 0.01,
}


class _Life:
    """Counts what happened to the networks of many runs."""

    def __init__(self) -> None:
        self.what: Counter[str] = Counter()
        self._latest = 0  # map of the run
        self._is_under_way = False

    def see(self, row: Row) -> None:
        if isinstance(row, Fault) and is_failure(row.state) and self._is_under_way:
            self.what["met by a fault"] += 1
        if not isinstance(row, Control):
            return
        self.what[row.what] += 1
        if row.what == ADOPTED and (row.t == 0 or row.detail["number"] > self._latest):
            self._latest = row.detail["number"]
            self._is_under_way = bool(row.detail["steps"])

    @property
    def factories(self) -> Factories:
        what = self.what

        class CountsEvents(Forwarding):
            def _move(self, old: str, new: str, all_of_it: bool, out: Outbox) -> None:
                before = len(self.feeds[new])
                super()._move(old, new, all_of_it, out)
                what["events moved"] += len(self.feeds[new]) - before

        class CountsWords(Moving):
            def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
                words: list[Any] = self._words._words
                before = len(words)
                super().on_neighbour_accepted(accepted, out)
                what["words repeated"] += len(words) - before

        return claims_watched(Factories(kit=BrokerKit(scheme=NetworkKit(forwarding=CountsEvents, moving=CountsWords))))


@pytest.mark.parametrize("seeds", blocks(SEEDS, size=100))  # words are repeated rarely
def test_seeds_of_changing_networks_are_clean(seeds: range) -> None:
    """D0-B1, D0-A6, D1-C2, D1-C3, D1-C4, D1-C5"""
    life = _Life()
    check_block(ChangingShape(), seeds, delivered=30, faults=1, sinks=[life], factories=life.factories)
    assert scarce(life.what, HAPPENS, len(seeds)) == {}


@pytest.mark.long
def test_many_seeds_of_changing_networks_are_clean() -> None:
    check_campaign(ChangingShape(name="changes"), range(1, SEEDS_LONG + 1), "changing networks")


# -------------------------------------------------------------------------------------------------------- what is drawn
def _founded(scenario: Scenario) -> NetworkMap:
    members = [NetworkMember(broker.id, broker.id, broker.id) for broker in scenario.brokers if not broker.spare]
    return founding_map(members, scenario.links)


def _kind(change: Change, network: NetworkMap) -> str:
    match change:
        case AddBroker(between=between):
            return "add between" if between else "add"
        case RemoveBroker(name=name, lost=True):
            return "lost keeper" if name == network.keeper else "lost"
        case RemoveBroker(name=name):
            return "remove leaf" if len(network.spanning_tree.neighbours(name)) == 1 else "remove inner"
        case AddLink(instead_of=instead_of):
            return "link beside" if instead_of is None else "link replaced"
        case RemoveLink(one=one, other=other):
            return "cut of the tree" if other in network.spanning_tree.neighbours(one) else "cut beside"
        case ReplaceBroker():
            return "replace"
        case HandBack():
            return "hand back"


def _kinds(scenario: Scenario) -> Counter[str]:
    """What is asked for, if all that was asked before is done by then."""
    kinds: Counter[str] = Counter()
    network, detours = _founded(scenario), routing_settings(settings_of(scenario)).reliability.detours
    for operation in scenario.operations:
        change = change_of(operation.action, operation.told)
        assert change is not None
        if objection(network, change, detours):
            kinds["refused"] += 1
            continue
        kinds[_kind(change, network)] += 1
        network = planned(network, change)
        while network.steps:
            network = done(network)
    return kinds


def test_seeds_reach_every_level_every_kind_of_change_and_every_fault() -> None:
    levels: Counter[Reliability] = Counter()
    kinds: Counter[str] = Counter()
    faults: Counter[type] = Counter()
    brokers: Counter[int] = Counter()
    more: Counter[str] = Counter()
    for seed in range(1, SEEDS + 1):
        scenario = ChangingShape().draw(seed)
        levels[routing_settings(settings_of(scenario)).reliability] += 1
        brokers[len(scenario.brokers)] += 1
        kinds += _kinds(scenario)
        faults.update(type(fault) for fault in scenario.faults)
        asked = [operation.at_ms for operation in scenario.operations]
        for fault in scenario.faults:
            more["in the middle"] += any(at <= fault.at_ms <= at + 300 for at in asked)
            more["for ever"] += isinstance(fault, Kill | PowerCut) and fault.for_ever
            more["wiped"] += isinstance(fault, PowerCut) and fault.wipe
        more["at once"] += any(second - first < 100 for first, second in pairwise(asked))
        more["ended"] += any(operation.ends for operation in scenario.operations)
        more["narrow"] += "window_bytes" in scenario.settings
        more["full"] += "store_bytes" in scenario.settings
        more["down"] += bool(scenario.down)
        more["several homes"] += any(len(client.brokers) > 1 for client in scenario.clients)
        more["without disks"] += not all(broker.durable for broker in scenario.brokers)
        more["without faults"] += not scenario.faults
    assert set(levels) == set(Reliability)
    assert min(levels.values()) > SEEDS // 10
    assert {3, 4, 5, 6, 7, 8, 9, 10} <= set(brokers)
    assert {kind: count for kind, count in kinds.items() if count < SEEDS // 50} == {}
    assert set(kinds) == {
        "add",
        "add between",
        "remove leaf",
        "remove inner",
        "lost",
        "lost keeper",
        "link replaced",
        "link beside",
        "cut beside",
        "cut of the tree",
        "refused",
    }
    assert set(faults) == {Kill, PowerCut, Pause, Cut, Reset, ClockJump, DiskSlow, DiskFull}
    assert {kind: count for kind, count in faults.items() if count < SEEDS // 20} == {}
    assert {what: count for what, count in more.items() if count < SEEDS // 50} == {}


def test_a_drawn_network_that_changes_is_a_scenario_that_files_may_hold() -> None:
    for seed in range(1, SEEDS + 1):
        check_scenario(ChangingShape().draw(seed), f"seed {seed}")


def test_the_same_seed_gives_the_same_run() -> None:
    for reliability in Reliability:
        shape = ChangingShape(reliability=reliability)
        digests = [run_scenario(shape.draw(7)).digest for _ in range(2)]
        assert digests[0] == digests[1]
