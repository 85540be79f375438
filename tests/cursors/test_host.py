"""The broker's side of cursors, ranges and stages, as clients see it."""

from random import Random

import pytest

from holdfast.kernel.inputs import LinkDown
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Disconnect, Truncate
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model import Filter
from holdfast.model.event import NO_EVENTS
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.interests import Untold
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.cursors.messages import (
    EARLIEST,
    NEW,
    Acknowledge,
    Acknowledged,
    AskLog,
    CloseCursor,
    CommitStages,
    CursorClosed,
    CursorEnded,
    CursorEvents,
    CursorOpened,
    CursorProgress,
    CursorRefused,
    ForgetName,
    LogRefused,
    LogTold,
    NameForgotten,
    OpenCursor,
    RangeRead,
    ReadRange,
    Staged,
    StageEvents,
    StagesCommitted,
)
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.log_desk import NO_LOG, NO_NAME, RetentionSettings
from holdfast.protocols.sessions.messages import OpenSession, Publish, Refusal, Subscribe
from holdfast.schemes.catalogue import RECORDS
from holdfast.sim.disk import Disk
from tests.cursors.bench import LogBench, handed, told
from tests.sessions.bench import BrokerBench, batch, shown

C = "client:c"


def opened(*names: str, **settings: object) -> LogBench:
    bench = LogBench(**settings)  # type: ignore[arg-type]
    for name in (*names, "p"):
        bench.open(name)
    return bench


def positions(rows: list[object], client: str) -> list[int]:
    return [position for position, _ in handed(rows, client)]


# ---------------------------------------------------------------------------------------------------------- cursors
def test_an_opened_cursor_is_confirmed_and_then_gets_events_once_each() -> None:
    bench = opened("c")
    assert told(bench.say("c", OpenCursor(1, "risk", "n > 1")), "c") == [CursorOpened(1, 1, 0, 0)]
    (message,) = told(bench.publish("p", 1, 2, 3), "c")
    assert isinstance(message, CursorEvents)
    assert (message.after, message.through, message.positions, message.attempts) == (0, 3, [2, 3], [])
    assert told(bench.publish("p", 1), "c") == [], "what does not match is not spoken of"
    (message,) = told(bench.publish("p", 5), "c")
    assert isinstance(message, CursorEvents)
    assert (message.after, message.through, message.positions) == (3, 5, [5])


def test_journal_and_log_are_written_in_this_order_and_events_wait_for_both() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.held = True
    effects = bench.handle(bench.received("p", Publish(1, batch(1))))
    appended = [effect.stream for effect in effects if isinstance(effect, Append)]
    assert appended == ["state", EVENTS]
    entries = bench.out.queues[C].take(bench.out.token, 1 << 30)[0]
    assert [(type(entry.message), entry.lane, entry.token) for entry in entries] == [
        (CursorEvents, Lane.USER, bench.out.token)
    ]


def test_what_is_not_acknowledged_comes_again_to_the_next_owner_with_a_second_attempt() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", ""))
    assert handed(bench.publish("p", 1, 2, 3), "c") == [(1, 1), (2, 1), (3, 1)]
    assert told(bench.say("c", Acknowledge(1, 1)), "c") == [Acknowledged(1, 1)]
    rows = bench.say("d", OpenCursor(7, "risk", ""))
    assert told(rows, "c") == [CursorEnded(1, Refusal.SUPERSEDED, "another client has opened the named subscription")]
    assert CursorOpened(7, 2, 1, 1) in told(rows, "d")
    assert handed(rows, "d") == [(2, 2), (3, 2)]
    assert handed(bench.publish("p", 4), "d") == [(4, 1)]
    assert handed(bench.publish("p", 5), "c") == []


def test_an_acknowledgement_never_goes_back_nor_beyond_the_log() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.publish("p", 1, 2, 3)
    said = [told(bench.say("c", Acknowledge(1, position)), "c") for position in (2, 1, -5, 99)]
    assert said == [[Acknowledged(1, 2)], [Acknowledged(1, 2)], [Acknowledged(1, 2)], [Acknowledged(1, 3)]]


def test_who_was_superseded_does_not_take_the_cursor_back_with_a_new_link() -> None:
    bench = opened("c", "d", away_after=SECOND)
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.handle(bench.down("c"))
    bench.advance(2 * SECOND)  # the session is there still; what it had is gone
    bench.say("d", OpenCursor(1, "risk", ""))
    rows = bench.open("c", OpenCursor(1, "risk", "", generation=1))
    assert told(rows, "c")[1:] == [CursorRefused(1, Refusal.SUPERSEDED, "another client has taken 'risk' over")]
    assert bench.core.cursors.cursors["risk"].owner == ("client:d", bench.core.sessions["client:d"].epoch, 1)


