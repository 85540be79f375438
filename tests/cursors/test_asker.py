"""What a client asks of the log: one answer for each request, over any number of links."""

from typing import Any

import pytest

from holdfast.kernel.messages import Message
from holdfast.kernel.time import SECOND
from holdfast.model.batch import EventBatch
from holdfast.model.event import decode_events
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.cursors import messages as said
from holdfast.protocols.cursors import requests
from holdfast.protocols.sessions.messages import Refusal, SessionOpened
from holdfast.protocols.sessions.requests import Close, NewEvent
from tests.sessions.bench import ClientBench, batch, sent, shown

PART = requests.StagePart("q", 1, 2, "s", 1, 9, 5, [NewEvent({"n": 1}), NewEvent({"n": 2})])
ASKED: list[tuple[Any, Message, Message, Any]] = [
    (
        requests.AskBounds(3, 4),
        said.AskLog(1, 3, 4),
        said.LogTold(1, "disk", 1, 5, 3),
        requests.Bounds("disk", 1, 5, 3),
    ),
    (
        requests.ReadEvents("n > 0", 1, 5, 2, 100),
        said.ReadRange(1, "n > 0", 1, 5, 2, 100),
        said.RangeRead(1, "disk", 4, [], batch(), 4),
        requests.EventsRead(4, ReceivedEvents(EventBatch.read(batch())), 4),
    ),
    (
        requests.ForgetCursor("risk"),
        said.ForgetName(1, "risk"),
        said.NameForgotten(1, True),
        requests.CursorForgotten(True),
    ),
    (
        requests.CommitParts("q", 1, ("s",)),
        said.CommitStages(1, "q", 1, ("s",)),
        said.StagesCommitted(1, 3, 4, True),
        requests.PartsCommitted(3, 4, True),
    ),
    (
        requests.StageEncoded("q", 1, 2, "s", 3, batch(1, 2)),
        said.StageEvents(1, "q", 1, 2, "s", 3, batch(1, 2)),
        said.Staged(1, 2),
        requests.PartStaged(2),
    ),
]


def opened() -> ClientBench:
    bench = ClientBench()
    bench.open()
    return bench


@pytest.mark.parametrize(("command", "message", "answer", "result"), ASKED, ids=lambda value: type(value).__name__)
def test_a_request_is_one_message_and_one_answer(command: Any, message: Message, answer: Message, result: Any) -> None:
    bench = opened()
    assert bench.ask(command) == [("b1", message)]
    assert bench.say(answer) == [("complete", 1, result)]
    assert bench.say(answer) == []


@pytest.mark.parametrize(("command", "message", "answer", "result"), ASKED, ids=lambda value: type(value).__name__)
def test_a_request_is_asked_again_until_it_is_answered(
    command: Any, message: Message, answer: Message, result: Any
) -> None:
    bench = opened()
    bench.ask(command)
    assert message in sent(shown(bench.advance(2 * SECOND)), "b1")
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    assert message in sent(bench.say(SessionOpened(5, 0, 100, 9)), "b1")
    assert bench.say(answer) == [("complete", 1, result)]
    assert message not in sent(shown(bench.advance(20 * SECOND)), "b1")


def test_what_was_asked_before_there_is_a_session_is_asked_then() -> None:
    bench = ClientBench()
    bench.ask(requests.ForgetCursor("risk"))
    assert said.ForgetName(1, "risk") in sent(bench.open(), "b1")


def test_a_refusal_is_an_answer_to_anything() -> None:
    bench = opened()
    bench.ask(requests.ReadEvents("n >", 1, 5))
    refused = said.LogRefused(1, Refusal.FILTER, "bad", 0, 3, "a value")
    assert bench.say(refused) == [("complete", 1, requests.RefusedByLog(Refusal.FILTER, "bad", 3, "a value", 0))]


def test_events_that_are_read_have_their_positions() -> None:
    bench = opened()
    bench.ask(requests.ReadEvents("", 1, 5))
    ((_, _, read),) = bench.say(said.RangeRead(1, "disk", 5, [2, 4], batch(7, 8), 5))
    assert [(e.sequence, e.position.log, e.position.number) for e in read.events] == [(7, "disk", 2), (8, "disk", 4)]


def test_staged_events_are_numbered_by_their_task() -> None:
    bench = opened()
    ((_, message),) = bench.ask(PART)
    assert isinstance(message, said.StageEvents)
    events = decode_events(message.events)
    assert [(e.publisher, e.incarnation, e.sequence) for e in events] == [("c", 9, 5), ("c", 9, 6)]
    assert bench.say(said.Staged(1, 2)) == [("complete", 1, requests.PartStaged(2))]


def test_an_event_that_can_not_be_written_is_refused_here() -> None:
    part = requests.StagePart("q", 1, 2, "s", 1, 9, 5, [NewEvent({"n": object()})])  # type: ignore[dict-item]
    ((_, request, result),) = opened().ask(part)
    assert (request, result.reason) == (1, Refusal.EVENT)


def test_an_answer_of_another_kind_ends_the_link() -> None:
    bench = opened()
    bench.ask(requests.ForgetCursor("risk"))
    (row,) = bench.say(said.LogTold(1, "disk", 1, 1))
    assert "was ForgetName, and is answered as if it were not" in row.reason


def test_closing_answers_everything() -> None:
    bench = opened()
    bench.ask(requests.ForgetCursor("risk"), requests.AskBounds(0, 9))
    bench.handle(bench.down())
    rows = bench.ask(Close())
    closed = requests.RefusedByLog(None, "the client was closed")
    assert [row for row in rows if row[1] in (1, 2)] == [("complete", 1, closed), ("complete", 2, closed)]
    assert bench.ask(PART) == [("complete", 4, requests.RefusedByLog(None, "the client is closed"))]
