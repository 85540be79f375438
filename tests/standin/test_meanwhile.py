"""What comes between while a stand-in learns: links that break, neighbours that are met twice, what is new and what is
taken back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import PENDING, STAND_IN, publications, star
from experiments.standin.watched import Watched
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.schemes.tree.standin.messages import StandInRequest
from holdfast.sim.scenario import Reset

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