def test_a_name_that_was_given_up_and_made_again_is_not_given_to_its_earlier_owner() -> None:
    bench = opened("c", "d", away_after=SECOND)
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.handle(bench.down("c"))
    bench.advance(2 * SECOND)
    assert told(bench.say("d", ForgetName(5, "risk")), "d") == [NameForgotten(5, True)]
    gone = [CursorRefused(1, Refusal.SUPERSEDED, "the named subscription 'risk' was given up")]
    assert told(bench.open("c", OpenCursor(1, "risk", "", generation=1)), "c")[1:] == gone
    bench.say("d", OpenCursor(2, "risk", ""))
    assert bench.core.cursors.cursors["risk"].generation == 2
    refused = told(bench.say("c", OpenCursor(1, "risk", "", generation=1)), "c")
    assert refused == [CursorRefused(1, Refusal.SUPERSEDED, "another client has taken 'risk' over")]


def test_who_lost_a_cursor_is_told_until_it_says_that_it_knows() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", ""))
    ended = CursorEnded(1, Refusal.SUPERSEDED, "another client has opened the named subscription")
    assert told(bench.say("d", OpenCursor(1, "risk", "")), "c") == [ended]
    assert told(shown(bench.advance(300 * MILLISECOND)), "c") == [ended]
    assert told(bench.say("c", Acknowledge(1, 0)), "c") == [ended]
    # A request of its own that comes late does not take the cursor back either.
    assert told(bench.say("c", OpenCursor(1, "risk", "")), "c") == [ended]
    assert told(bench.say("c", CloseCursor(1)), "c") == [CursorClosed(1)]
    assert told(shown(bench.advance(SECOND)), "c") == []
    assert bench.core.cursors.ended == {}


def test_asking_again_moves_nothing_and_repeats_the_answer() -> None:
    bench = opened("c")
    bench.publish("p", 1, 2)
    opening = OpenCursor(1, "risk", "", start=NEW, move=True)
    assert told(bench.say("c", opening), "c") == [CursorOpened(1, 1, 2, 2)]
    assert positions(bench.publish("p", 3, 4), "c") == [3, 4]
    assert told(bench.say("c", opening), "c") == [CursorOpened(1, 1, 2, 2)]
    assert positions(bench.publish("p", 5), "c") == [5]


@pytest.mark.parametrize(("start", "wanted"), [(NEW, []), (EARLIEST, [1, 2, 3]), (2, [2, 3]), (4, [])])
def test_a_new_cursor_begins_where_it_is_asked_to(start: int, wanted: list[int]) -> None:
    bench = opened("c")
    bench.publish("p", 1, 2, 3)
    rows = bench.say("c", OpenCursor(1, "risk", "", start))
    assert positions(rows, "c") == wanted
    assert positions(bench.publish("p", 4), "c") == [4]


def test_a_start_beyond_the_log_is_refused() -> None:
    bench = opened("c")
    refusal = CursorRefused(1, Refusal.POSITION_AHEAD, "the log ends at position 0, before 2")
    assert told(bench.say("c", OpenCursor(1, "risk", "", 2)), "c") == [refusal]
    assert bench.core.cursors.cursors == {}


def test_a_moved_cursor_reads_everything_from_there_with_its_filter_and_as_attempts_to_come() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", "n > 1"))
    bench.publish("p", 1, 2, 3)
    bench.say("c", Acknowledge(1, 3))
    rows = bench.say("d", OpenCursor(1, "risk", "n < 3", EARLIEST, move=True))
    assert handed(rows, "d") == [(1, 2), (2, 2)]
    assert bench.core.cursors.cursors["risk"].acknowledged == 0


def test_a_filter_changes_at_one_position_also_from_the_log() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", "n < 3"))
    bench.publish("p", 1, 2, 3, 4)
    rows = bench.say("d", OpenCursor(1, "risk", "n > 2"))
    assert positions(rows, "d") == [1, 2]
    assert positions(bench.publish("p", 1, 2, 3, 4), "d") == [7, 8]


