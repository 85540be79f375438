"""Errands are handed to the program beside the broker, in order, each once."""

from __future__ import annotations

from holdfast.kernel.outbox import Complete, RecordingOutbox
from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errand_desk import ERRANDS_MAX, ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import EndErrand, Failed, Given, Provide, Provided, Release, TakeErrand
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded


def completed(out: RecordingOutbox) -> list[tuple[int, object]]:
    return [(effect.request, effect.result) for effect in out.take_effects() if isinstance(effect, Complete)]


def test_nobody_serves_a_desk_that_was_never_asked() -> None:
    desk, out = ErrandDesk(), RecordingOutbox()
    assert not desk.is_served
    desk.give(Release("r"), out)
    assert completed(out) == []


def test_errands_are_given_in_order_and_once() -> None:
    """D0-A35: some wait for the program, at times the program waits for some."""
    desk, out = ErrandDesk(), RecordingOutbox()
    first, second = desk.give(Provide("f", ()), out), desk.give(Release("r"), out)
    assert (first, second) == (1, 2)
    desk.on_take_errand(11, TakeErrand(), out)
    desk.on_take_errand(12, TakeErrand(), out)
    desk.on_take_errand(13, TakeErrand(), out)
    assert desk.is_served
    assert completed(out) == [(11, Given(1, Provide("f", ()))), (12, Given(2, Release("r")))]
    desk.give(Release("r2"), out)
    assert completed(out) == [(13, Given(3, Release("r2")))]


def test_what_came_of_one_is_told() -> None:
    desk, out = ErrandDesk(), RecordingOutbox()
    provided = Provided(NetworkMember("r", "c", "p"))
    desk.on_end_errand(5, EndErrand(1, provided), out)
    desk.on_end_errand(6, EndErrand(1, Failed("no")), out)
    assert out.take_notices() == [ErrandEnded(1, provided), ErrandEnded(1, Failed("no"))]
    assert completed(out) == [(5, None), (6, None)]


def test_errands_that_nobody_takes_are_not_kept_for_ever() -> None:
    desk, out = ErrandDesk(), RecordingOutbox()
    for number in range(2 * ERRANDS_MAX):
        desk.give(Release(f"b{number}"), out)
    for request in range(2 * ERRANDS_MAX):
        desk.on_take_errand(request, TakeErrand(), out)
    given = [effect for effect in out.take_effects() if isinstance(effect, Complete)]
    assert len(given) == ERRANDS_MAX
    assert given[0].result.errand == Release(f"b{ERRANDS_MAX}")
