"""Who could stand in: spares of the site file that are free."""

from __future__ import annotations

from holdfast.protocols.routing.network_map import (
    HandBack,
    NetworkMap,
    RemoveBroker,
    ReplaceBroker,
    StandInMode,
    done,
    planned,
)
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.schemes.tree.standin.cycle.spares import Pool
from holdfast.topology.graph import BrokerGraph
from tests.standin.cycle.around import STAR, network

LISTED = ("n1", "f", "n2", "n3", "r1", "r2")
POOL = Pool(
    RoutingSettings(
        "n1",
        BrokerGraph(("n1", "f", "n2", "n3"), STAR),
        addresses={name: name for name in LISTED},
        client_addresses={name: f"c-{name}" for name in LISTED},
    )
)


def free(network: NetworkMap) -> list[str]:
    return [place.name for place in POOL.free(network)]


def test_spares_are_free_in_the_order_of_the_site_file() -> None:
    """D0-A9"""
    assert free(network()) == ["r1", "r2"]
    place = POOL.place("r1")
    assert place is not None
    assert (place.client_address, place.peer_address) == ("c-r1", "r1")


def test_one_that_stands_in_is_not_free_until_it_has_gone() -> None:
    stands_in = planned(network(), ReplaceBroker("f", "r1", "c-r1", "r1"))
    assert free(stands_in) == ["r2"]
    going = planned(done(stands_in), HandBack("f", "c-f", "f"))
    assert free(going) == ["r2"]
    while going.steps:
        going = done(going)
    assert free(going) == ["r1", "r2"]


def test_one_that_shares_work_is_not_free() -> None:
    shares = planned(network(), ReplaceBroker("f", "r1", "c-r1", "r1", mode=StandInMode.SHARE))
    assert free(shares) == ["r2"]


def test_a_stand_in_that_was_replaced_itself_waits_for_a_place() -> None:
    """It is not given another one."""
    first = done(planned(network(), ReplaceBroker("f", "r1", "c-r1", "r1")))
    assert free(planned(first, ReplaceBroker("r1", "r2", "c-r2", "r2"))) == []


def test_one_that_was_lost_is_never_free() -> None:
    first = done(planned(network(), ReplaceBroker("f", "r1", "c-r1", "r1")))
    assert free(planned(first, RemoveBroker("r1", lost=True))) == ["r2"]


def test_where_others_are_found_nobody_knows() -> None:
    assert POOL.place("stranger") is None
