"""What outlives a restart: what was agreed to, and what happened."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import RecordingOutbox, Snapshot
from holdfast.protocols.operating.messages import HistoryTold, TellHistory
from holdfast.schemes.tree.standin.cycle.history import History
from holdfast.schemes.tree.standin.cycle.memory import STREAM, Memory
from holdfast.schemes.tree.standin.cycle.messages import HAPPENED_MAX, TEXT_BYTES_MAX, CycleState, Promised
from tests.standin.cycle.around import at, sent

PROMISED = Promised(7, "b1", "digest")


def kept(out: RecordingOutbox) -> list[Any]:
    return [effect.record for effect in out.take_effects() if isinstance(effect, Snapshot) and effect.stream == STREAM]


def test_what_was_promised_and_what_happened_are_there_after_a_restart() -> None:
    out, memory = RecordingOutbox(), Memory("b2", True, {})
    memory.promise(PROMISED, out)
    memory.tell(7, "b8 stands in for b3", at(out, 5))
    (*_, record) = kept(out)
    again = Memory("b2", True, {STREAM: [record]})
    assert again.promised == PROMISED
    assert [(one.wall, one.broker, one.number, one.text) for one in again.happened] == [
        (5, "b2", 7, "b8 stands in for b3")
    ]


def test_a_promise_is_written_once() -> None:
    out, memory = RecordingOutbox(), Memory("b2", True, {})
    memory.promise(PROMISED, out)
    memory.promise(PROMISED, out)
    assert len(kept(out)) == 1
    memory.promise(None, out)
    assert kept(out) == [CycleState(None, [])]


def test_without_a_disk_nothing_is_written() -> None:
    out, memory = RecordingOutbox(), Memory("b2", False, {})
    memory.promise(PROMISED, out)
    memory.tell(7, "x", out)
    assert kept(out) == []
    assert memory.promised == PROMISED


def test_what_happened_is_bounded() -> None:
    """The newest are kept, and each is short."""
    out, memory = RecordingOutbox(), Memory("b2", True, {})
    for number in range(HAPPENED_MAX + 30):
        memory.tell(number, "x" * 10_000, out)
    assert [one.number for one in memory.happened] == list(range(30, HAPPENED_MAX + 30))
    assert {len(one.text.encode()) for one in memory.happened} == {TEXT_BYTES_MAX}


def test_a_disk_of_another_kind_stops_the_broker() -> None:
    for record in (CycleState(format=99), HistoryTold(1, "b1", ())):
        streams: Any = {STREAM: [record]}
        with pytest.raises(InvariantBroken):
            Memory("b2", True, streams)


def test_operators_are_told_what_happened() -> None:
    out, memory = RecordingOutbox(), Memory("b2", True, {})
    memory.tell(7, "b8 stands in for b3", at(out, 5))
    out.take_effects()
    History("b2", memory).on_tell_history("operator", TellHistory(3), out)
    ((to, told),) = sent(out)
    assert (to, told.request, told.broker) == ("operator", 3, "b2")
    assert [(entry.wall, entry.number, entry.text) for entry in told.entries] == [(5, 7, "b8 stands in for b3")]
