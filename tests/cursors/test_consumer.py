"""The client's side of named subscriptions: in order, once in a life, over any number of links."""

from typing import Any

from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import EventBytes
from holdfast.protocols.cursors.messages import (
    Acknowledge,
    Acknowledged,
    CloseCursor,
    CursorClosed,
    CursorEnded,
    CursorEvents,
    CursorOpened,
    CursorProgress,
    CursorRefused,
    OpenCursor,
)
from holdfast.protocols.cursors.requests import (
    AcknowledgedUpTo,
    AcknowledgeUpTo,
    ConsumeCursor,
    CursorLost,
    CursorMade,
    CursorOver,
    EndCursor,
    MakeCursor,
    RefusedByLog,
)
from holdfast.protocols.sessions.messages import Refusal, SessionOpened
from holdfast.protocols.sessions.requests import UNSOLICITED, Close, EventsMissed
from tests.sessions.bench import ClientBench, batch, sent, shown

OPENING = OpenCursor(1, "risk", "n > 0", 5, True, 4)


def came(after: int, through: int, *positions: int, attempts: tuple[int, ...] = ()) -> CursorEvents:
    return CursorEvents(1, after, through, list(positions), batch(*positions), list(attempts))


def completions(rows: list[Any]) -> list[Any]:
    return [row[1:] for row in rows if row[0] == "complete"]


def deliveries(rows: list[Any]) -> list[Any]:
    return [row for row in rows if row[0] == "deliver"]


def live() -> ClientBench:
    bench = ClientBench()
    bench.open()
    bench.ask(MakeCursor("risk", "n > 0", 5, True, 4))
    bench.say(CursorOpened(1, 3, 10, 10))
    return bench


def reopen(bench: ClientBench, log_id: str = "", member_since: int = 0, epoch: int = 5) -> list[Any]:
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    return bench.say(SessionOpened(epoch, 0, 100, 9, log_id=log_id, member_since=member_since))


def test_a_log_of_a_broker_that_was_not_in_its_network_for_a_while_has_a_gap_that_is_told_once() -> None:
    bench = live()
    gap = ("complete", UNSOLICITED, EventsMissed(-1, None, "its broker was not in the network for a while"))
    assert gap not in reopen(bench)
    assert gap in reopen(bench, member_since=1_007)  # and lost again, before the cursor is opened
    assert gap not in reopen(bench, member_since=1_007)
    bench.say(CursorOpened(1, 3, 10, 10))
    # Whether its broker still knows the session makes no difference to a name.
    assert gap in reopen(bench, member_since=2_011, epoch=6)
    bench.say(CursorOpened(1, 4, 10, 10))
    assert deliveries(bench.say(came(10, 12, 11, 12))) == [("deliver", -1, [11, 12])]


def test_a_cursor_is_asked_for_and_made() -> None:
    bench = ClientBench()
    bench.open()
    assert bench.ask(MakeCursor("risk", "n > 0", 5, True, 4)) == [("b1", OPENING)]
    rows = bench.say(CursorOpened(1, 3, 10, 10))
    assert rows == [("complete", 1, CursorMade(1, 10)), ("b1", CursorProgress(1, 10, 10))]
    assert bench.say(CursorOpened(1, 3, 10, 10)) == [], "said again"


def test_events_are_handed_over_once_and_in_order() -> None:
    bench = live()
    assert deliveries(bench.say(came(10, 12, 11, 12))) == [("deliver", -1, [11, 12])]
    assert deliveries(bench.say(came(10, 12, 11, 12))) == []
    assert deliveries(bench.say(came(11, 13, 12, 13))) == [("deliver", -1, [13])]
    assert deliveries(bench.say(came(13, 20))) == []
    assert deliveries(bench.say(came(20, 21, 21))) == [("deliver", -1, [21])]


def test_what_leaves_a_gap_is_not_taken_and_asked_for_again() -> None:
    bench = live()
    assert bench.say(came(11, 12, 12)) == [("b1", CursorProgress(1, 10, 10, missing=True))]
    assert deliveries(bench.say(came(10, 12, 11, 12))) == [("deliver", -1, [11, 12])]


def test_progress_is_what_was_consumed_and_is_said_soon_or_at_a_quarter_of_the_window() -> None:
    bench = live()
    assert sent(bench.say(came(10, 11, 11)), "b1") == [CursorProgress(1, 11, 10, unconsumed=1)]
    assert sent(bench.ask(ConsumeCursor(1, 1)), "b1") == [CursorProgress(1, 11, 11)]
    assert sent(bench.say(came(11, 11)), "b1") == [CursorProgress(1, 11, 11)], "a question is answered"


def test_acknowledgements_are_said_once_a_turn_and_answered_when_the_broker_has_them() -> None:
    bench = live()
    bench.say(came(10, 13, 11, 12, 13))
    rows = bench.ask(AcknowledgeUpTo(1, 11), AcknowledgeUpTo(1, 12))
    assert sent(rows, "b1") == [Acknowledge(1, 12)]
    assert bench.say(Acknowledged(1, 11)) == [("complete", 2, AcknowledgedUpTo(11))]
    assert bench.say(Acknowledged(1, 12)) == [("complete", 3, AcknowledgedUpTo(12))]
    assert bench.ask(AcknowledgeUpTo(1, 12)) == [("complete", 4, AcknowledgedUpTo(12))]