def test_a_filter_that_changes_when_everything_is_acknowledged_leaves_no_old_one_behind() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", "n < 3"))
    bench.publish("p", 1, 2)
    bench.say("c", Acknowledge(1, 2))
    bench.say("d", OpenCursor(1, "risk", "n > 2"))
    assert [after for after, _ in bench.core.cursors.cursors["risk"].filters] == [2]


def test_a_window_is_not_exceeded_and_consuming_makes_room() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", "", window=2))
    assert positions(bench.publish("p", 1, 2, 3, 4, 5), "c") == [1, 2]
    assert positions(bench.say("c", CursorProgress(1, 2, 0, unconsumed=2)), "c") == []
    assert positions(bench.say("c", CursorProgress(1, 2, 1, unconsumed=1)), "c") == [3]
    assert positions(bench.say("c", CursorProgress(1, 3, 3)), "c") == [4, 5]


def test_what_a_client_has_not_consumed_counts_also_on_its_next_link() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", "", window=2))
    bench.publish("p", 1, 2, 3)
    rows = bench.open("c", OpenCursor(1, "risk", "", window=2, generation=1, received=2, unconsumed=2))
    assert CursorOpened(1, 1, 0, 2) in told(rows, "c")
    assert positions(rows, "c") == []
    assert positions(bench.say("c", CursorProgress(1, 2, 2)), "c") == [3]


def test_a_client_without_room_is_asked_whether_that_is_still_so() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", "", window=1))
    bench.publish("p", 1, 2)
    bench.say("c", CursorProgress(1, 1, 0, unconsumed=1))
    assert CursorEvents(1, 1, 1, [], NO_EVENTS) in told(shown(bench.advance(2 * SECOND)), "c")


def test_a_slow_owner_falls_behind_and_catches_up_from_the_log_without_loss() -> None:
    bench = opened("c", delivery=DeliverySettings(queue_events=2))
    bench.say("c", OpenCursor(1, "risk", "", window=3))
    got = positions(bench.publish("p", *range(1, 9)), "c")
    while len(got) < 8:
        got += positions(bench.say("c", CursorProgress(1, got[-1], got[-1])), "c")
    got += positions(bench.say("c", CursorProgress(1, 8, 8)), "c")
    assert got == list(range(1, 9))
    assert positions(bench.publish("p", 9), "c") == [9]
    assert bench.log.measure()["named_read_total"] > 0


def test_what_is_missing_or_not_confirmed_is_sent_again() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.publish("p", 1, 2, 3)
    assert positions(bench.say("c", CursorProgress(1, 1, 1, missing=True)), "c") == [2, 3]
    assert positions(shown(bench.advance(1_300 * MILLISECOND)), "c") == [2, 3]
    bench.say("c", CursorProgress(1, 3, 3))
    assert positions(shown(bench.advance(10 * SECOND)), "c") == []


def test_catching_up_waits_until_its_owner_knows_that_it_has_the_cursor() -> None:
    bench = opened("c")
    bench.publish("p", 1, 2)
    bench.held = True
    assert positions(bench.say("c", OpenCursor(1, "risk", "", EARLIEST)), "c") == []
    assert positions(shown(bench.release()), "c") == [1, 2]


def test_a_cursor_survives_closing_and_the_end_of_its_session() -> None:
    bench = opened("c", away_after=SECOND)
    bench.say("c", OpenCursor(1, "risk", ""))
    assert told(bench.say("c", CloseCursor(1)), "c") == [CursorClosed(1)]
    assert told(bench.publish("p", 1), "c") == []
    assert positions(bench.say("c", OpenCursor(2, "risk", "")), "c") == [1]
    bench.handle(bench.down("c"))
    bench.advance(2 * SECOND)
    cursor = bench.core.cursors.cursors["risk"]
    assert (cursor.owner, cursor.acknowledged) == (None, 0)


def test_a_forgotten_name_begins_anew() -> None:
    bench = opened("c", "d")
    bench.say("c", OpenCursor(1, "risk", ""))
    bench.publish("p", 1)
    rows = bench.say("d", ForgetName(3, "risk"))
    assert told(rows, "c") == [CursorEnded(1, Refusal.SUPERSEDED, "the named subscription was given up")]
    assert told(bench.say("d", ForgetName(4, "risk")), "d") == [NameForgotten(4, False)]
    assert handed(bench.say("d", OpenCursor(1, "risk", "", EARLIEST)), "d") == [(1, 1)]


