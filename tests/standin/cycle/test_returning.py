"""The keeper gives a broker its place or its work back when it has been well for a while, and each time for longer."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from holdfast.kernel.outbox import RecordingOutbox
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.network_map import (
    Change,
    HandBack,
    NetworkMap,
    ReplaceBroker,
    StandInMode,
    done,
    planned,
)
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.settings import RoutingSettings, ServiceLevels
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Release
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.notices import Looked
from holdfast.schemes.tree.standin.cycle.returning import DOUBLED_MAX, SOON, Returning
from holdfast.schemes.tree.standin.cycle.spares import Pool
from holdfast.topology.graph import BrokerGraph
from tests.standin.cycle.around import STAR, Phone, at, roster

CALM = 2 * SECOND
LEVELS = ServiceLevels(enabled=True, calm=CALM)
LISTED = ("n1", "f", "n2", "n3", "r")


class Keeper:
    """n1, which keeps the map, and what it does."""

    def __init__(self, levels: ServiceLevels = LEVELS) -> None:
        self.now = 0
        self.roster = roster("n1")
        self.phone = Phone()
        self.desk = ErrandDesk()
        self.out = RecordingOutbox()
        self.is_busy = False
        self.knows = True  # whether who is called has the map
        self.heard: dict[str, Any] = {}  # complaints
        self.made: list[NetworkMap] = []
        self.wanted: list[Change] = []
        graph = BrokerGraph(("n1", "f", "n2", "n3"), STAR)
        places = {name: name for name in LISTED}
        pool = Pool(RoutingSettings("n1", graph, addresses=places, client_addresses=places))
        me: Any = self
        memory = Memory("n1", True, {})
        phone: Any = self.phone
        self.returning = Returning(levels, self.roster, me, me, phone, me, me, pool, self.desk, memory)

    # What it takes of the parts around it.
    def want(self, change: Change, out: RecordingOutbox) -> None:
        self.wanted.append(change)

    def make(self, network: NetworkMap, out: RecordingOutbox) -> None:
        self.made.append(network)
        self.take(network)

    def knows_map(self, peer: str, number: int) -> bool:
        return self.knows

    # What happens to it.
    def take(self, network: NetworkMap) -> None:
        before = self.roster.map
        self.roster.adopt(network)
        self.returning.on_map_changed(MapChanged(before), at(self.out, self.now))

    def take_to_the_end(self, network: NetworkMap) -> None:
        self.take(network)
        while self.roster.map.steps:
            self.take(done(self.roster.map))

    def lose(self, mode: StandInMode = StandInMode.FAILOVER, asked: bool = False) -> None:
        stand_in = ReplaceBroker("f", "r", "r", "r", mode=mode, asked=asked)
        self.take_to_the_end(planned(self.roster.map, stand_in))

    def waited(self) -> int:
        """How long until it hands back, looking four times a second."""
        begun, before = self.now, len(self.made)
        while len(self.made) == before:
            self.look()
            assert self.now - begun < 10_000 * SECOND
        while self.roster.map.steps:
            self.take(done(self.roster.map))
        return self.now - begun - SECOND // 4

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.returning.on_looked(Looked(), at(self.out, self.now))
            self.now += SECOND // 4


def test_a_broker_that_answers_and_knows_that_it_was_replaced_gets_its_place_back() -> None:
    """D0-F6"""
    keeper = Keeper()
    keeper.lose()
    assert keeper.waited() == CALM
    assert keeper.wanted == [HandBack("f", "f", "f")]
    assert keeper.roster.map.find("f") is not None
    assert keeper.roster.map.find("r") is None


def test_one_that_is_away_once_is_waited_for_anew() -> None:
    keeper = Keeper()
    keeper.lose()
    keeper.look(7)
    keeper.phone.absent = {"f"}
    keeper.look()
    keeper.phone.absent = set()
    assert keeper.made == []
    assert keeper.waited() == CALM


def test_a_call_that_ends_is_no_end_of_being_well() -> None:
    """Calls end by themselves, before most waits do: it is called anew."""
    keeper = Keeper()
    keeper.lose()
    keeper.look(7)
    keeper.phone.ringing = {"f"}
    keeper.look(3)
    assert keeper.made == []
    keeper.phone.ringing = set()
    keeper.look()
    assert len(keeper.made) == 1


def test_one_that_has_not_heard_that_it_was_replaced_is_not_well() -> None:
    keeper = Keeper()
    keeper.lose()
    keeper.knows = False
    keeper.look(100)
    assert keeper.made == []


def test_one_that_is_in_need_again_soon_is_waited_for_twice_as_long_each_time() -> None:
    keeper, waits = Keeper(), []
    for _ in range(DOUBLED_MAX + 3):
        keeper.lose()
        waits.append(keeper.waited())
    doubled = [CALM << min(times, DOUBLED_MAX) for times in range(DOUBLED_MAX + 3)]
    assert waits == doubled


def test_one_that_was_well_for_long_is_forgiven() -> None:
    keeper = Keeper()
    for _ in range(2):
        keeper.lose()
        keeper.waited()
    keeper.now += SOON * 2 * CALM
    keeper.lose()
    assert keeper.waited() == CALM


def test_one_whose_work_is_shared_is_well_when_nobody_complains_of_it() -> None:
    keeper = Keeper()
    keeper.lose(StandInMode.SHARE)
    keeper.heard = {"f": {"n2": None}}
    keeper.look(50)
    assert keeper.made == []
    keeper.heard = {}
    assert keeper.waited() == CALM
    assert keeper.wanted == [HandBack("f", "", "")]
    assert keeper.roster.map.besides == ()


def test_what_an_operator_asked_for_an_operator_gives_back() -> None:
    for mode in (StandInMode.FAILOVER, StandInMode.SHARE, StandInMode.HAND_OVER):
        keeper = Keeper()
        keeper.lose(mode, asked=True)
        keeper.look(100)
        assert keeper.made == [], mode


def test_nothing_is_given_back_where_the_site_does_not_want_it() -> None:
    keeper = Keeper(replace(LEVELS, hand_back=False))
    keeper.lose()
    keeper.look(100)
    assert keeper.made == []


def test_nobody_but_the_keeper_gives_anything_back() -> None:
    keeper = Keeper()
    keeper.roster.name = "n2"
    keeper.lose()
    keeper.look(100)
    assert keeper.made == []


def test_it_waits_for_who_sees_to_a_case() -> None:
    keeper = Keeper()
    keeper.lose()
    keeper.is_busy = True
    keeper.look(100)
    assert keeper.made == []
    keeper.is_busy = False
    keeper.look()
    assert len(keeper.made) == 1


def test_a_stand_in_that_is_not_needed_any_more_is_released() -> None:
    """D0-A9: a broker that was lent goes back."""
    keeper = Keeper()
    keeper.lose()
    keeper.waited()
    assert [given.errand for given in keeper.desk._errands] == [Release("r")]


def test_a_broker_that_was_replaced_is_not_released() -> None:
    """It waits for its place."""
    keeper = Keeper()
    keeper.lose()
    assert list(keeper.desk._errands) == []