def test_what_was_not_received_can_not_be_acknowledged() -> None:
    (answer,) = completions(live().ask(AcknowledgeUpTo(1, 11)))
    assert answer[1].reason is Refusal.POSITION_AHEAD


def test_a_new_link_goes_on_where_the_old_one_was_and_moves_nothing() -> None:
    bench = live()
    bench.say(came(10, 13, 11, 12, 13))
    bench.ask(ConsumeCursor(1, 1))
    opening = OpenCursor(1, "risk", "n > 0", 5, False, 4, 3, 13, 2)
    assert opening in sent(reopen(bench), "b1")
    assert deliveries(bench.say(came(13, 14, 14))) == [], "before it is confirmed"
    assert completions(bench.say(CursorOpened(1, 3, 10, 13))) == []
    assert deliveries(bench.say(came(13, 14, 14))) == [("deliver", -1, [14])]


def test_an_acknowledgement_that_was_applied_before_the_link_was_lost_is_answered_after_it() -> None:
    bench = live()
    bench.say(came(10, 12, 11, 12))
    bench.ask(AcknowledgeUpTo(1, 11), AcknowledgeUpTo(1, 12))
    reopen(bench)
    rows = bench.say(CursorOpened(1, 3, 11, 12))
    assert completions(rows) == [(2, AcknowledgedUpTo(11))]
    assert Acknowledge(1, 12) in sent(rows, "b1"), "and one that was lost is said again"


def test_who_is_superseded_is_told_once_and_says_that_it_knows() -> None:
    bench = live()
    bench.say(came(10, 11, 11))
    bench.ask(AcknowledgeUpTo(1, 11))
    ended = CursorEnded(1, Refusal.SUPERSEDED, "another")
    assert bench.say(ended) == [
        ("complete", UNSOLICITED, CursorLost(1, Refusal.SUPERSEDED, "another")),
        ("complete", 2, RefusedByLog(Refusal.SUPERSEDED, "another")),
        ("b1", CloseCursor(1)),
    ]
    assert bench.say(ended) == [("b1", CloseCursor(1))]
    assert bench.say(CursorClosed(1)) == []
    assert not any(isinstance(row[1], OpenCursor) for row in reopen(bench))


def test_a_cursor_that_is_refused_to_its_owner_is_lost_and_one_that_is_new_is_refused() -> None:
    bench = live()
    reopen(bench)
    rows = bench.say(CursorRefused(1, Refusal.SUPERSEDED, "another"))
    assert completions(rows) == [(UNSOLICITED, CursorLost(1, Refusal.SUPERSEDED, "another"))]
    bench.ask(MakeCursor("risk", "n >"))
    rows = bench.say(CursorRefused(2, Refusal.FILTER, "bad", 3, "a value"))
    assert completions(rows) == [(2, RefusedByLog(Refusal.FILTER, "bad", 3, "a value"))]


def test_a_broker_with_another_log_has_nothing_for_us() -> None:
    bench = live()
    rows = reopen(bench, "other")
    ((request, lost),) = [row for row in completions(rows) if isinstance(row[1], CursorLost)]
    assert (request, lost.cursor, lost.reason) == (UNSOLICITED, 1, Refusal.POSITION_GONE)
    assert not any(isinstance(row[1], OpenCursor) for row in rows)


def test_ending_keeps_the_cursor_and_is_said_until_it_is_answered() -> None:
    bench = live()
    bench.say(came(10, 11, 11))
    rows = bench.ask(AcknowledgeUpTo(1, 11), EndCursor(1))
    assert sent(rows, "b1") == [Acknowledge(1, 11), CloseCursor(1)]
    assert deliveries(bench.say(came(11, 12, 12))) == []
    assert CloseCursor(1) in sent(shown(bench.advance(2 * SECOND)), "b1")
    assert bench.say(CursorClosed(1)) == [("complete", 3, CursorOver(1))]
    assert bench.ask(EndCursor(1)) == [("complete", 4, CursorOver(1))]


def test_a_cursor_that_the_broker_believes_ours_is_given_back() -> None:
    bench = live()
    bench.ask(EndCursor(1))
    bench.say(CursorClosed(1))
    assert bench.say(came(10, 11, 11)) == [("b1", CloseCursor(1))]
    assert bench.say(CursorOpened(1, 4, 10, 10)) == [("b1", CloseCursor(1))]


def test_closing_answers_everything() -> None:
    bench = live()
    bench.say(came(10, 11, 11))
    bench.ask(AcknowledgeUpTo(1, 11), MakeCursor("audit", ""))
    bench.ask(EndCursor(1))
    bench.handle(bench.down())
    bench.advance(10 * MILLISECOND)
    rows = bench.ask(Close())
    assert {row[0] for row in completions(rows)} == {3, 4, 5}
    assert completions(bench.ask(MakeCursor("x", ""))) == [(6, RefusedByLog(None, "the client is closed"))]


def test_what_breaks_the_rules_ends_the_link() -> None:
    for message in (
        came(10, 12, 12, 11),
        came(10, 12, 11, 11),
        came(10, 12, 10),
        came(10, 12, 13),
        CursorEvents(1, 10, 12, [11], batch()),
        CursorEvents(1, 10, 12, [11], batch(1), [1, 2]),
        CursorEvents(1, 10, 12, [11], EventBytes(b"\x91\x95\xa1\xff\x01\x01\xa0\x80")),
    ):
        rows = live().say(message)
        assert [type(row).__name__ for row in rows] == ["Disconnect"], message
