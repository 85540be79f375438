"""`holdfast zap`: ZapViewers, who watches what. Each verb is a function here, and a line in `add_arguments`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from typing import BinaryIO

from holdfast.apps.zapviewers.channels import INVENTED, read_channels
from holdfast.apps.zapviewers.generator import BOXES, RATE, ZapSettings, generate
from holdfast.cli.main import OK
from holdfast.errors import ZapError

EXAMPLES = """\
examples:
  holdfast zap generate --seed 7 --duration 10m --output zaps.txt      ten minutes from 20:00 on
  holdfast zap generate --channels tv-channels.csv --count 1000000     a million lines, with channels of your own
  holdfast zap generate --first-box 180000 --seed 2                    boxes that another log does not have

The log is synthetic: made up by rules that docs/zapviewers.md gives, not recorded from anybody.
"""
DURATION_S = 60
DURATION_S_MAX = 366 * 86_400
YEARS = range(1900, 3000)
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _add_generate(verbs.add_parser("generate", help="write a synthetic log of set-top boxes, by seed"))


def _add_generate(parser: argparse.ArgumentParser) -> None:
    standard = ZapSettings()
    parser.add_argument("--seed", type=_whole, default=standard.seed, metavar="N", help="equal seeds, equal logs")
    parser.add_argument("--boxes", type=_whole, default=BOXES, metavar="N", help=f"set-top boxes (default {BOXES:,})")
    parser.add_argument("--first-box", type=_whole, default=0, metavar="N", help="number of the first one (default 0)")
    parser.add_argument(
        "--rate",
        type=_rate,
        metavar="R",
        help=f"lines a second, as the mean of a day (default {RATE:g} for {BOXES:,} boxes)",
    )
    parser.add_argument(
        "--day", type=_day, default=standard.day, metavar="DATE", help=f"YYYY-MM-DD (default {standard.day})"
    )
    parser.add_argument(
        "--from", type=_time, default=standard.start_s, metavar="TIME", dest="start", help="HH:MM[:SS] (default 20:00)"
    )
    parser.add_argument(
        "--duration",
        type=_duration,
        metavar="TIME",
        help=f"30, 10m, 2h, 1d (default {DURATION_S} seconds, or as long as --count takes)",
    )
    parser.add_argument("--count", type=_whole, metavar="N", help="stop after so many lines")
    parser.add_argument(
        "--channels", metavar="FILE", help=f"a CSV file with a column 'name' (default {len(INVENTED)} invented names)"
    )
    parser.add_argument("--output", metavar="FILE", help="where to write (default standard output)")
    parser.set_defaults(run=_generate)


def _generate(arguments: argparse.Namespace) -> int:
    settings = ZapSettings(
        seed=arguments.seed,
        boxes=arguments.boxes,
        first_box=arguments.first_box,
        rate=arguments.rate,
        day=arguments.day,
        start_s=arguments.start,
        channels=INVENTED if arguments.channels is None else _channels(arguments.channels),
    )
    seconds = arguments.duration
    if seconds is None and arguments.count is None:
        seconds = DURATION_S
    with _open_for_writing(arguments.output) as file:
        lines = _write(settings, seconds, arguments.count, file)
    print(f"{lines:,} lines of a synthetic log, seed {settings.seed}", file=sys.stderr)
    return OK


def _write(settings: ZapSettings, seconds: int | None, count: int | None, file: BinaryIO) -> int:
    written = 0
    for turn in generate(settings):
        if turn.second == seconds:
            break
        if count is not None and written + turn.lines >= count:
            file.write(b"".join(turn.text.splitlines(keepends=True)[: count - written]))
            return count
        file.write(turn.text)
        written += turn.lines
    return written


def _channels(name: str) -> Sequence[str]:
    with open(name, encoding="utf-8", newline="") as file:
        try:
            return read_channels(file)
        except UnicodeDecodeError as problem:
            raise ZapError(f"{name} is not written in UTF-8: {problem.reason}") from problem
        except ZapError as problem:
            raise ZapError(f"{name}: {problem}") from problem


@contextmanager
def _open_for_writing(name: str | None) -> Iterator[BinaryIO]:
    if name is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with open(name, "wb") as file:
            yield file


# ---------------------------------------------------------------------------------------------------------- arguments
def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number: write 0, 1, 2, …")
    return int(text)


def _rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines a second: write 500 or 0.5")
    return float(text)


def _day(text: str) -> date:
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and (day := date.fromisoformat(text)).year in YEARS:
            return day
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no day of the years {YEARS[0]} to {YEARS[-1]}: write 2026-11-15")


def _time(text: str) -> int:
    try:
        if re.fullmatch("[0-9]{2}:[0-9]{2}(:[0-9]{2})?", text):
            found = time.fromisoformat(text)
            return found.hour * 3600 + found.minute * 60 + found.second
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no time of day: write it as 20:15 or 20:15:30")


def _duration(text: str) -> int:
    found = re.fullmatch("([0-9]{1,9})([smhd]?)", text)
    seconds = int(found[1]) * UNITS_S[found[2]] if found else 0
    if not 0 < seconds <= DURATION_S_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration up to a year: write 30, 10m, 2h or 1d")
    return seconds
