"""`holdfast zap`: ZapViewers, who watches what. Each verb is a function here, and a line in `add_arguments`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from holdfast.apps.zapviewers.channels import INVENTED
from holdfast.apps.zapviewers.generator import BOXES, RATE, ZapSettings, generate
from holdfast.cli.main import OK
from holdfast.cli.zap_live import add_ask, add_publish, add_watch, read_channel_file
from holdfast.cli.zap_options import read_day, read_duration, read_rate, read_time, read_whole

EXAMPLES = """\
examples:
  holdfast zap generate --seed 7 --duration 10m --output zaps.txt      ten minutes from 20:00 on
  holdfast zap generate --channels tv-channels.csv --count 1000000     a million lines, with channels of your own
  holdfast zap generate --first-box 180000 --seed 2                    boxes that another log does not have
  holdfast init --application zapviewers zap.toml                      a site that counts viewers
  holdfast zap publish zap.toml --publishers 3 --duration 10m          three publishers, as fast as boxes are
  holdfast zap watch zap.toml                                          the ten most watched channels, live
  holdfast zap ask viewers "Velkin News" zap.toml                      how many watch one

The log is synthetic: made up by rules that docs/zapviewers.md gives, not recorded from anybody.
"""
DURATION_S = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _add_generate(verbs.add_parser("generate", help="write a synthetic log of set-top boxes, by seed"))
    add_publish(verbs.add_parser("publish", help="publish such a log, as set-top boxes would"))
    add_watch(verbs.add_parser("watch", help="the most watched channels, live; or one channel"))
    add_ask(verbs.add_parser("ask", help="ask the replicas: the top list, the viewers of a channel, counts"))


def _add_generate(parser: argparse.ArgumentParser) -> None:
    standard = ZapSettings()
    parser.add_argument("--seed", type=read_whole, default=standard.seed, metavar="N", help="equal seeds, equal logs")
    parser.add_argument(
        "--boxes", type=read_whole, default=BOXES, metavar="N", help=f"set-top boxes (default {BOXES:,})"
    )
    parser.add_argument(
        "--first-box", type=read_whole, default=0, metavar="N", help="number of the first one (default 0)"
    )
    parser.add_argument(
        "--rate",
        type=read_rate,
        metavar="R",
        help=f"lines a second, as the mean of a day (default {RATE:g} for {BOXES:,} boxes)",
    )
    parser.add_argument(
        "--day", type=read_day, default=standard.day, metavar="DATE", help=f"YYYY-MM-DD (default {standard.day})"
    )
    parser.add_argument(
        "--from",
        type=read_time,
        default=standard.start_s,
        metavar="TIME",
        dest="start",
        help="HH:MM[:SS] (default 20:00)",
    )
    parser.add_argument(
        "--duration",
        type=read_duration,
        metavar="TIME",
        help=f"30, 10m, 2h, 1d (default {DURATION_S} seconds, or as long as --count takes)",
    )
    parser.add_argument("--count", type=read_whole, metavar="N", help="stop after so many lines")
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
        channels=INVENTED if arguments.channels is None else read_channel_file(arguments.channels),
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


@contextmanager
def _open_for_writing(name: str | None) -> Iterator[BinaryIO]:
    if name is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with open(name, "wb") as file:
            yield file
