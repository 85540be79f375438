"""The part of a client that asks a broker's application: numbers, the window, asking again."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.time import SECOND
from holdfast.protocols.sessions.application_asker import FORGOTTEN
from holdfast.protocols.sessions.messages import (
    NO_APPLICATION,
    ApplicationAnswered,
    AskApplication,
    Refusal,
    SessionOpened,
)
from holdfast.protocols.sessions.requests import AnswerLost, ApplicationAnswer, Close, NotAnswered
from holdfast.protocols.sessions.requests import AskApplication as Ask
from tests.sessions.bench import ClientBench


def opened(epoch: int = 5, window: int = 2) -> SessionOpened:
    return SessionOpened(epoch, 0, 100, 9, request_window=window)


def ready(window: int = 2) -> ClientBench:
    bench = ClientBench()
    bench.open()
    bench.handle(bench.down())
    bench.advance(5 * SECOND)
    bench.handle(bench.up())
    bench.say(opened(window=window))
    return bench


def asked(rows: list[Any]) -> list[tuple[int, bytes, int]]:
    """(number, request, confirmed) of what the broker is asked."""
    said = [row[1] for row in rows if len(row) == 2 and isinstance(row[1], AskApplication)]
    return [(message.number, message.request, message.confirmed) for message in said]


def test_requests_are_numbered_and_no_more_are_under_way_than_the_broker_grants() -> None:
    bench = ready()
    assert asked(bench.ask(Ask(b"a"), Ask(b"b"), Ask(b"c"))) == [(1, b"a", 0), (2, b"b", 0)]
    rows = bench.say(ApplicationAnswered(2, b"B"))
    assert rows == [("complete", 2, ApplicationAnswer(b"B"))]
    rows = bench.say(ApplicationAnswered(1, b"A"))
    assert rows[0] == ("complete", 1, ApplicationAnswer(b"A"))
    # The first that is not answered bounds what is confirmed.
    assert asked(rows) == [(3, b"c", 2)]
    assert bench.say(ApplicationAnswered(1, b"A"), ApplicationAnswered(7, b"?")) == []


def test_a_refusal_is_handed_on_whole() -> None:
    bench = ready()
    bench.ask(Ask(b"a"))
    refusal = ApplicationAnswered(1, b"", Refusal.LIMIT, "too large", "request_bytes", 4)
    assert bench.say(refusal) == [("complete", 1, NotAnswered(Refusal.LIMIT, "too large", "request_bytes", 4))]


def test_what_is_not_answered_is_asked_again_under_its_number() -> None:
    bench = ready()
    bench.ask(Ask(b"a"), Ask(b"b"))
    bench.say(ApplicationAnswered(1, b"A"))
    bench.handle(bench.down())
    bench.ask(Ask(b"c"))
    bench.advance(5 * SECOND)
    bench.handle(bench.up())
    assert asked(bench.say(opened())) == [(2, b"b", 1), (3, b"c", 1)]


def test_nobody_knows_what_became_of_requests_when_the_broker_forgot_the_client() -> None:
    bench = ready()
    bench.ask(Ask(b"a"))
    bench.handle(bench.down())
    bench.ask(Ask(b"b"))
    bench.advance(5 * SECOND)
    bench.handle(bench.up())
    rows = bench.say(opened(epoch=6))
    assert ("complete", 1, AnswerLost(FORGOTTEN)) in rows
    assert asked(rows) == [(2, b"b", 1)]


def test_a_broker_that_hosts_nothing_is_not_asked() -> None:
    bench = ready(window=0)
    nobody = NotAnswered(Refusal.NO_APPLICATION, NO_APPLICATION)
    assert bench.ask(Ask(b"a")) == [("complete", 1, nobody)]


def test_closing_answers_everyone() -> None:
    bench = ready(window=1)
    bench.ask(Ask(b"a"), Ask(b"b"))
    bench.handle(bench.down())
    rows = bench.ask(Close(), Ask(b"c"))
    answered = {row[1]: row[2] for row in rows if row[0] == "complete"}
    assert answered[1] == answered[2] == NotAnswered(None, "the client was closed")
    assert answered[4] == NotAnswered(None, "the client is closed")
