"""Lines of set-top boxes: two forms, strictly (D4-A11)."""

from __future__ import annotations

import pytest

from holdfast.apps.zapviewers.lines import LINE_BYTES_MAX, TIMES, Malformed, Report, Zap, parse


def test_a_line_of_five_fields_is_a_change_of_channel() -> None:
    assert parse(b"2026-11-15,20:15:03,10.0.3.7,Kanal Nord,Vega 2") == Zap(
        b"2026-11-15", b"20:15:03", b"10.0.3.7", b"Kanal Nord", b"Vega 2"
    )


@pytest.mark.parametrize("status", [b"volume 0", b"volume 100", b"mute", b"unmute", b"power on", b"power off"])
def test_a_line_of_four_fields_is_a_report(status: bytes) -> None:
    assert parse(b"2024-02-29,23:59:59,255.1.0.255," + status) == Report(
        b"2024-02-29", b"23:59:59", b"255.1.0.255", status
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "empty"),
        (b"2026-11-15,20:15:03,10.0.3.7", "not 4 or 5 fields"),
        (b"2026-11-15,20:15:03,10.0.3.7,A,B,C", "not 4 or 5 fields"),
        (b"2026-11-15 20:15:03 10.0.3.7 A B", "not 4 or 5 fields"),
        (b"2026-02-29,20:15:03,10.0.3.7,A,B", "no date"),
        (b"0000-01-01,20:15:03,10.0.3.7,A,B", "no date"),
        (b"20261115,20:15:03,10.0.3.7,A,B", "no date"),
        (b"2026-W46-7,20:15:03,10.0.3.7,A,B", "no date"),
        (b" 2026-11-15,20:15:03,10.0.3.7,A,B", "no date"),
        ("\uff12026-11-15,20:15:03,10.0.3.7,A,B".encode(), "no date"),
        (b"2026-11-15,24:00:00,10.0.3.7,A,B", "no time"),
        (b"2026-11-15,20:15:60,10.0.3.7,A,B", "no time"),
        (b"2026-11-15,8:15:03,10.0.3.7,A,B", "no time"),
        (b"2026-11-15,20:15:03,10.0.3.256,A,B", "no address"),
        (b"2026-11-15,20:15:03,10.0.03.7,A,B", "no address"),
        (b"2026-11-15,20:15:03,10.0.3,A,B", "no address"),
        (b"2026-11-15,20:15:03,10.0.3.7\n,A,B", "no address"),
        (b"2026-11-15,20:15:03,::1,A,B", "no address"),
        (b"2026-11-15,20:15:03,10.0.3.7,volume 101", "no status"),
        (b"2026-11-15,20:15:03,10.0.3.7,volume 007", "no status"),
        (b"2026-11-15,20:15:03,10.0.3.7,volume -1", "no status"),
        (b"2026-11-15,20:15:03,10.0.3.7,POWER ON", "no status"),
        (b"2026-11-15,20:15:03,10.0.3.7,power off\r", "no status"),
        (b"2026-11-15,20:15:03,10.0.3.7,,B", "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,A,", "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,A,B\r", "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7, A,B", "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,A ,B", "no channel"),
        (b'2026-11-15,20:15:03,10.0.3.7,"A",B', "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,\x1b[2J,B", "no channel"),
        ("2026-11-15,20:15:03,10.0.3.7,\x9b2J,B".encode(), "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,\xff,B", "no channel"),
        (b"2026-11-15,20:15:03,10.0.3.7,A,\xed\xa0\x80", "no channel"),
    ],
)
def test_everything_else_is_malformed_with_a_reason(line: bytes, reason: str) -> None:
    assert parse(line) == Malformed(reason)


def test_a_line_has_less_than_60_bytes() -> None:
    line = b"2026-11-15,20:15:03,10.0.3.7,A,".ljust(LINE_BYTES_MAX, b"B")
    assert isinstance(parse(line), Zap)
    assert parse(line + b"B") == Malformed("too long")


def test_every_time_of_a_day_is_one() -> None:
    assert len(TIMES) == 24 * 60 * 60
    assert {b"00:00:00", b"23:59:59"} <= TIMES
