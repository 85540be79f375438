"""What comes between while a stand-in learns: links that break, neighbours that are met twice, what is new and what is
taken back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import (
    AFTERWARDS,
    FAULTY,
    PENDING,
    REPLACED_MS,
    STAND_IN,
    publications,
    star,
    subscription,
)
from experiments.standin.watched import MILLISECOND, Watched, circular, doubled
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.schemes.tree.standin.messages import StandInAdvertised, StandInRequest, StandInSubscribed
from holdfast.sim.latency import Constant
from holdfast.sim.scenario import Advertise, Kill, Network, Reset, Unadvertise, Unsubscribe

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


@pytest.mark.parametrize(
    ("case", "level"), [(BASIC, "none"), (SYNCH, "none"), (INCREM, "none"), (BASIC, "buffered"), (SYNCH, "buffered")]
)
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


@pytest.mark.parametrize("case", [BASIC, SYNCH], ids=str)
@pytest.mark.parametrize("after_ms", [4, 8, 30])
def test_what_the_disk_has_for_a_stand_in_does_not_come_before_what_it_falls_under(case: Case, after_ms: int) -> None:
    """D0-B10, D1-B4.1: the neighbour starts again while the stand-in learns, and may have sent it before."""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    drawn = star(case, 3, wanted, [3_000, *PENDING, *AFTERWARDS], slow_ms={"n3": 600}, level="buffered")
    restarts = Kill(at_ms=REPLACED_MS + after_ms, for_ms=200, host="n1")
    watched = Watched()
    watched.play(replace(drawn, faults=[*drawn.faults, restarts]))
    assert problems(watched) == []
    for subscriber in wanted:
        assert watched.delivered(subscriber) == list(range(1, 14))


def test_a_neighbour_that_dies_is_left_out_and_tells_everything_when_it_is_back() -> None:
    """D0-B7.4"""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    drawn = star(SYNCH, 3, wanted, [3_000, *PENDING, *range(8_500, 9_500, 100)], level="buffered")
    dies = Kill(at_ms=REPLACED_MS - 50, for_ms=3_000, host="n3")
    watched = Watched()
    watched.play(replace(drawn, settings={**drawn.settings, "patience_ms": 1_000}, faults=[*drawn.faults, dies]))
    assert problems(watched) == []
    (done,) = watched.happened("stand-in-done")
    assert done.detail["left_out"] == ["n3"]
    assert done.t < (REPLACED_MS + 1_100) * MILLISECOND
    for subscriber in wanted:
        assert watched.delivered(subscriber) == list(range(1, 22))


@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_what_is_taken_back_meanwhile_is_gone_and_what_is_new_is_there(case: Case) -> None:
    """D0-B6, D0-F6: subscriptions and advertisements of clients, while a neighbour keeps the stand-in waiting."""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    at = REPLACED_MS + 300
    more = [
        Unsubscribe(at_ms=at, client="s-n2", name="s-n2"),
        Advertise(at_ms=300, client="q", name="a", filter="topic = 'u'"),
        Unadvertise(at_ms=at, client="q", name="a"),
        Advertise(at_ms=at, client="o", name="a", filter="topic = 'v'"),
        subscription("new", "topic = 't'", at),
        *publications("o", range(8_000, 8_500, 100), topic="v"),
        subscription("v", "topic = 'v'"),
    ]
    homes = {"q": "n2", "o": "n3", "new": "n2", "v": "n1"}
    moments = [3_000, *PENDING, *range(8_000, 8_500, 100)]
    watched = Watched()
    watched.play(star(case, 4, wanted, moments, more=more, homes=homes, slow_ms={"n4": 400}))
    assert problems(watched) == []
    (done,) = watched.happened("stand-in-done")
    assert done.t > at * MILLISECOND
    assert watched.delivered("new")[-5:] == watched.delivered("t-n3")[-5:] == [12, 13, 14, 15, 16]
    assert not set(watched.delivered("s-n2")) & {12, 13, 14, 15, 16}
    assert watched.delivered("v") == [1, 2, 3, 4, 5]
    tables = watched.tables()
    assert doubled(tables) == circular(tables) == []
    known = {table: sum(kind == table for kind, _ in tables[STAND_IN]) for table, _ in tables[STAND_IN]}
    assert known == {"advertisements": 2, "subscriptions": 3}


@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_an_answer_that_is_said_twice_stands_for_no_other(case: Case) -> None:
    """D0-B4.3: a neighbour has answered, its link breaks, and it is asked again, while another has yet to answer."""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    moments = [3_000, *PENDING, *range(9_500, 10_000, 100)]
    slow = Network(latency=Constant(delay_us=20_000))
    drawn = replace(star(case, 3, wanted, moments, slow_ms={"n3": 600}), network=slow)
    watched = Watched()
    watched.play(replace(drawn, faults=[*drawn.faults, Reset(at_ms=5_700, source=STAND_IN, target="n2")]))
    assert problems(watched) == []
    answers = [said for said in watched.conversation(StandInSubscribed) if said.message.answered]  # type: ignore[attr-defined]
    assert [said.source for said in answers] == ["n2", "n2", "n3"]
    (done,) = watched.happened("stand-in-done")
    assert (done.detail["left_out"], watched.happened("stand-in-without")) == ([], [])
    assert answers[-1].t < done.t < answers[-1].t + 100 * MILLISECOND
    for subscriber in wanted:
        assert watched.delivered(subscriber)[-5:] == [12, 13, 14, 15, 16]


def test_what_is_new_in_the_turn_of_an_answer_is_told_as_news_and_waited_for_by_nobody() -> None:
    """D0-B7.1, D0-B6: all have said what they advertise. In the turn in which the stand-in hears one of the answers
    it hears of something new. Were that told with what it tells, it would be answered before a slow neighbour has
    answered what was there: counted, that would be the end, and the slow one's subscription be dropped as unnamed."""
    wanted = {"s-n2": "topic = 't'", "t-n3": "topic = 't'"}
    moments = [3_000, *PENDING, *range(9_500, 10_000, 100)]
    new = Advertise(at_ms=7_767, client="o", name="a", filter="topic = 'o'")
    slow_ms = {"n3": 700, "n1": 900, STAND_IN: 60}
    watched = Watched()
    watched.play(star(SYNCH, 4, wanted, moments, more=[new], homes={"o": "n2"}, slow_ms=slow_ms))
    assert problems(watched) == []
    told = [said.message for said in watched.conversation(StandInAdvertised) if said.source == STAND_IN]
    assert not any("n2.1.2" in dict(message.advertisements) for message in told)  # type: ignore[attr-defined]
    assert all(("advertisements", "n2.1.2") in table for table in watched.tables().values())
    (done,) = watched.happened("stand-in-done")
    answered = [said for said in watched.conversation(StandInSubscribed) if said.source == "n3"]
    assert done.t > answered[-1].t
    assert watched.delivered("t-n3")[-5:] == watched.delivered("s-n2")[-5:] == [12, 13, 14, 15, 16]
