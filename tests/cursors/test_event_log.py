"""Writing the log: at its positions, behind the journal, and again what a power cut took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import Durable, Started
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import Append, RecordingOutbox, Truncate
from holdfast.kernel.storage import EVENTS, LogBounds
from holdfast.protocols.cursors.event_log import EventLog
from holdfast.protocols.sessions.commands import EventBatch
from holdfast.protocols.sessions.outputs import Kept, Logged
from tests.sessions.bench import batch, event


def logged(first: int, count: int) -> Logged:
    return Logged(first, 100 + first, [event(n) for n in range(first, first + count)])


def appended(first: int, count: int, token: int) -> Append:
    return Append(EVENTS, EventBatch(first, 100 + first, batch(*range(first, first + count))), token, count)


def started(end: int, first: int = 1) -> Started:
    return Started(1, "disk", {EVENTS: LogBounds(first, end)})


def test_a_turns_events_are_appended_at_its_end_and_are_durable_with_their_tokens() -> None:
    log, out = EventLog(), RecordingOutbox()
    log.on_started(started(1), 1, 0)
    log.add(logged(1, 2))
    log.add(logged(3, 1))
    assert out.take_effects() == []
    log.finish(out)
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
    log.finish(out)
    log.finish(out)
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
    log.finish(out)
    effects = out.take_effects()
    written = [effect for effect in effects if isinstance(effect, Append)]
    assert sum(effect.count for effect in written) == total - survived
    at = survived + 1
    for effect in written:
        assert isinstance(effect.record, EventBatch)
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
        log.finish(RecordingOutbox())
