"""D1-B5 on a small network: what is meant for a failed broker reaches those behind it, by any way that there is, and
costs the messages that it must."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.notices import BecameReady
from holdfast.topology.graph import BrokerGraph
from tests.bypass.graphs import random_graph
from tests.bypass.network import Network

# The tree is b1 – b2 – {b3, b4}, b4 – b5; the other links are ways around. The paper's example is b2 failing.
BROKERS = ["b1", "b2", "b3", "b4", "b5"]
TREE = [("b1", "b2"), ("b2", "b3"), ("b2", "b4"), ("b4", "b5")]
AROUND = [("b1", "b3"), ("b3", "b4"), ("b3", "b5")]


def example() -> Network:
    return Network(BrokerGraph(BROKERS, [*TREE, *AROUND]), BrokerGraph(BROKERS, TREE).spanning_tree())


def parcels(network: Network) -> dict[str, int]:
    """How many messages of each kind travelled for parcels."""
    return {kind: count for kind, count in network.sent.items() if kind in ("Parcel", "Detour")}


def test_without_failures_nothing_takes_a_detour() -> None:
    network = example()
    network.publish("b1", 1)
    network.run(SECOND)
    assert network.got(1) == ["b2", "b3", "b4", "b5"]
    assert parcels(network) == {"Parcel": 4}


def test_the_children_of_a_failed_broker_get_what_was_meant_for_it() -> None:
    """D1-A14: b2 failed, and b3 and b4 get what b1 says. One message to b3; two to b4, which b3 passes on."""
    network = example()
    network.crash("b2")
    network.run(SECOND)
    assert network.measured("brokers_unreachable") == 4  # b2, for each of the four
    network.publish("b1", 1)
    network.run(SECOND)
    assert network.got(1) == ["b3", "b4", "b5"]
    assert parcels(network) == {"Detour": 3, "Parcel": 1}
    assert network.machines["b1"].detours.measure()["detours_sent_total"] == 2
    assert network.machines["b3"].detours.measure()["detours_passed_total"] == 1
    assert network.machines["b4"].detours.measure()["detours_arrived_total"] == 1
    # And in the other direction.
    network.sent.clear()
    network.publish("b5", 2)
    network.run(SECOND)
    assert network.got(2) == ["b1", "b3", "b4"]
    assert parcels(network) == {"Detour": 3, "Parcel": 1}


def test_where_two_failed_in_a_row_those_behind_both_get_it() -> None:
    network = example()
    network.crash("b2")
    network.crash("b4")
    network.run(SECOND)
    network.publish("b1", 1)
    network.run(SECOND)
    assert network.got(1) == ["b3", "b5"]
    assert parcels(network) == {"Detour": 3}  # to b3; to b5, by way of b3


def test_around_a_link_that_is_cut_the_neighbour_itself_gets_it() -> None:
    network = example()
    network.cut("b1", "b2")
    network.run(SECOND)
    assert network.measured("brokers_unreachable") == 0
    network.publish("b1", 1)
    network.run(SECOND)
    assert network.got(1) == ["b2", "b3", "b4", "b5"]
    assert parcels(network) == {"Detour": 2, "Parcel": 3}  # b1 – b3 – b2, and on along the tree


def test_a_link_that_is_silent_without_breaking_is_gone_around_once_it_is_suspected() -> None:
    network = example()
    network.silence("b1", "b2")
    network.publish("b1", 1)
    network.run(network.settings.suspect_after_min + SECOND)
    network.publish("b1", 2)
    network.run(SECOND)
    assert (network.got(1), network.got(2)) == ([], ["b2", "b3", "b4", "b5"])
    network.run(network.settings.suspect_after_max)
    assert "b2" not in network.machines["b1"].links  # it was closed, to be dialled anew
    network.join("b1", "b2")
    network.run(SECOND)
    network.sent.clear()
    network.publish("b1", 3)
    network.run(SECOND)
    assert parcels(network) == {"Parcel": 4}


def test_a_network_in_two_pieces_serves_each() -> None:
    """D1-C4: who can't be reached gets nothing."""
    network = example()
    for link in (("b1", "b2"), ("b1", "b3")):
        network.cut(*link)
    network.run(SECOND)
    network.publish("b1", 1)
    network.publish("b5", 2)
    network.run(SECOND)
    assert (network.got(1), network.got(2)) == ([], ["b2", "b3", "b4"])


def test_after_a_repair_the_tree_is_used_again() -> None:
    network = example()
    network.crash("b2")
    network.run(SECOND)
    network.start("b2", 2)
    for near in ("b1", "b3", "b4"):
        network.join("b2", near)
    network.run(SECOND)
    network.sent.clear()
    network.publish("b1", 1)
    network.run(SECOND)
    assert (network.got(1), parcels(network)) == (["b2", "b3", "b4", "b5"], {"Parcel": 4})


def test_a_broker_that_is_back_and_not_ready_is_passed_by_but_passes_on() -> None:
    """D1-B4.1 for bypassing: it would lose what it is given, since its table is empty; carrying needs no table."""
    network = Network(BrokerGraph(["b1", "b2", "b3"], [("b1", "b2"), ("b2", "b3")]))
    network.crash("b2")
    network.run(SECOND)
    network.start("b2", 2, ready=False)
    network.join("b1", "b2")
    network.join("b2", "b3")
    network.run(SECOND)
    network.sent.clear()
    network.publish("b1", 1)
    network.run(SECOND)
    assert (network.got(1), parcels(network)) == (["b3"], {"Detour": 2})
    machine = network.machines["b2"]
    machine.news.on_became_ready(BecameReady(), machine.out)
    network.give("b2", [])
    network.run(SECOND)
    network.publish("b1", 2)
    network.run(SECOND)
    assert network.got(2) == ["b2", "b3"]


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(2, 8))
def test_whatever_fails_everyone_who_can_be_reached_gets_everything_once(seed: int, size: int) -> None:
    """D1-C4, once the news of the failures are around: delivered if and only if the graph is not in pieces."""
    rng = Random(seed)
    network = Network(random_graph(size, rng))
    for broker in network.graph.brokers:
        if rng.random() < 0.25 and len(network.machines) > 1:
            network.crash(broker)
    for one, other in network.graph.links:
        if one in network.machines and other in network.machines and rng.random() < 0.25:
            network.cut(one, other)
    network.run(SECOND)
    for number, broker in enumerate(list(network.machines)):
        reachable = [broker]
        for near in reachable:
            reachable += [far for far in network.machines[near].links if far not in reachable]
        network.publish(broker, number)
        network.run(SECOND)
        expected = [other for other in network.graph.brokers if other in reachable and other != broker]
        assert network.got(number) == expected
    assert network.measured("detours_dropped_total") == 0
