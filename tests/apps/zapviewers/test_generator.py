"""The synthetic log: true to itself, to its rules and to its seed (D4-A10, D4-A11, D4-A12)."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from hashlib import sha256
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.channels import INVENTED
from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.generator import (
    BATCH_S,
    BOXES_END,
    RETENTION_S,
    Turn,
    ZapSettings,
    generate,
    rate_max,
)
from holdfast.apps.zapviewers.lines import LINE_BYTES_MAX, Report, Zap, parse
from holdfast.apps.zapviewers.rhythm import EAGERNESS, SHARES_ON, pace, share_on

DAY = date(2026, 3, 1)


def turns(seconds: int, **options: object) -> list[Turn]:
    return list(islice(generate(ZapSettings(day=DAY, **options)), seconds))  # type: ignore[arg-type]


class Replay:
    """Reads a log as a server gets it, and knows every box only from its lines. Notes what does not fit."""

    def __init__(self) -> None:
        self.anomalies: list[str] = []
        self.lines = 0
        self._last: dict[bytes, int] = {}
        self._sends_in: dict[bytes, int] = {}
        self._channel: dict[bytes, bytes] = {}
        self._is_on: dict[bytes, bool] = {}
        self._muted: dict[bytes, bool] = {}

    def see(self, line: bytes, received: int) -> None:
        self.lines += 1
        parsed = parse(line)
        if not isinstance(parsed, Zap | Report):
            self._note(line, "malformed")
            return
        box = parsed.box
        happened = int(
            (datetime.fromisoformat(f"{parsed.date.decode()}T{parsed.time.decode()}") - MIDNIGHT).total_seconds()
        )
        if not RETENTION_S < received - happened <= RETENTION_S + BATCH_S:
            self._note(line, "sent too early or too late")
        if happened - self._last.get(box, -1000) <= RETENTION_S:
            self._note(line, "did not last")
        if self._sends_in.setdefault(box, received % BATCH_S) != received % BATCH_S:
            self._note(line, "sent out of turn")
        self._last[box] = happened
        if isinstance(parsed, Zap):
            if parsed.came_from != self._channel.get(box, parsed.came_from) or parsed.to == parsed.came_from:
                self._note(line, "was elsewhere")
            self._channel[box] = parsed.to
        if parsed[3] == b"power on":
            if self._is_on.get(box, False):
                self._note(line, "was on")
        elif not self._is_on.get(box, True):
            self._note(line, "was off")
        self._is_on[box] = parsed[3] != b"power off"
        if parsed[3] in (b"mute", b"unmute"):
            if self._muted.get(box, parsed[3] == b"unmute") is (parsed[3] == b"mute"):
                self._note(line, "was muted, or not")
            self._muted[box] = parsed[3] == b"mute"
        elif parsed[3] == b"power off":
            self._muted[box] = False

    def _note(self, line: bytes, problem: str) -> None:
        self.anomalies.append(f"{line.decode()}: {problem}")


MIDNIGHT = datetime(2026, 3, 1)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**64),
    boxes=st.integers(10, 400),
    first_box=st.sampled_from([0, 250, 180_000, BOXES_END - 400]),
    crowd=st.floats(0.01, 1),
    start_s=st.integers(0, 86_399),
    channels=st.sampled_from([INVENTED, INVENTED[:2]]),
)
def test_a_replayed_log_has_no_anomalies(
    seed: int, boxes: int, first_box: int, crowd: float, start_s: int, channels: tuple[str, ...]
) -> None:
    rate = max(0.001, crowd * rate_max(boxes))
    replay, audience = Replay(), Audience()
    log = turns(120, seed=seed, boxes=boxes, first_box=first_box, rate=rate, start_s=start_s, channels=channels)
    for turn in log:
        audience.take(turn.text)
        lines = turn.text.splitlines()
        assert len(lines) == turn.lines
        for line in lines:
            replay.see(line, start_s + turn.second)
    assert replay.anomalies == []
    assert (audience.lines, audience.malformed, audience.anomalies) == (replay.lines, 0, 0)
    assert audience.boxes <= boxes


def test_a_replayed_day_of_few_boxes_has_no_anomalies() -> None:
    """Few boxes are switched off and on again at once, and muted before, often enough to be seen."""
    replay = Replay()
    for turn in islice(generate(ZapSettings(day=DAY, start_s=0, boxes=10, rate=rate_max(10))), 86_400):
        for line in turn.text.splitlines():
            replay.see(line, turn.second)
    assert replay.anomalies == []
    assert replay.lines > 8_000


def test_a_replay_finds_what_is_wrong() -> None:
    first, second = b"2026-03-01,00:00:03,10.0.0.1,A,B", b"2026-03-01,00:00:07,10.0.0.1,C,A"
    for lines, problem in (
        ([(first, 13), (second, 13)], ""),
        ([(first[:-2], 13)], "malformed"),
        ([(first, 17)], "sent too early or too late"),
        ([(second, 10)], "sent too early or too late"),
        ([(first, 13), (second.replace(b":07", b":06"), 13)], "did not last"),
        ([(first, 13), (second, 14)], "sent out of turn"),
        ([(first, 13), (second.replace(b"C,A", b"C,B"), 13)], "was elsewhere"),
        ([(first, 13), (second.replace(b"C,A", b"power on"), 13)], "was on"),
        ([(first.replace(b"A,B", b"power off"), 13), (second, 13)], "was off"),
        ([(first.replace(b"A,B", b"mute"), 13), (second.replace(b"C,A", b"mute"), 13)], "was muted, or not"),
    ):
        replay = Replay()
        for line, received in lines:
            replay.see(line, received)
        assert [note.partition(": ")[2] for note in replay.anomalies] == ([problem] if problem else [])


def test_lines_of_the_longest_names_and_addresses_have_less_than_60_bytes() -> None:
    longest = ["M" * 12, "N" * 12]
    log = turns(20, boxes=400, first_box=BOXES_END - 400, channels=longest, rate=rate_max(400))
    sizes = Counter(len(line) for turn in log for line in turn.text.splitlines())
    assert max(sizes) == LINE_BYTES_MAX == 59


def test_a_seed_gives_the_same_log_for_ever() -> None:
    log = b"".join(turn.text for turn in turns(60, seed=7, boxes=20_000))
    assert (log.count(b"\n"), sha256(log).hexdigest()) == (
        17166,
        "5b037005a88f85d838883f2aace7f5e222ba75ff2b259b1621db68a23d081af1",
    )
    assert log == b"".join(turn.text for turn in turns(60, seed=7, boxes=20_000))
    assert log != b"".join(turn.text for turn in turns(60, seed=8, boxes=20_000))


def test_lines_come_as_the_rhythm_says() -> None:
    for start_s in (4 * 3600 + 600, 20 * 3600, 20 * 3600 + 600, 20 * 3600 + 29 * 60):
        got = sum(turn.lines for turn in turns(60, start_s=start_s, boxes=60_000, rate=100.0))
        expected = sum(100 * pace(start_s + second) for second in range(60))
        assert got == pytest.approx(expected, rel=0.1)


def test_the_evening_and_the_ends_of_programmes_are_busy() -> None:
    assert sum(pace(second) for second in range(86_400)) / 86_400 == pytest.approx(1, rel=0.01)
    assert share_on(21 * 3600) == max(SHARES_ON)
    assert share_on(20 * 3600 + 1800) == pytest.approx(0.61)
    assert pace(20 * 3600) > 2 * pace(19 * 3600 + 900)
    assert pace(20 * 3600 + 1800) > 2 * pace(20 * 3600 + 900)
    assert max(EAGERNESS) == EAGERNESS[0]


def test_boxes_are_switched_on_towards_the_evening_and_off_at_night() -> None:
    def balance(start_s: int) -> int:
        text = b"".join(turn.text for turn in turns(600, start_s=start_s, boxes=20_000, rate=10.0))
        return text.count(b",power on\n") - text.count(b",power off\n")

    assert balance(18 * 3600) > 100
    assert balance(23 * 3600) < -100


def test_channels_are_as_popular_as_zipf_says() -> None:
    harmonic = sum(1 / rank for rank in range(1, len(INVENTED) + 1))
    joined = Counter[bytes]()
    for turn in turns(200, boxes=60_000):
        joined.update(fields[3] for line in turn.text.splitlines() if len(fields := line.split(b",")) == 5)
    total = sum(joined.values())
    for rank in (1, 2, 10, 50):
        share = joined[INVENTED[rank - 1].encode()] / total
        assert share == pytest.approx(1 / rank / harmonic, rel=0.25)


def test_all_kinds_of_lines_are_there_in_their_shares() -> None:
    statuses = Counter[bytes]()
    for turn in turns(300, boxes=20_000, rate=100.0):
        statuses.update(
            fields[3].split(b" ")[0] for line in turn.text.splitlines() if len(fields := line.split(b",")) == 4
        )
        statuses[b"zap"] += sum(line.count(b",") == 4 for line in turn.text.splitlines())
    total = statuses.total()
    sound = statuses[b"volume"] + statuses[b"mute"] + statuses[b"unmute"]
    assert statuses.keys() == {b"zap", b"volume", b"mute", b"unmute", b"power"}
    assert sound / total == pytest.approx(0.15, rel=0.1)
    assert statuses[b"power"] / total < 0.05


def test_boxes_of_different_numbers_have_different_addresses() -> None:
    first = {line.split(b",")[2] for turn in turns(60, boxes=300) for line in turn.text.splitlines()}
    second = {line.split(b",")[2] for turn in turns(60, boxes=300, first_box=300) for line in turn.text.splitlines()}
    assert first
    assert second
    assert first.isdisjoint(second)


@pytest.mark.parametrize(
    "options",
    [
        {"boxes": 9},
        {"boxes": 10, "first_box": BOXES_END - 9},
        {"first_box": -1},
        {"rate": 0.0},
        {"rate": float("nan")},
        {"boxes": 1000, "rate": rate_max(1000) + 0.001},
    ],
)
def test_what_can_not_be_made_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ZapError):
        turns(1, **options)
