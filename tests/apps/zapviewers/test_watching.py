"""Watching: what the application says is shown, what others say on its topics is not."""

from __future__ import annotations

from holdfast.apps.zapviewers.audience import ChannelViewers
from holdfast.apps.zapviewers.viewership import Viewership
from holdfast.apps.zapviewers.watching import Board, board_of, line, page
from holdfast.model.received import ReceivedEvent
from tests.apps.zapviewers.reports import payload, zap

SECOND = 10**9


def board(*top: tuple[str, int], position: int = 7, rate: float | None = None) -> Board:
    entries = tuple(ChannelViewers(*entry) for entry in top)
    return Board(entries, position, 100, sum(viewers for _, viewers in top), len(top), 5 * SECOND, rate)


def told(publisher: str = "@application", at: int = SECOND) -> ReceivedEvent:
    lines = payload(zap(1, "B", "X"), zap(2, "A", "X"), zap(3, "B", "X"))
    top = Viewership().observe(5, SECOND, "zap", {}, lines)[0]
    return ReceivedEvent(publisher, 1, 1, top.topic, top.attributes, top.payload, at)


def test_a_board_is_what_the_application_derives() -> None:
    top = (ChannelViewers("B", 2), ChannelViewers("A", 1))
    assert board_of(told()) == Board(top, 5, 3, 3, 2, SECOND, None)


def test_a_rate_is_that_of_lines_by_the_clock_of_the_replicas() -> None:
    first = board_of(told())
    assert first is not None
    later = board_of(told(at=3 * SECOND), first._replace(lines=1))
    assert later is not None
    assert later.lines_per_s == 1.0
    again = board_of(told(), first)
    assert again is not None
    assert again.lines_per_s is None


def test_what_others_publish_under_its_topics_is_nothing() -> None:
    assert board_of(told(publisher="client")) is None


def test_a_page_has_a_line_for_each_channel_with_its_change() -> None:
    before, now = board(("A", 10), ("B", 8)), board(("B", 20), ("A", 5), ("C", 1), rate=1234.5)
    shown = page(now, before, 60)
    assert shown[0] == "26 viewers on 3 channels   1,234 lines/s   position 7"
    assert [text.split()[:2] for text in shown[1:]] == [["1", "B"], ["2", "A"], ["3", "C"]]
    assert [text.split()[-1] for text in shown[1:]] == ["+12", "-5", "1"]
    bars = [text.count("█") for text in shown[1:]]
    assert bars[0] == 4 * bars[1] + 2 == 18
    assert all(len(text) <= 60 for text in shown)


def test_long_names_and_narrow_terminals_fit() -> None:
    shown = page(board(("x" * 50, 3)), None, 40)
    assert all(len(text) <= 40 for text in shown)
    assert "…" in shown[1]
    assert page(board(), None, 80) == ["0 viewers on 0 channels   position 7"]


def test_a_line_has_the_first_three() -> None:
    assert line(board(("A", 4), ("B", 3), ("C", 2), ("D", 1))) == "position 7: 10 viewers; A 4, B 3, C 2, …"
    assert line(board(("A", 1000), rate=20.4)) == "position 7: 1,000 viewers, 20 lines/s; A 1,000"
    assert line(board()) == "position 7: 0 viewers; nobody watches"
