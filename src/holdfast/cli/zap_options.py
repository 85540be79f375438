"""What the options of `holdfast zap` look like as text."""

from __future__ import annotations

import argparse
import re
from datetime import date, time

DURATION_S_MAX = 366 * 86_400
YEARS = range(1900, 3000)
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number: write 0, 1, 2, …")
    return int(text)


def read_rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines a second: write 500 or 0.5")
    return float(text)


def read_day(text: str) -> date:
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and (day := date.fromisoformat(text)).year in YEARS:
            return day
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no day of the years {YEARS[0]} to {YEARS[-1]}: write 2026-11-15")


def read_time(text: str) -> int:
    try:
        if re.fullmatch("[0-9]{2}:[0-9]{2}(:[0-9]{2})?", text):
            found = time.fromisoformat(text)
            return found.hour * 3600 + found.minute * 60 + found.second
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no time of day: write it as 20:15 or 20:15:30")


def read_duration(text: str) -> int:
    found = re.fullmatch("([0-9]{1,9})([smhd]?)", text)
    seconds = int(found[1]) * UNITS_S[found[2]] if found else 0
    if not 0 < seconds <= DURATION_S_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration up to a year: write 30, 10m, 2h or 1d")
    return seconds


def read_speed(text: str) -> float | None:
    """None: as fast as can be."""
    if text == "max":
        return None
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: write 1, 2.5 or max")
    return float(text)
