"""Writing the log: at its positions, behind the journal, and again what a power cut took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import Durable, Started
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import Append, RecordingOutbox, Truncate
from holdfast.kernel.storage import EVENTS, LogBounds
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.outputs import Kept, Logged
from holdfast.protocols.desks.event_log import EventLog
from tests.sessions.bench import batch, event


def logged(first: int, count: int) -> Logged:
    return Logged(first, 100 + first, EventBatch.of([event(n) for n in range(first, first + count)]))


def appended(first: int, count: int, token: int) -> Append:
    return Append(EVENTS, LoggedEvents(first, 100 + first, batch(*range(first, first + count))), token, count)


def started(end: int, first: int = 1) -> Started:
    return Started(1, "disk", {EVENTS: LogBounds(first, end)})


def test_a_turns_events_are_appended_at_its_end_and_are_durable_with_their_tokens() -> None:
    log, out = EventLog(), RecordingOutbox()
    log.on_started(started(1), 1, 0)
    log.add(logged(1, 2))
    log.add(logged(3, 1))
    assert out.take_effects() == []
    log.finish(3, 0, out)
    assert out.take_effects() == [appended(1, 2, 1), appended(3, 1, 2)]
    assert log.durable_head == 0
    log.on_durable(Durable(1))
    assert log.durable_head == 2
    log.on_durable(Durable(9))
    assert log.durable_head == 3
    log.check_invariants(3)


def test_the_tail_moves_after_the_events_of_the_turn() -> None:
    log, out = EventLog(), RecordingOutbox()
    log.on_started(started(1), 1, 0)
    log.add(Kept(2))
    log.add(logged(1, 2))
    log.finish(2, 0, out)
    log.finish(2, 0, out)
    assert out.take_effects() == [appended(1, 2, 1), Truncate(EVENTS, 2)]


@given(sizes=st.lists(st.integers(1, 3), max_size=5), survived=st.integers(0, 15), kept=st.integers(1, 15))
def test_what_is_missing_is_made_again_from_the_journal(sizes: list[int], survived: int, kept: int) -> None:
    total = sum(sizes)
    survived = min(survived, total)
    firsts = [1 + sum(sizes[:place]) for place in range(len(sizes))]
    log, out = EventLog(map(logged, firsts, sizes)), RecordingOutbox()
    tail = min(kept, total + 1)
    log.on_started(started(survived + 1), tail, total)
    assert log.durable_head == survived
    log.finish(total, 0, out)
    effects = out.take_effects()
    written = [effect for effect in effects if isinstance(effect, Append)]
    assert sum(effect.count for effect in written) == total - survived
    at = survived + 1
    for effect in written:
        assert isinstance(effect.record, LoggedEvents)
        assert effect.record.first == at
        at += effect.count
    assert [effect for effect in effects if isinstance(effect, Truncate)] == [Truncate(EVENTS, tail)] * (tail > 1)
    log.check_invariants(total)


@pytest.mark.parametrize(("end", "head"), [(3, 5), (9, 5)])
def test_a_log_that_contradicts_the_journal_stops_the_node(end: int, head: int) -> None:
    with pytest.raises(InvariantBroken, match="what the journal speaks of"):
        EventLog().on_started(started(end), 1, head)


def test_a_gap_stops_the_node() -> None:
    log = EventLog()
    log.on_started(started(1), 1, 0)
    log.add(logged(2, 1))
    with pytest.raises(InvariantBroken, match="no gap"):
        log.finish(2, 0, RecordingOutbox())


# --------------------------------------------------------------------------------------------------- in a group: holes
def with_hole(head: int, wanted: int) -> tuple[EventLog, RecordingOutbox]:
    """The log of a replica whose core was replaced by one that has given positions up to `wanted`."""
    log, out = EventLog(is_shared=True), RecordingOutbox()
    log.on_started(started(head + 1), 1, head)
    log.restored(wanted, 1, out)
    log.finish(wanted, 0, out)
    assert out.take_effects() == [Truncate(EVENTS, 1)]
    assert log.has_hole
    return log, out


def lacks_some(log: EventLog) -> bool:
    return log.has_hole


def test_what_comes_behind_a_hole_waits_until_it_is_filled() -> None:
    log, out = with_hole(2, 5)
    log.add(logged(6, 2))
    log.finish(7, 0, out)
    assert out.take_effects() == []
    log.fill(2, 102, logged(2, 3).batch, out)  # the first of them is known
    log.close_hole(7, out)
    assert lacks_some(log)
    log.fill(5, 105, logged(5, 1).batch, out)
    log.close_hole(7, out)
    assert not lacks_some(log)
    effects = [effect for effect in out.take_effects() if isinstance(effect, Append)]
    assert [(effect.record.first, effect.count) for effect in effects if isinstance(effect.record, LoggedEvents)] == [
        (3, 2),
        (5, 1),
        (6, 2),
    ]
    log.check_invariants(7)


def test_no_more_than_a_limit_waits_behind_a_hole_and_the_rest_is_fetched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.desks.event_log.LATER_BYTES_MAX", 40)
    log, out = with_hole(0, 1)
    log.add(logged(2, 3))
    log.finish(4, 0, out)
    log.fill(1, 101, logged(1, 1).batch, out)
    log.close_hole(4, out)
    assert lacks_some(log)
    log.fill(2, 102, logged(2, 3).batch, out)
    log.close_hole(4, out)
    assert not lacks_some(log)


def test_what_the_group_has_given_up_is_not_fetched() -> None:
    log, out = with_hole(2, 8)
    log.add(Kept(6))
    log.finish(8, 77, out)
    skipped = LoggedEvents(3, 77, batch())
    assert out.take_effects() == [Append(EVENTS, skipped, 1, 3), Truncate(EVENTS, 6)]
    assert (log.head, log.durable_head) == (5, 2)
    log.on_durable(Durable(1))
    assert (log.durable_head, log.has_hole) == (5, True)


def test_a_replica_that_was_stopped_while_it_filled_a_hole_knows_that() -> None:
    log = EventLog(is_shared=True)
    log.on_started(started(3), 1, 5)
    assert lacks_some(log)


def test_a_replicas_log_may_be_ahead_of_its_core() -> None:
    log, out = EventLog(is_shared=True), RecordingOutbox()
    log.on_started(started(6), 1, 2)
    log.add(logged(3, 4))
    log.finish(6, 0, out)
    assert out.take_effects() == [Append(EVENTS, LoggedEvents(6, 103, batch(6)), 1, 1)]
