"""A spare is kept for who asks first."""

from __future__ import annotations

import pytest

from holdfast.errors import ProtocolError
from holdfast.kernel.outbox import RecordingOutbox
from holdfast.protocols.routing.network_map import RemoveBroker, ReplaceBroker, StandInProtocol, planned
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.messages import Reserve, Reserved
from holdfast.schemes.tree.standin.cycle.reservation import KEPT_FOR, Reservation
from tests.standin.cycle.around import at, network, roster, sent

STAND_IN = ReplaceBroker("f", "r", "c-r", "r", StandInProtocol.SYNCH)


def answer(reservation: Reservation, peer: str, faulty: str, now: int = 0) -> str:
    out = RecordingOutbox()
    reservation.on_reserve(peer, Reserve(faulty), at(out, now))
    ((to, said),) = sent(out)
    assert isinstance(said, Reserved)
    assert (to, said.faulty) == (peer, faulty)
    return said.problem


def test_of_two_that_ask_for_one_the_first_gets_it() -> None:
    """D0-A9, D0-F6"""
    reservation = Reservation(roster("r"))
    assert answer(reservation, "n1", "f") == ""
    assert answer(reservation, "n2", "f", 1) == "r is kept for f, as n1 asked"
    assert answer(reservation, "n1", "n3", 2) == ""  # who sees to one broker at a time
    assert answer(reservation, "n2", "f", 3) == "r is kept for n3, as n1 asked"


def test_who_asks_again_keeps_it() -> None:
    reservation = Reservation(roster("r"))
    assert answer(reservation, "n1", "f") == ""
    assert answer(reservation, "n1", "f", KEPT_FOR - 1) == ""
    assert answer(reservation, "n2", "f", KEPT_FOR) != ""
    assert answer(reservation, "n2", "f", 2 * KEPT_FOR - 1) == ""


def test_one_that_is_refused_does_not_keep_it() -> None:
    reservation = Reservation(roster("r"))
    answer(reservation, "n1", "f")
    answer(reservation, "n2", "f", KEPT_FOR - 1)
    assert answer(reservation, "n3", "f", KEPT_FOR) == ""


def test_a_member_stands_in_for_nobody() -> None:
    assert answer(Reservation(roster("n2")), "n1", "f") == "n2 is a member already"
    assert answer(Reservation(Roster("r", planned(network(), STAND_IN), {})), "n1", "n2") == "r is a member already"


def test_one_that_waits_for_its_place_stands_in_for_nobody() -> None:
    waiting = Roster("f", planned(network(), STAND_IN), {})
    assert answer(Reservation(waiting), "n1", "n2") == "f waits for its own place"


def test_one_that_was_lost_stands_in_for_nobody() -> None:
    lost = Roster("f", planned(network(), RemoveBroker("f", lost=True)), {})
    assert answer(Reservation(lost), "n1", "n2").startswith("f was declared lost")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 1_000])
def test_nobody_is_called_so(name: str) -> None:
    with pytest.raises(ProtocolError):
        Reservation(roster("r")).on_reserve("n1", Reserve(name), RecordingOutbox())
