"""Complaints come together at one member: who that is, what is handed on, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.errors import ProtocolError
from holdfast.kernel.outbox import RecordingOutbox
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.network_map import Link
from holdfast.protocols.routing.notices import MapChanged
from holdfast.schemes.tree.standin.cycle.complaints import VALID_FOR, Complaints
from holdfast.schemes.tree.standin.cycle.levels import Cause
from holdfast.schemes.tree.standin.cycle.messages import TEXT_BYTES_MAX, Complained
from holdfast.schemes.tree.standin.cycle.notices import Looked
from tests.standin.cycle.around import CHAIN, STAR, Phone, Watch, at, roster, sent

SAID = Complained("n2", "f", "crash", "unreachable", 0)


class Broker:
    """One with its complaints."""

    def __init__(self, name: str, links: Sequence[Link] = STAR) -> None:
        self.watch, self.phone, self.roster = Watch(), Phone(), roster(name, links)
        watch: Any = self.watch
        phone: Any = self.phone
        self.complaints = Complaints(self.roster, watch, phone)
        self.out = RecordingOutbox()

    def hear(self, said: Complained, peer: str = "n2", now: int = 0) -> None:
        self.complaints.on_complained(peer, said, at(self.out, now))

    def look(self, now: int) -> list[tuple[str, Any]]:
        self.complaints.on_looked(Looked(), at(self.out, now))
        return sent(self.out)

    def who(self, of: str, cause: Cause = Cause.CRASH) -> str:
        return self.complaints.who_sees_to(of, cause, self.out)


# ------------------------------------------------------------------------------------------------------ who sees to it
def test_the_first_member_that_can_sees_to_a_crash() -> None:
    assert Broker("n3").who("f") == "n1"
    assert Broker("n3").who("n1") == "f"


def test_one_that_is_absent_is_passed_over() -> None:
    broker = Broker("n3")
    broker.phone.absent = {"n1", "f"}
    assert broker.who("f") == "n2"
    broker.phone.absent = {"n1", "f", "n2"}
    assert broker.who("f") == "n3"


def test_as_long_as_it_is_not_known_of_one_that_comes_before_it_is_nobody() -> None:
    """Or two would see to it at once."""
    broker = Broker("n3")
    broker.phone.ringing = {"n1"}
    assert broker.who("f") == ""


def test_the_keeper_alone_sees_to_one_that_is_congested() -> None:
    """Also if it is congested itself: it answers."""
    broker = Broker("n3")
    assert broker.who("n1", Cause.CONGESTION) == "n1"
    broker.phone.absent = {"n1"}
    assert broker.who("f", Cause.CONGESTION) == ""


# ------------------------------------------------------------------------------------------------------------- hand-on
def test_a_complaint_goes_to_who_sees_to_it_again_and_again() -> None:
    broker = Broker("n2")
    broker.watch.complain("f")
    said = Complained("n2", "f", "crash", "unreachable", 0)
    assert broker.look(0) == [("n1", said)]
    assert broker.look(SECOND // 4) == []
    assert broker.look(SECOND // 2) == [("n1", said)]


def test_what_is_heard_is_handed_on_but_not_to_who_said_it() -> None:
    broker = Broker("n3")
    broker.hear(SAID)
    assert broker.look(0) == [("n1", SAID)]
    broker.phone.absent = {"n1"}
    assert broker.look(SECOND) == []


def test_who_sees_to_it_hands_nothing_on() -> None:
    broker = Broker("n1")
    broker.watch.complain("f")
    broker.hear(SAID)
    assert broker.look(0) == []


def test_a_long_text_is_cut_to_what_others_take() -> None:
    broker = Broker("n2")
    broker.watch.complain("f", text="ü" * 400)
    ((_, said),) = broker.look(0)
    assert len(said.text.encode()) <= TEXT_BYTES_MAX
    Broker("n1").hear(said)


# -------------------------------------------------------------------------------------------------------- what it means
def all_complain(broker: Broker, of: str, by: Sequence[str], now: int = 0) -> None:
    for name in by:
        broker.hear(Complained(name, of, "crash", "unreachable", 0), name, now)


def test_one_has_failed_when_all_its_neighbours_say_so() -> None:
    """D0-A8: one that hears it is enough, so that a link that is cut replaces nobody."""
    broker = Broker("n1")
    all_complain(broker, "f", ["n2", "n3"])
    broker.look(0)
    assert broker.complaints.failed() == {}
    broker.watch.complain("f")
    broker.look(0)
    assert broker.complaints.failed() == {"f": "n2, n3, n1: unreachable"}


def test_neighbours_that_failed_themselves_need_not_say_it() -> None:
    """f and n2 are neighbours, and say nothing any more."""
    broker = Broker("n1", CHAIN)
    broker.watch.complain("f")
    all_complain(broker, "n2", ["n3"])
    broker.look(0)
    assert list(broker.complaints.failed()) == ["f", "n2"]


def test_one_whose_neighbours_all_failed_is_said_to_by_nobody() -> None:
    """Of a leaf behind a broker that failed nobody can tell."""
    broker = Broker("n1")
    all_complain(broker, "f", ["n2", "n3"])
    broker.watch.complain("f")
    broker.hear(Complained("f", "n2", "crash", "unreachable", 0), "f")
    broker.look(0)
    assert "n2" not in broker.complaints.failed()


def test_one_that_complains_itself_is_not_the_cause() -> None:
    """b1–f–n2: n2 is slow, so that events wait in f, too, and n1 complains of f. n2 is relieved."""
    broker = Broker("n1", CHAIN)
    broker.watch.complain("f", Cause.CONGESTION, "slow")
    broker.hear(Complained("f", "n2", "congestion", "slow", 0), "f")
    broker.look(0)
    assert broker.complaints.congested() == {"n2": "f: slow"}


def test_one_neighbour_is_enough_for_congestion() -> None:
    broker = Broker("n1")
    broker.hear(Complained("n3", "f", "congestion", "slow", 0), "n3")
    broker.look(0)
    assert broker.complaints.congested() == {"f": "n3: slow"}
    assert broker.complaints.failed() == {}


# ------------------------------------------------------------------------------------------------------------ its end
def test_what_is_not_said_again_is_over() -> None:
    broker = Broker("n1")
    broker.hear(SAID)
    broker.look(VALID_FOR - 1)
    assert list(broker.complaints.heard) == ["f"]
    broker.look(VALID_FOR)
    assert broker.complaints.heard == {}


def test_what_the_monitor_says_no_more_is_over_at_once() -> None:
    broker = Broker("n1")
    broker.watch.complain("f")
    broker.look(0)
    broker.watch.complaints.clear()
    broker.look(1)
    assert broker.complaints.heard == {}


def test_complaints_by_another_map_do_not_count() -> None:
    broker = Broker("n1")
    broker.hear(Complained("n2", "f", "crash", "unreachable", 1))
    assert broker.complaints.heard == {}
    broker.hear(SAID)
    broker.complaints.on_map_changed(MapChanged(broker.roster.map), broker.out)
    assert broker.complaints.heard == {}


@pytest.mark.parametrize("said", [("n2", "n3"), ("n2", "stranger"), ("stranger", "f")])
def test_only_neighbours_complain_of_each_other(said: tuple[str, str]) -> None:
    broker = Broker("n1")
    broker.hear(Complained(*said, "crash", "unreachable", 0))
    assert broker.complaints.heard == {}


def test_what_a_stranger_says_does_not_count() -> None:
    broker = Broker("n1")
    broker.hear(SAID, "stranger")
    assert broker.complaints.heard == {}


# ------------------------------------------------------------------------------------------------------------ hostile
@pytest.mark.parametrize(
    "said",
    [
        ("n2", "f", "boredom", "unreachable"),
        ("", "f", "crash", "unreachable"),
        ("n2", "", "crash", "unreachable"),
        ("n2", "n2", "crash", "unreachable"),
        ("n2\n", "f", "crash", "unreachable"),
        ("n2", "f" * 1_000, "crash", "unreachable"),
        ("n2", "f", "crash", "x" * (TEXT_BYTES_MAX + 1)),
        ("n2", "f", "crash", "ü" * TEXT_BYTES_MAX),
        ("n2", "f", "crash", "two\nlines"),
        ("n2", "f", "crash", "\x1b[2J"),
    ],
)
def test_what_nobody_says_ends_the_link(said: tuple[str, str, str, str]) -> None:
    broker = Broker("n1")
    with pytest.raises(ProtocolError):
        broker.hear(Complained(*said, 0))
    assert broker.complaints.heard == {}
