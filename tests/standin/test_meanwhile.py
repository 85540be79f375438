"""What comes between while a stand-in learns: links that break, neighbours that are met twice, what is new and what is
taken back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import FAULTY, PENDING, STAND_IN, publications, star
from experiments.standin.watched import Watched
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.schemes.tree.standin.messages import StandInRequest
from holdfast.sim.latency import Constant
from holdfast.sim.scenario import Kill, Network, Reset

FAILOVER = [case for case in CASES if case.mode is StandInMode.FAILOVER]
BASIC, SYNCH, INCREM = (Case(protocol, StandInMode.FAILOVER) for protocol in StandInProtocol)


def problems(watched: Watched) -> list[str]:
    assert watched.outcome is not None
    return [*([watched.outcome.broken] if watched.outcome.broken else []), *map(str, watched.outcome.violations)]


@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_a_neighbour_whose_link_breaks_is_asked_again_and_says_nothing_else_before(case: Case) -> None:
    """D0-B4.3, D0-B6: the request and the end of its link are seen in one turn, in which there is a new link, too. Told
    as any neighbour is, the stand-in would take for news what the others know, and never ask what they want of it."""
    moments = [3_000, *PENDING, *range(8_000, 8_500, 100)]
    drawn = star(
        case,
        3,
        {"s-n2": "topic = 'u'"},
        [3_000],
        more=publications("q", moments, topic="u"),
        homes={"q": "n3"},
        slow_ms={"n3": 600},
    )
    watched = Watched()
    watched.play(replace(drawn, faults=[*drawn.faults, Reset(at_ms=6_300, source=STAND_IN, target="n3")]))
    assert problems(watched) == []
    asked = [said for said in watched.conversation(StandInRequest) if said.target == "n3"]
    assert len(asked) == 2
    delivered = watched.delivered("s-n2")
    assert delivered[-5:] == [12, 13, 14, 15, 16]
    assert case == BASIC or delivered == list(range(1, 17))


@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_neighbour_that_is_met_late_hears_what_is_wanted_where_nothing_is_advertised(case: Case, level: str) -> None:
    """D1-B1, D0-B3: nobody's advertisement makes the stand-in say it then."""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    moments = [3_000, *PENDING, *range(8_000, 8_500, 100)]
    drawn = star(case, 3, wanted, moments, slow_ms={"n1": 300}, level=level)
    watched = Watched()
    watched.play(replace(drawn, settings={**drawn.settings, "advertisements": False}))
    assert problems(watched) == []
    for subscriber in wanted:
        assert watched.delivered(subscriber)[-5:] == [12, 13, 14, 15, 16]


@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize("at_ms", [5_250, 5_330, 5_700])
def test_what_was_on_a_link_that_breaks_is_said_again(case: Case, at_ms: int) -> None:
    """D0-B4.3"""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    moments = [3_000, *PENDING, *range(8_500, 9_000, 100)]
    drawn = replace(
        star(case, 3, wanted, moments, slow_ms={"n3": 600}), network=Network(latency=Constant(delay_us=20_000))
    )
    watched = Watched()
    watched.play(replace(drawn, faults=[*drawn.faults, Reset(at_ms=at_ms, source=STAND_IN, target="n1")]))
    assert problems(watched) == []
    for subscriber in wanted:
        delivered = watched.delivered(subscriber)
        assert delivered[-5:] == [12, 13, 14, 15, 16]


@pytest.mark.parametrize("neighbours", [1, 2])
def test_a_broker_that_comes_back_hears_that_it_was_replaced(neighbours: int) -> None:
    """D0-F6: also if those who dial it as a rule do not look for it any more; and its client goes to its stand-in."""
    drawn = star(SYNCH, neighbours, {"s-n1": "topic = 'u'"}, [3_000], homes={"q": FAULTY})
    more = publications("q", range(9_500, 11_500, 100), topic="u")
    back = Kill(at_ms=4_000, for_ms=4_000, host=FAULTY)
    watched = Watched()
    clients = [replace(client, brokers=(FAULTY, STAND_IN)) if client.id == "q" else client for client in drawn.clients]
    actions = sorted([*drawn.actions, *more], key=lambda action: action.at_ms)
    watched.play(replace(drawn, actions=actions, clients=clients, faults=[back]))
    assert problems(watched) == []
    assert watched.part(FAULTY, "mapping").facts()["problem"].startswith(f"{STAND_IN} stands in for it")
    assert watched.delivered("s-n1")[-10:] == list(range(11, 21))
