"""The failure detector: a neighbour is suspected when it is silent for too long or its connection breaks, wrongly at
times, and trusted again when it is heard (D1-B5: the change of a neighbour's state is where bypassing begins)."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import NOW, Disconnect, Effect, Level, Note, RecordingOutbox, Send, SetTimer
from holdfast.kernel.parts import Assembly
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.failure.messages import Alive
from holdfast.protocols.failure.settings import DetectorSettings
from tests.failure.watching import Watching

SETTINGS = DetectorSettings(heartbeat=500 * MILLISECOND, suspect_after_min=2 * SECOND, suspect_after_max=20 * SECOND)
WAKE = ("detector", "wake")


def noted(what: str, level: Level, **detail: str) -> Note:
    return Note("control", {"what": what, "detail": detail}, level)


def alive(to: str) -> Send:
    return Send(to, Alive(), Lane.CONTROL, NOW)


def up(peer: str, link: int = 1, role: Role = Role.BROKER) -> LinkUp:
    return LinkUp(link, peer, 1, role, True)


def started(*neighbours: str) -> Watching:
    watching = Watching(SETTINGS, neighbours)
    watching.give(Started(1))
    return watching


# ------------------------------------------------------------------------------------------------------- heartbeats
def test_heartbeats_go_out_on_links_that_are_up_and_wait_for_no_disk() -> None:
    watching = started("b2", "b3")
    assert watching.give(up("b2")) == [noted("neighbour-trusted", Level.INFO, neighbour="b2")]
    assert watching.fire() == [alive("b2"), SetTimer(WAKE, SETTINGS.heartbeat)]
    watching.give(up("b3", 2))
    assert watching.fire() == [alive("b2"), alive("b3"), SetTimer(WAKE, SETTINGS.heartbeat)]
    assert watching.detector.measure()["heartbeats_sent_total"] == 3


def test_there_is_one_timer_whatever_is_heard_and_from_whom() -> None:
    watching = started("b2", "b3", "b4")
    for link, peer in enumerate(("b2", "b3", "b4")):
        watching.give(up(peer, link))
    effects: list[Effect] = []
    for _ in range(50):
        watching.pass_time(MILLISECOND)
        for peer in ("b2", "b3", "b4"):
            effects += watching.hear(peer)
    assert effects == []


# --------------------------------------------------------------------------------------------------------- suspicion
def test_a_neighbour_that_is_silent_for_too_long_is_suspected_and_later_its_link_is_closed() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    effects = watching.run(until=SETTINGS.suspect_after_max)
    beats = [effect for effect in effects if effect == alive("b2")]
    others = [effect for effect in effects if effect != alive("b2") and not isinstance(effect, SetTimer)]
    assert others == [
        noted(
            "neighbour-suspected", Level.WARNING, neighbour="b2", reason=f"silent for {SETTINGS.suspect_after_min} ns"
        ),
        Disconnect(7, f"b2 was silent for {SETTINGS.suspect_after_max} ns"),
    ]
    assert len(beats) == SETTINGS.suspect_after_max // SETTINGS.heartbeat - 1  # also while it was suspected
    assert watching.calls == [("trusted", "b2"), ("suspected", "b2")]
    # It is closed once, and what comes of that is no news.
    assert watching.give(LinkDown(7, "b2", "closed")) == []
    assert [effect for effect in watching.run(until=60 * SECOND) if not isinstance(effect, SetTimer)] == []
    assert watching.detector.measure()["neighbours_silent_closed_total"] == 1


def test_suspicion_does_not_wait_for_the_next_heartbeat() -> None:
    watching = Watching(msgspec.structs.replace(SETTINGS, suspect_after_min=2_200 * MILLISECOND), ["b2"])
    watching.give(Started(1), up("b2"))
    watching.run(until=2_200 * MILLISECOND - 1)
    assert watching.detector.trusts("b2")
    watching.run(until=2_200 * MILLISECOND)
    assert not watching.detector.trusts("b2")


@pytest.mark.parametrize("reason", ["reset", "x" * 1000])
def test_a_broken_connection_is_a_hint_that_is_taken_at_once(reason: str) -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    told = noted("neighbour-suspected", Level.WARNING, neighbour="b2", reason=reason[:200])
    assert watching.give(LinkDown(7, "b2", reason)) == [told]
    assert watching.detector.trust("b2") is Trust.SUSPECTED
    assert watching.give(ConnectFailed("b2", "addr", "refused")) == []  # known already
    assert watching.give(up("b2", 8)) == [noted("neighbour-trusted", Level.INFO, neighbour="b2")]
    assert watching.calls == [("trusted", "b2"), ("suspected", "b2"), ("trusted", "b2")]


def test_a_neighbour_that_can_not_be_dialled_is_suspected() -> None:
    watching = started("b2", "b3")
    assert watching.detector.trust("b2") is Trust.UNKNOWN
    assert watching.give(ConnectFailed("b2", "addr", "refused")) == [
        noted("neighbour-not-there", Level.INFO, neighbour="b2", reason="refused")
    ]
    # One that is to dial us is given time.
    watching.run(until=SETTINGS.suspect_after_max - 1)
    assert watching.detector.trust("b3") is Trust.UNKNOWN
    watching.run(until=SETTINGS.suspect_after_max)
    assert watching.detector.trust("b3") is Trust.SUSPECTED
    measured = watching.detector.measure()
    assert (measured["neighbours"], measured["neighbours_suspected"]) == (2, 2)


def test_an_older_link_that_ends_and_a_dial_that_lost_the_race_say_nothing() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    assert watching.give(up("b2", 8)) == []
    assert watching.give(LinkDown(7, "b2", "superseded by a newer link")) == []
    assert watching.give(ConnectFailed("b2", "addr", "superseded by a newer link")) == []
    assert watching.detector.trusts("b2")


def test_clients_and_strangers_are_not_watched() -> None:
    watching = started("b2")
    assert watching.give(up("b2", 3, Role.CLIENT), up("b9", 4), LinkDown(4, "b9", "gone")) == []
    assert watching.hear("b9") == []
    assert not watching.detector.trusts("b2")


# ---------------------------------------------------------------------------------------------------- wrong suspicion
def test_a_slow_neighbour_is_suspected_wrongly_trusted_again_and_given_more_time_after_that() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    patience = [watching.detector.patience("b2")]
    watching.run(until=5 * SECOND)
    assert watching.hear("b2") == [noted("neighbour-trusted", Level.INFO, neighbour="b2")]
    patience.append(watching.detector.patience("b2"))
    assert patience[0] == SETTINGS.suspect_after_min < patience[1] < SETTINGS.suspect_after_max
    for _ in range(10):  # the same pause again: no wrong suspicion any more
        watching.run(until=watching.out.now + 5 * SECOND)
        watching.hear("b2")
    assert watching.calls == [("trusted", "b2"), ("suspected", "b2"), ("trusted", "b2")]
    assert watching.detector.measure()["neighbours_suspected_total"] == 1


def test_patience_stays_within_its_bounds_and_comes_back_when_pauses_are_short_again() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    for _ in range(5):
        watching.run(until=watching.out.now + 19 * SECOND)
        watching.hear("b2")
        assert watching.detector.patience("b2") <= SETTINGS.suspect_after_max
    assert watching.detector.patience("b2") == SETTINGS.suspect_after_max
    for _ in range(60):
        watching.run(until=watching.out.now + 500 * MILLISECOND)
        watching.hear("b2")
    assert watching.detector.patience("b2") == SETTINGS.suspect_after_min


def test_long_but_regular_pauses_need_little_more_than_their_length() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    for _ in range(60):
        watching.run(until=watching.out.now + 3 * SECOND)
        watching.hear("b2")
    assert 3 * SECOND <= watching.detector.patience("b2") < 3_100 * MILLISECOND


def test_much_traffic_does_not_make_a_neighbour_forget_that_pauses_happen() -> None:
    """A heartbeat's time counts once, whether one message came in it or a thousand."""
    quiet, busy = started("b2"), started("b2")
    for watching, messages in ((quiet, 1), (busy, 1000)):
        watching.give(up("b2", 7))
        watching.run(until=5 * SECOND)
        watching.hear("b2")
        for _ in range(messages):
            watching.pass_time(500 * MILLISECOND // messages)
            watching.hear("b2")
    assert busy.detector.patience("b2") == quiet.detector.patience("b2") > SETTINGS.suspect_after_min


def test_time_without_a_link_is_no_pause() -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    watching.give(LinkDown(7, "b2", "reset"))
    watching.run(until=1000 * SECOND)
    watching.give(up("b2", 8))
    watching.pass_time(500 * MILLISECOND)
    watching.hear("b2")
    assert watching.detector.patience("b2") == SETTINGS.suspect_after_min


@pytest.mark.parametrize("is_heard", [False, True])
def test_a_broker_that_stood_still_itself_blames_nobody(is_heard: bool) -> None:
    watching = started("b2")
    watching.give(up("b2", 7))
    watching.pass_time(60 * SECOND)
    if is_heard:
        watching.hear("b2")
    assert watching.give(TimerFired(WAKE)) == [alive("b2"), SetTimer(WAKE, SETTINGS.heartbeat)]
    assert watching.detector.trusts("b2")
    watching.run(until=62 * SECOND + 1)  # but from now on silence counts
    assert not watching.detector.trusts("b2")


# -------------------------------------------------------------------------------------- neighbours that come and go
def test_a_neighbour_that_is_added_is_watched_and_sent_heartbeats() -> None:
    watching = started("b2")
    assert watching.add("b3") == []
    assert watching.detector.trust("b3") is Trust.UNKNOWN
    assert watching.give(up("b3", 3)) == [noted("neighbour-trusted", Level.INFO, neighbour="b3")]
    assert watching.fire() == [alive("b3"), SetTimer(WAKE, SETTINGS.heartbeat)]
    watching.run(until=SETTINGS.suspect_after_min)
    assert watching.detector.trust("b3") is Trust.SUSPECTED
    assert watching.add("b3") == []  # it is one already
    assert watching.detector.trust("b3") is Trust.SUSPECTED


def test_a_broker_that_has_a_link_when_it_becomes_a_neighbour_is_trusted_at_once() -> None:
    watching = started("b2")
    watching.give(up("b3", 3), up("b4", 4), LinkDown(4, "b4", "gone"))
    assert watching.add("b3") == [noted("neighbour-trusted", Level.INFO, neighbour="b3")]
    assert watching.add("b4") == []
    assert watching.fire() == [alive("b3"), SetTimer(WAKE, SETTINGS.heartbeat)]
    assert watching.give(LinkDown(3, "b3", "gone")) == [
        noted("neighbour-suspected", Level.WARNING, neighbour="b3", reason="gone")
    ]


def test_a_neighbour_that_is_added_and_does_not_come_is_suspected_in_time() -> None:
    watching = started("b2")
    watching.run(until=10 * SECOND)
    watching.add("b3")
    watching.run(until=10 * SECOND + SETTINGS.suspect_after_max - 1)
    assert watching.detector.trust("b3") is Trust.UNKNOWN
    watching.run(until=10 * SECOND + SETTINGS.suspect_after_max)
    assert watching.detector.trust("b3") is Trust.SUSPECTED


def test_suspicion_of_one_that_was_added_does_not_wait_for_the_next_heartbeat_either() -> None:
    rare = msgspec.structs.replace(SETTINGS, heartbeat=30 * SECOND)
    watching = Watching(rare, ["b2"])
    watching.give(Started(1))
    watching.give(ConnectFailed("b2", "addr", "refused"))
    watching.run(until=30 * SECOND)
    assert watching.add("b3") == [SetTimer(WAKE, SETTINGS.suspect_after_max)]


def test_a_neighbour_that_is_removed_is_forgotten() -> None:
    watching = started("b2", "b3")
    watching.give(up("b2", 2), up("b3", 3))
    watching.run(until=SECOND)
    watching.detector.remove("b3")
    assert watching.detector.trust("b3") is Trust.UNKNOWN
    assert not watching.detector.trusts("b3")
    assert alive("b3") not in watching.run(until=SETTINGS.suspect_after_max)
    assert watching.give(LinkDown(3, "b3", "gone"), ConnectFailed("b3", "addr", "refused"), up("b3", 4)) == []
    assert [call for call in watching.calls if call[1] == "b3"] == [("trusted", "b3")]
    assert watching.detector.measure()["neighbours"] == 1
    watching.detector.remove("b3")
    for _ in range(2):  # anew, over the link that it has
        assert watching.add("b3") == [noted("neighbour-trusted", Level.INFO, neighbour="b3")]
        watching.detector.remove("b3")


def test_a_neighbour_may_be_removed_by_what_is_told_of_another() -> None:
    watching = Watching(SETTINGS, ("b2", "b3"), removes={"b2": "b3"})
    watching.give(Started(1), up("b2", 2), up("b3", 3))
    watching.run(until=SETTINGS.suspect_after_min)
    assert [call for call in watching.calls if call[0] == "suspected"] == [("suspected", "b2")]


# ------------------------------------------------------------------------------------------------------- determinism
def test_the_same_inputs_have_the_same_effects_however_they_are_cut_into_turns() -> None:
    def effects(seed: int, at_once: bool) -> list[Effect]:
        rng, out = Random(seed), RecordingOutbox()
        node = Assembly([FailureDetector(SETTINGS, ("b2", "b3"))])
        node.handle([Started(1)], out)
        links = {"b2": 0, "b3": 0}
        for number in range(1, 300):
            out.now += rng.randrange(SECOND)
            inputs: list[Input] = []
            for peer in links:
                if rng.random() < 0.1:
                    links[peer] = number
                    inputs.append(LinkUp(number, peer, 1, Role.BROKER, True))
                if links[peer] and rng.random() < 0.6:
                    inputs.append(Received(links[peer], peer, [Alive()]))
                if rng.random() < 0.05:
                    inputs.append(LinkDown(links[peer], peer, "reset"))
                    links[peer] = 0
            inputs += [TimerFired(WAKE)] if rng.random() < 0.7 else []
            for turn in [inputs] if at_once else [[given] for given in inputs]:
                node.handle(turn, out)
                node.check_invariants()
        return out.take_effects()

    for seed in range(20):
        assert effects(seed, True) == effects(seed, False)