def test_a_link_that_went_down_late_takes_nothing_from_the_new_one() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    old = bench.links["c"]
    bench.handle(bench.up("c"))
    bench.say("c", OpenSession(1, bench.core.sessions[C].epoch), OpenCursor(1, "risk", "", generation=1))
    bench.say("c", AskLog(9, at_least=1))
    bench.handle(LinkDown(old, C, "late"))
    rows = bench.publish("p", 1)
    assert positions(rows, "c") == [1]
    assert LogTold(9, "disk", 1, 1) in told(rows, "c")


def test_names_are_bounded_and_a_window_has_a_range() -> None:
    bench = opened("c")
    for name in ("", "x" * 129):
        assert told(bench.say("c", OpenCursor(1, name, "")), "c") == [CursorRefused(1, Refusal.LIMIT, NO_NAME)]
    (ended,) = bench.say("c", OpenCursor(1, "risk", "", window=0))
    assert isinstance(ended, Disconnect)


def test_a_broker_without_a_disk_says_so() -> None:
    bench = BrokerBench()
    bench.open("c")
    assert told(bench.say("c", OpenCursor(1, "risk", "")), "c") == [CursorRefused(1, Refusal.NO_LOG, NO_LOG)]
    asked = (AskLog(2), ReadRange(2, "", 1, 1), ForgetName(2, "x"), CommitStages(2, "q", 1, ()))
    for message in (*asked, StageEvents(2, "q", 1, 1, "s", 1, batch())):
        assert told(bench.say("c", message), "c") == [LogRefused(2, Refusal.NO_LOG, NO_LOG)]


# ----------------------------------------------------------------------------------------------------------- ranges
def test_a_range_is_read_with_a_filter_and_within_its_bounds() -> None:
    bench = opened("c")
    bench.publish("p", 1, 2, 3, 4, 5)
    (read,) = told(bench.say("c", ReadRange(1, "n <> 3", 2, 4)), "c")
    assert isinstance(read, RangeRead)
    assert (read.log_id, read.through, read.positions, read.scanned) == ("disk", 4, [2, 4], 3)
    (read,) = told(bench.say("c", ReadRange(2, "", 6, 9)), "c")
    assert isinstance(read, RangeRead)
    assert (read.through, read.positions) == (5, [])
    (refused,) = told(bench.say("c", ReadRange(3, "n >", 1, 2)), "c")
    assert isinstance(refused, LogRefused)
    assert (refused.reason, refused.offset) == (Refusal.FILTER, 3)
    (refused,) = told(bench.say("c", ReadRange(4, "", 0, 2)), "c")
    assert refused == LogRefused(4, Refusal.POSITION_GONE, "the log begins at position 1, behind 0", 1)


def test_who_waits_for_a_position_is_answered_when_it_is_safe_and_once() -> None:
    bench = opened("c")
    assert bench.say("c", AskLog(1, at_least=2)) == []
    assert bench.say("c", AskLog(1, at_least=2)) == []
    assert told(bench.publish("p", 1), "c") == []
    bench.held = True
    assert told(bench.publish("p", 2), "c") == []
    assert told(shown(bench.release()), "c") == [LogTold(1, "disk", 1, 2)]


def test_the_first_event_at_a_time_or_later_is_found() -> None:
    bench = opened("c")
    times = []
    for number in range(1, 6):
        bench.advance(SECOND)
        times.append(bench.out.wall)
        bench.publish("p", number)
    for place, wall in enumerate(times, 1):
        for since, found in ((wall, place), (wall - 1, place), (wall + 1, place + 1)):
            assert told(bench.say("c", AskLog(1, since)), "c") == [LogTold(1, "disk", 1, 5, found)]


def test_a_time_is_looked_for_behind_what_is_not_safe_yet() -> None:
    bench = opened("c")
    bench.publish("p", 1)
    bench.advance(SECOND)
    bench.held = True
    bench.publish("p", 2)
    bench.advance(SECOND)
    since = bench.out.wall
    bench.publish("p", 3)
    assert told(bench.say("c", AskLog(1, since)), "c") == []
    assert told(shown(bench.release()), "c") == [LogTold(1, "disk", 1, 3, 3)]


