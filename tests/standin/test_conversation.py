"""What a stand-in and its neighbours say to each other: how much, to whom, and that nothing of it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import (
    AFTERWARDS,
    FAULTY,
    PENDING,
    REPLACED_MS,
    STAND_IN,
    network,
    star,
    subscription,
)
from experiments.standin.watched import CONVERSATION, MILLISECOND, Watched
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.schemes.tree.standin.messages import (
    StandInAdvertised,
    StandInDone,
    StandInForward,
    StandInRequest,
    StandInSubscribed,
)
from holdfast.sim.scenario import Action, Advertise, Broker, Kill, Scenario

FAILOVER = [case for case in CASES if case.mode is StandInMode.FAILOVER]
BASIC, SYNCH, INCREM = (Case(protocol, StandInMode.FAILOVER) for protocol in StandInProtocol)
NEIGHBOURS = 4
BEFORE = 2_500  # when all is advertised and wanted


def problems(watched: Watched) -> list[str]:
    assert watched.outcome is not None
    return [*([watched.outcome.broken] if watched.outcome.broken else []), *map(str, watched.outcome.violations)]


def quiet(case: Case, advertised: Mapping[str, int], wanted: Mapping[str, int], beyond: int = 0) -> Scenario:
    """So many clients of each neighbour advertise, each something else, and so many want all of it. Nobody publishes.
    Behind each neighbour hangs a chain of so many brokers."""
    near = [f"n{number}" for number in range(1, NEIGHBOURS + 1)]
    links = [(FAULTY, name) for name in near]
    for name in near:
        chain = [name, *(f"{name}.{place}" for place in range(1, beyond + 1))]
        links += list(pairwise(chain))
    homes: dict[str, str] = {}
    actions: list[Action] = []
    for name in near:
        for number in range(advertised.get(name, 0)):
            client = f"a{number}-{name}"
            homes[client] = name
            actions.append(Advertise(at_ms=300, client=client, name="all", filter=f"topic = '{client}'"))
        for number in range(wanted.get(name, 0)):
            client = f"s{number}-{name}"
            homes[client] = name
            actions.append(subscription(client, f"n > {number}"))
    return network(case, links, homes, actions, keeper="n2")


# ------------------------------------------------------------------------------------------------------- how much
@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize(
    ("advertised", "wanted"),
    [
        ({}, {}),
        ({"n1": 1}, {"n2": 1}),
        ({"n1": 3, "n2": 2}, {"n1": 2, "n3": 4}),
        ({"n1": 2, "n2": 2, "n3": 2, "n4": 2}, {"n1": 3, "n2": 3, "n3": 3, "n4": 3}),
    ],
)
def test_so_much_is_said_and_no_more(case: Case, advertised: dict[str, int], wanted: dict[str, int]) -> None:
    """D0-C21, D0-D1, D0-B3.1, D0-A19, D0-A20: |N| requests, |A| advertisements in and |A|(|N|-1) out, |N| lastAdv,
    |A|(|N|-1) lastSub, each subscription in once and out to each side that advertises, |N| done."""
    watched = Watched()
    watched.play(quiet(case, advertised, wanted))
    assert problems(watched) == []
    into: Counter[str] = Counter()
    out_of: Counter[str] = Counter()
    last = 0
    for said in watched.conversation():
        way = into if said.target == STAND_IN else out_of
        match said.message:
            case StandInAdvertised(advertisements=entries, last=is_last):
                way["advertisements"] += len(entries)
                last += is_last
            case StandInSubscribed(subscriptions=entries, answered=answered):
                way["subscriptions"] += len(entries)
                way["answered"] += len(answered)
            case StandInRequest() | StandInDone():
                way[type(said.message).__name__] += 1
            case _:
                raise AssertionError(said)
    a = sum(advertised.values())
    sides = [name for name, count in advertised.items() if count]
    pulled = sum(count for name, count in wanted.items() if any(side != name for side in sides))
    passed_on = sum(count * sum(side != name for side in sides) for name, count in wanted.items())
    assert out_of["StandInRequest"] == out_of["StandInDone"] == last == NEIGHBOURS
    assert (into["advertisements"], out_of["advertisements"]) == (a, a * (NEIGHBOURS - 1))
    assert (into["answered"], out_of["answered"]) == (a * (NEIGHBOURS - 1), 0)
    assert (into["subscriptions"], out_of["subscriptions"]) == (pulled, passed_on)


@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_where_there_is_one_neighbour_its_last_advertisement_ends_the_conversation(case: Case) -> None:
    """D0-B7.3"""
    watched = Watched()
    watched.play(star(case, 1, {"s-n1": "topic = 't'"}, [3_000, *PENDING, *AFTERWARDS]))
    assert problems(watched) == []
    kinds = Counter(type(said.message) for said in watched.conversation())
    assert kinds == {StandInRequest: 1, StandInAdvertised: 1, StandInDone: 1}
    assert watched.delivered("s-n1") == watched.published("p")


# ---------------------------------------------------------------------------------------------------------- to whom
@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize("brokers", [10, 100])
def test_only_the_stand_in_and_the_direct_neighbours_take_part(case: Case, brokers: int) -> None:
    """D0-C16, D0-B6: however large the network is."""
    beyond, more = divmod(brokers - 1 - NEIGHBOURS, NEIGHBOURS)
    scenario = quiet(case, {"n1": 2, "n3": 1}, {"n2": 3, "n4": 2}, beyond=beyond)
    last = [f"m{number}" for number in range(1, more + 1)]
    links = [*scenario.links, *(("n1", name) for name in last)]
    members = [*scenario.brokers, *(Broker(id=name, durable=True) for name in last)]
    assert len([broker for broker in members if not broker.spare]) == brokers
    watched = Watched()
    watched.play(replace(scenario, links=links, brokers=members))
    assert problems(watched) == []
    assert len(watched.happened("stand-in-done")) == 1
    near = {f"n{number}" for number in range(1, NEIGHBOURS + 1)}
    pairs = {(said.source, said.target) for said in watched.conversation()}
    assert pairs == {(STAND_IN, name) for name in near} | {(name, STAND_IN) for name in near}
    entries = {
        kind.__name__: sum(len(getattr(said.message, field)) for said in watched.conversation(kind))
        for kind, field in ((StandInAdvertised, "advertisements"), (StandInSubscribed, "subscriptions"))
    }
    assert entries == {"StandInAdvertised": 3 * NEIGHBOURS, "StandInSubscribed": 5 + 2 * 5}


@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize("comes_back", [False, True])
def test_the_stand_in_has_nothing_to_do_with_the_faulty_broker(case: Case, comes_back: bool) -> None:
    """D0-C18: also when that one runs again meanwhile, with the map of before."""
    scenario = star(case, 3, {"s-n2": "topic = 't'", "s-n3": "topic = 't'"}, [3_000, *PENDING, *AFTERWARDS])
    if comes_back:
        scenario = replace(scenario, faults=[Kill(at_ms=4_000, for_ms=REPLACED_MS + 10 - 4_000, host=FAULTY)])
    watched = Watched()
    watched.play(scenario)
    assert problems(watched) == []
    assert len(watched.happened("stand-in-done")) == 1
    assert watched.dialled[STAND_IN, FAULTY] == watched.dialled[FAULTY, STAND_IN] == 0
    assert [said for said in watched.said if {said.source, said.target} == {STAND_IN, FAULTY}] == []


# ------------------------------------------------------------------------------------------------- nothing is left
@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_after_a_replacement_links_carry_what_they_carry_where_nothing_was_replaced(case: Case) -> None:
    """D0-C17: the same types of messages, with the same fields, as often; and no structure is left."""
    wanted = {"s-n2": "topic = 't'", "t-n2": "n > 3", "s-n3": "topic = 't'"}
    moments = [3_000, *PENDING, *range(8_000, 11_000, 50)]
    replaced, never = Watched(), Watched()
    scenario = star(case, 3, wanted, moments)
    replaced.play(scenario)
    assert problems(replaced) == []
    names = {FAULTY: STAND_IN}
    links = [(names.get(one, one), names.get(other, other)) for one, other in scenario.links]
    brokers = [replace(broker, spare=False) for broker in scenario.brokers if broker.id != FAULTY]
    never.play(replace(scenario, links=links, brokers=brokers, faults=[], operations=[], checkers=["no-loss"]))
    assert problems(never) == []
    among = {"n1", "n2", "n3", STAND_IN}

    def carried(watched: Watched) -> Counter[tuple[str, str, str]]:
        """Which messages are on which links; but for signs of life, whose moments depend on when a link was made."""
        found = watched.between(7_900, 11_500, among.__contains__)
        kinds = [(said.source, said.target, type(said.message).__name__) for said in found]
        return Counter(kind for kind in kinds if kind[2] != "Alive")

    assert carried(replaced) == carried(never)
    assert sum(carried(replaced).values()) > 300
    fields = [
        {(said.source, said.target, said.message.__struct_fields__) for said in watched.between(7_900, 11_500, bool)}
        for watched in (replaced, never)
    ]
    assert fields[0] == fields[1]
    for broker in among:
        learning, teaching = replaced.part(broker, "learning"), replaced.part(broker, "teaching")
        assert set(learning.measure().values()) <= {0, learning.measure()["stand_in_learned_total"]}
        left = {name: value for name, value in teaching.measure().items() if not name.endswith("_peak")}
        assert set(left.values()) == {0}
        assert (teaching._pupil, learning._asked, learning._pending, len(learning.missed)) == (None, {}, {}, 0)
        for feed in replaced.part(broker, "forwarding").feeds.values():
            assert (feed._discipline, feed.is_suspended, feed.is_idle) == (None, False, True)


def test_before_a_replacement_nothing_is_said_of_it() -> None:
    """D0-C17"""
    watched = Watched()
    watched.play(star(SYNCH, 3, {"s-n2": "topic = 't'"}, [3_000, *PENDING]))
    first = min(said.t for said in watched.conversation())
    assert first >= REPLACED_MS * MILLISECOND
    on_links = {type(said.message) for said in watched.said if said.t < REPLACED_MS * MILLISECOND}
    assert not on_links & set(CONVERSATION)


# --------------------------------------------------------------------------------------------------------- how long
def delay_ms(watched: Watched, neighbour: str) -> int:
    """From when a neighbour is asked until the first event comes by the stand-in (D0-E2), of that neighbour."""
    asked = min(said.t for said in watched.conversation(StandInRequest) if said.target == neighbour)
    return (watched.hops(STAND_IN, neighbour)[0].t - asked) // MILLISECOND


def test_one_slow_neighbour_delays_all_where_all_wait_and_only_itself_where_not() -> None:
    """D0-C27: synch is as slow as the slowest; increm is not."""
    delays: dict[Case, int] = {}
    for case in (SYNCH, INCREM):
        watched = Watched()
        wanted = {"s-n2": "topic = 't'", "s-n3": "topic = 't'", "s-n4": "topic = 't'"}
        watched.play(star(case, 4, wanted, [3_000, *PENDING, *AFTERWARDS], slow_ms={"n4": 600}))
        assert problems(watched) == []
        (done,) = watched.happened("stand-in-done")
        assert done.t > (REPLACED_MS + 1_200) * MILLISECOND
        if case == SYNCH:
            assert all(watched.hops(STAND_IN, name)[0].t > done.t for name in ("n2", "n3", "n4"))
        delays[case] = max(delay_ms(watched, name) for name in ("n2", "n3"))
    assert delays[INCREM] < 50 < 1_000 < delays[SYNCH]


def test_events_come_with_the_subscriptions_that_want_them_only_in_increm_and_meanwhile() -> None:
    """D0-A22, D0-C17"""
    for case in FAILOVER:
        watched = Watched()
        wanted = {"s-n2": "topic = 't'", "t-n3": "n > 5"}
        watched.play(star(case, 3, wanted, [3_000, *PENDING, *AFTERWARDS], slow_ms={"n3": 200}))
        labelled = watched.conversation(StandInForward)
        assert bool(labelled) == (case == INCREM)
        if labelled:
            (done,) = watched.happened("stand-in-done")
            assert max(said.t for said in labelled) < done.t
