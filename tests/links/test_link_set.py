"""Links to peers that come and go: who is dialled, when and where, and which of several links counts."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import CancelTimer, Connect, Disconnect, Effect, RecordingOutbox, SetTimer
from holdfast.protocols.links.link_set import Came, LinkSet
from holdfast.protocols.links.pauses import GrowingPauses, Pauses, SteadyPauses

PAUSE = 1000
STEADY = SteadyPauses(PAUSE)
DIAL = SetTimer(("owner", "dial", "b"), PAUSE)


class Word(Message, frozen=True):
    """Something that waits in a queue."""


class Keeping:
    """A set of links, and what comes of what happens to it."""

    def __init__(self, *, by_address: bool = False, strangers_max: int = 0, impatient: bool = False) -> None:
        self.links = LinkSet("owner", by_address=by_address, strangers_max=strangers_max, impatient=impatient)
        self.out = RecordingOutbox()

    def _done(self) -> list[Effect]:
        self.links.check_invariants()
        return self.out.take_effects()

    def want(
        self, peer: str = "b", address: str = "b:1", pauses: Pauses | None = STEADY, at_once: bool = True
    ) -> list[Effect]:
        self.links.want(peer, address, pauses, self.out, at_once=at_once)
        return self._done()

    def unwant(self, peer: str = "b") -> list[Effect]:
        self.links.unwant(peer, self.out)
        return self._done()

    def close(self, peer: str = "b") -> list[Effect]:
        self.links.close(peer, "over", self.out)
        return self._done()

    def up(self, link: int, peer: str = "b", address: str = "b:1", incarnation: int = 1) -> Came:
        came = self.links.link_up(LinkUp(link, peer, incarnation, Role.BROKER, bool(address), address), self.out)
        assert self._done() == []
        return came

    def down(self, link: int, peer: str = "b") -> tuple[str, list[Effect]]:
        return self.links.link_down(LinkDown(link, peer, "gone"), self.out), self._done()

    def failed(self, address: str = "b:1", peer: str = "b") -> list[Effect]:
        self.links.connect_failed(ConnectFailed(peer, address, "refused"), self.out)
        return self._done()

    def fire(self, peer: str = "b") -> list[Effect]:
        self.links.timer_fired(("owner", "dial", peer), self.out)
        return self._done()

    def word(self, peer: str = "b") -> None:
        self.out.send(peer, Word())
        self.out.take_effects()


# --------------------------------------------------------------------------------------------------------- dialling
def test_a_peer_that_is_wanted_is_dialled_until_there_is_a_link() -> None:
    keeping = Keeping()
    assert keeping.want() == [Connect("b", "b:1")]
    for _ in range(3):
        assert keeping.failed() == [DIAL]
        assert keeping.fire() == [Connect("b", "b:1")]
    assert keeping.up(7) is Came.LINKED
    assert (keeping.links.link_of("b"), keeping.links.linked) == (7, ("b",))
    assert keeping.fire() == []


def test_a_link_that_is_lost_is_dialled_again_after_a_pause() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.up(7)
    keeping.word()
    assert keeping.down(7) == ("b", [DIAL])
    assert keeping.out.queues == {}
    assert (keeping.links.link_of("b"), keeping.links.incarnation_of("b")) == (0, 0)
    assert keeping.fire() == [Connect("b", "b:1")]


def test_a_peer_may_be_wanted_after_a_pause() -> None:
    keeping = Keeping()
    assert keeping.want(at_once=False) == [DIAL]
    assert keeping.fire() == [Connect("b", "b:1")]


@pytest.mark.parametrize("address", ["b:1", ""])
def test_a_peer_that_dials_us_or_whose_address_is_not_known_is_not_dialled(address: str) -> None:
    keeping = Keeping()
    pauses = None if address else STEADY
    assert keeping.want(address=address, pauses=pauses) == []
    assert keeping.up(7, address="") is Came.LINKED
    assert keeping.down(7) == ("b", [] if address else [DIAL])
    assert address or keeping.fire() == []


def test_a_peer_that_has_a_link_is_not_dialled_when_it_is_wanted_again() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.up(7)
    assert keeping.want() == []
    assert keeping.want(address="b:2") == []
    assert keeping.down(7) == ("b", [DIAL])
    assert keeping.fire() == [Connect("b", "b:2")]


def test_an_attempt_that_is_under_way_is_not_begun_again() -> None:
    keeping = Keeping()
    keeping.want()
    assert keeping.links.is_dialling("b")
    assert keeping.want() == []
    assert keeping.fire() == []
    keeping.unwant()
    assert keeping.links.is_dialling("b")
    assert keeping.want() == []
    assert keeping.failed() == [DIAL]
    assert not keeping.links.is_dialling("b")


def test_an_impatient_owner_has_a_second_attempt_begun_beside_one_that_hangs() -> None:
    keeping = Keeping(impatient=True)
    keeping.want()
    assert keeping.want() == [Connect("b", "b:1")]
    for _ in range(2):
        assert keeping.failed() == [DIAL]
    assert keeping.fire() == [Connect("b", "b:1")]
    assert keeping.fire() == [Connect("b", "b:1")]
    assert [keeping.up(7), keeping.up(8)] == [Came.LINKED, Came.REPLACED]
    assert keeping.failed() == [DIAL]
    assert keeping.fire() == []


def test_a_peer_that_is_wanted_under_another_address_is_dialled_there() -> None:
    keeping = Keeping()
    keeping.want()
    assert keeping.want(address="b:2") == [Connect("b", "b:2")]
    assert keeping.failed("b:1") == []  # the attempt at the new address is the one that counts
    assert keeping.fire() == []
    assert keeping.failed("b:2") == [DIAL]
    assert keeping.fire() == [Connect("b", "b:2")]


def test_a_failure_is_nothing_to_a_peer_that_has_come_by_itself() -> None:
    keeping = Keeping()
    keeping.want()
    assert keeping.up(7, address="") is Came.LINKED
    assert keeping.failed() == []


# ------------------------------------------------------------------------------------------------------------ pauses
def test_pauses_grow_up_to_a_limit_and_begin_anew_after_a_link() -> None:
    keeping, rng = Keeping(), Random(1)
    pauses: list[int] = []
    keeping.want(pauses=GrowingPauses(100, 1000, rng))
    for _ in range(7):
        (timer,) = keeping.failed()
        assert isinstance(timer, SetTimer)
        pauses.append(timer.after)
        keeping.fire()
    longest = [100, 200, 400, 800, 1000, 1000, 1000]
    assert all(most // 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    keeping.up(7)
    _, (timer,) = keeping.down(7)
    assert isinstance(timer, SetTimer)
    assert timer.after <= 100


def test_pauses_of_clients_differ() -> None:
    assert len({GrowingPauses(10**6, 10**9, Random(seed)).after(3) for seed in range(20)}) == 20


def test_however_often_it_fails_a_pause_is_no_longer_than_its_limit() -> None:
    pauses = GrowingPauses(100, 1000, Random(1))
    assert 500 <= pauses.after(10**15) <= 1000


# ------------------------------------------------------------------------------------------------------- newest link
def test_of_two_links_to_a_peer_the_newest_wins() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.up(7, incarnation=1)
    assert keeping.up(8, incarnation=2) is Came.REPLACED
    assert (keeping.links.link_of("b"), keeping.links.incarnation_of("b")) == (8, 2)
    assert keeping.down(7) == ("", [])
    assert keeping.links.link_of("b") == 8
    assert keeping.down(8) == ("b", [DIAL])


# ---------------------------------------------------------------------------------------------------- not wanted more
def test_a_peer_that_is_not_wanted_any_more_is_not_dialled_again_and_the_late_end_of_its_link_does_nothing() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.up(7)
    keeping.word()
    assert keeping.unwant() == [CancelTimer(("owner", "dial", "b"))]
    assert keeping.close() == [Disconnect(7, "over")]
    assert keeping.out.queues == {}
    assert keeping.down(7) == ("", [])
    assert keeping.fire() == []
    assert (keeping.links.wanted, keeping.links.linked) == ((), ())
    assert [*keeping.unwant(), *keeping.close()] == []


def test_a_pause_ends_with_the_wish() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.failed()
    keeping.unwant()
    assert keeping.fire() == []


@pytest.mark.parametrize("reached", [True, False])
def test_an_attempt_that_is_under_way_when_the_peer_is_not_wanted_any_more_ends_without_a_link(reached: bool) -> None:
    keeping = Keeping()
    keeping.want()
    keeping.unwant()
    if reached:
        assert keeping.up(7) is Came.REFUSED
        assert keeping.down(7) == ("", [])
    else:
        assert keeping.failed() == []
    assert not keeping.links.is_dialling("b")
    assert keeping.links.linked == ()


def test_a_peer_that_is_wanted_again_before_its_old_link_ends_is_dialled_and_the_late_end_does_nothing() -> None:
    keeping = Keeping()
    keeping.want()
    keeping.up(7)
    keeping.unwant()
    keeping.close()
    assert keeping.want(address="b:2") == [Connect("b", "b:2")]
    assert keeping.down(7) == ("", [])
    assert keeping.up(8, address="b:2") is Came.LINKED


# --------------------------------------------------------------------------------------------------------- strangers
def test_strangers_are_kept_up_to_a_number_and_not_dialled() -> None:
    keeping = Keeping(strangers_max=2)
    assert [keeping.up(n, f"s{n}", "") for n in (1, 2, 3)] == [Came.STRANGER, Came.STRANGER, Came.REFUSED]
    assert keeping.up(4, "s1", "") is Came.STRANGER  # in place of its older link
    assert keeping.down(1, "s1") == ("", [])
    assert keeping.links.link_of("s1") == 4
    keeping.want()
    assert keeping.up(5) is Came.LINKED  # of a peer that is wanted there may be one always
    assert keeping.down(4, "s1") == ("s1", [])
    assert keeping.up(6, "s3", "") is Came.STRANGER


def test_a_stranger_that_is_wanted_has_its_link_and_one_that_is_not_wanted_any_more_keeps_it() -> None:
    keeping = Keeping(strangers_max=1)
    keeping.up(7)
    assert keeping.want() == []
    assert keeping.links.link_of("b") == 7
    assert keeping.up(8, "s", "") is Came.STRANGER  # the only one now
    keeping.unwant()
    assert keeping.links.link_of("b") == 7
    assert keeping.down(7) == ("b", [])


# --------------------------------------------------------------------------------------------------------- addresses
def test_where_only_an_address_is_known_whoever_is_there_has_the_link() -> None:
    keeping = Keeping(by_address=True)
    assert keeping.want("b:1") == [Connect("", "b:1")]
    assert keeping.links.last_at("b:1") == ""
    assert keeping.up(7, "b") is Came.LINKED
    assert (keeping.links.link_of("b:1"), keeping.links.last_at("b:1")) == (7, "b")
    keeping.word()
    assert keeping.down(7) == ("b:1", [SetTimer(("owner", "dial", "b:1"), PAUSE)])
    assert keeping.out.queues == {}
    assert keeping.links.last_at("b:1") == "b"
    assert keeping.fire("b:1") == [Connect("", "b:1")]
    assert keeping.failed(peer="") == [SetTimer(("owner", "dial", "b:1"), PAUSE)]


def test_a_link_that_the_owner_does_not_hand_on_ends_the_attempt() -> None:
    keeping = Keeping(by_address=True)
    keeping.want("b:1")
    keeping.links.attempt_ended("b:1")
    assert not keeping.links.is_dialling("b:1")
    assert keeping.fire("b:1") == [Connect("", "b:1")]