# ----------------------------------------------------------------------------------------------------------- stages
def test_stages_are_invisible_until_they_are_committed_once_at_positions_without_gaps() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    staged = batch(1, 2, publisher="p")
    assert told(bench.say("p", StageEvents(1, "q", 1, 1, "s", 1, staged)), "p") == [Staged(1, 2)]
    assert told(bench.say("p", StageEvents(2, "q", 1, 1, "s", 1, staged)), "p") == [Staged(2, 2)]
    assert told(bench.say("p", StageEvents(3, "q", 1, 2, "t", 1, batch(3, publisher="p"))), "p") == [Staged(3, 1)]
    assert bench.core.events == 0
    rows = bench.say("p", CommitStages(4, "q", 1, ("t", "s")))
    assert told(rows, "p") == [StagesCommitted(4, 1, 3)]
    assert positions(rows, "c") == [1, 2, 3]
    assert bench.logged() == {1: 3, 2: 1, 3: 2}
    again = told(bench.say("p", CommitStages(5, "q", 1, ("t", "s"))), "p")
    assert again == [StagesCommitted(5, 1, 3, already=True)]
    assert bench.core.events == 3


@pytest.mark.parametrize("follower", [None, Subscribe(1, "n > 1"), OpenCursor(1, "risk", "n > 1")])
def test_a_commit_writes_the_same_log_whoever_looks_at_the_events(follower: Message | None) -> None:
    bench = opened("c")
    if follower is not None:
        bench.say("c", follower)
    for part, numbers in enumerate([(1, 2), (), (3,)], start=1):
        bench.say("p", StageEvents(part, "q", 1, 1, "s", part, batch(*numbers, publisher="p")))
    rows = bench.say("p", CommitStages(4, "q", 1, ("s",)))
    assert told(rows, "p") == [StagesCommitted(4, 1, 3)]
    assert bench.logged() == {1: 1, 2: 2, 3: 3}
    assert bench.core.log is not None
    assert (bench.core.events, bench.core.log.head) == (3, 3)
    assert bench.core.log.bytes == sum(len(batch(n, publisher="p")) - 1 for n in (1, 2, 3))
    heard = [row for row in rows if isinstance(row, tuple) and row[0] == C]
    assert bool(heard) == (follower is not None)
    # Who comes later reads them all the same.
    bench.open("d")
    assert positions(bench.say("d", OpenCursor(1, "later", "n > 1", EARLIEST)), "d") == [2, 3]


def test_a_commit_is_remembered_over_a_restart() -> None:
    bench = opened()
    bench.say("p", StageEvents(1, "q", 1, 1, "s", 1, batch(1, publisher="p")), CommitStages(2, "q", 1, ("s",)))
    bench.disk.stop(power_cut=True)
    later = LogBench(bench.disk)
    later.open("p")
    again = told(later.say("p", CommitStages(3, "q", 1, ("s",))), "p")
    assert again == [StagesCommitted(3, 1, 1, already=True)]


def test_an_event_that_is_staged_under_another_name_ends_the_link() -> None:
    (ended,) = opened("c").say("c", StageEvents(1, "q", 1, 1, "s", 1, batch(1, publisher="p")))
    assert isinstance(ended, Disconnect)
    assert "names another publisher" in ended.reason


# -------------------------------------------------------------------------------------------------------- retention
def mark_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.log_state.MARK_BYTES", 1)


def test_a_soft_limit_keeps_what_a_cursor_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    mark_every_event(monkeypatch)
    bench = opened("c", retention=RetentionSettings(bytes=1, bytes_hard=0))
    bench.say("c", OpenCursor(1, "risk", ""))
    for number in range(1, 6):
        bench.publish("p", number)
    bench.say("c", Acknowledge(1, 2))
    effects = bench.advance(6 * SECOND)
    assert [effect for effect in effects if isinstance(effect, Truncate)] == [Truncate(EVENTS, 3)]
    assert bench.core.log is not None
    assert bench.core.log.tail == 3
    bench.say("c", CloseCursor(1), ForgetName(1, "risk"))
    bench.advance(6 * SECOND)
    assert bench.core.log.tail == 5


def test_a_hard_limit_drops_it_and_the_owner_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mark_every_event(monkeypatch)
    bench = opened("c", "d", retention=RetentionSettings(bytes=1, bytes_hard=1))
    bench.say("c", OpenCursor(1, "risk", "", EARLIEST, window=1))
    for number in range(1, 6):
        bench.publish("p", number)
    bench.advance(6 * SECOND)
    assert bench.core.log is not None
    assert bench.core.log.tail == 5
    bench.log._deliveries._deliveries[C, bench.core.sessions[C].epoch, 1].fall_behind()
    rows = bench.say("c", CursorProgress(1, 1, 1))
    ended = CursorEnded(1, Refusal.POSITION_GONE, "the log begins at position 5, behind 2", 5)
    assert told(rows, "c") == [ended]
    assert ended in told(shown(bench.advance(2 * SECOND)), "c"), "it may be lost"
    bench.say("c", CloseCursor(1))
    problem = "the log begins at position 5, behind 1"
    refused = CursorRefused(1, Refusal.POSITION_GONE, problem, tail=5)
    assert told(bench.say("d", OpenCursor(1, "risk", "")), "d") == [refused]
    assert positions(bench.say("d", OpenCursor(2, "risk", "", EARLIEST, move=True)), "d") == [5]


def test_a_cursor_that_lost_something_keeps_nothing_from_being_given_up() -> None:
    log = LogState(head=10, tail=5)
    table = CursorTable(log, 10, Untold())
    table.cursors["lost"] = Cursor("lost", Filter(""), 1)
    assert table.floor() == 11
    table.cursors["lost"].owner = ("client:c", 1, 1)
    assert table.floor() == 5
    table.cursors["reads"] = Cursor("reads", Filter(""), 7)
    table.cursors["lost"].owner = None
    assert table.floor() == 8


# ---------------------------------------------------------------------------------------------------------- restarts
@pytest.mark.parametrize("seed", range(40))
def test_after_a_power_cut_the_log_holds_what_the_journal_speaks_of(seed: int) -> None:
    disk = Disk(RECORDS, Random(seed))
    bench = LogBench(disk, snapshot_every=3)
    bench.open("p")
    bench.open("c", OpenCursor(1, "risk", ""))
    bench.publish("p", 1, 2)
    bench.say("c", Acknowledge(1, 1))
    bench.held = True
    for number in range(3, 8):
        bench.publish("p", number)
    disk.stop(power_cut=True)
    later = LogBench(disk, snapshot_every=3)
    head = later.core.events
    assert 2 <= head <= 7
    assert later.logged() == {number: number for number in range(1, head + 1)}
    later.open("d")
    rows = later.say("d", OpenCursor(1, "risk", ""))
    assert handed(rows, "d") == [(position, 2) for position in range(2, head + 1)]


def test_what_is_acknowledged_counts_as_received_when_we_go_back() -> None:
    """A report that comes late, or never, would have the event read again, under a filter that is gone by then."""
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", "", window=3))
    bench.publish("p", 1, 2)
    bench.say("c", Acknowledge(1, 2))
    assert positions(bench.say("c", CursorProgress(1, 0, 0, missing=True)), "c") == []
    assert positions(bench.publish("p", 3, 4), "c") == [3], "1 and 2 are not consumed yet"


def test_how_far_a_driver_that_still_reads_will_come_is_not_known() -> None:
    """It reads for who has left the name, and who takes it now gets the same events: not as a first attempt."""
    bench = opened("s")
    cursor = Cursor("name", Filter(""), 0)
    deliveries = bench.log._deliveries
    deliveries._sent_in_life["name"] = 7
    assert deliveries.sent_to_anyone(cursor) == 7
    cursor.owner = ("client:t", 2, 1)
    deliveries._reading[1] = (("client:s", 1, 1), cursor)
    assert deliveries.sent_to_anyone(cursor) == -1


def test_a_group_has_to_agree_where_its_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that was deposed and does not know it would tell of an older end."""
    bench = opened("s")
    monkeypatch.setattr(bench.log._sequencer, "applies_at_once", False)
    submitted: list[object] = []
    monkeypatch.setattr(bench.log._sequencer, "submit", lambda command, out: submitted.append(command))
    assert bench.say("s", AskLog(1)) == []
    assert [type(command).__name__ for command in submitted] == ["LookAtLog"]


def test_a_clock_that_jumps_ahead_makes_nothing_old_at_once() -> None:
    """A year ahead by mistake, and back: nothing is lost but what is really old by then."""
    bench = opened(retention=RetentionSettings(age=3_600 * SECOND, look_every=10 * SECOND))
    for number in range(1, 6):
        bench.publish("p", number)
        bench.advance(61 * SECOND)
    log = bench.core.log
    assert log is not None
    bench.advance(60 * SECOND)
    bench.out.wall += 365 * 86_400 * SECOND
    bench.advance(600 * SECOND)
    assert log.tail == 1
    bench.out.wall -= 365 * 86_400 * SECOND
    bench.advance(1_800 * SECOND)
    assert log.tail == 1
    bench.advance(3_600 * SECOND)
    assert log.tail > 1, "an hour has passed"
