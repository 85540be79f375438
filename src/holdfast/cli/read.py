"""`holdfast read`: events from a broker's log by position, as JSON lines."""

from __future__ import annotations

import argparse
import sys

from holdfast.cli.lines import read_place, write_line
from holdfast.cli.main import OK
from holdfast.cli.waiting import add_timeout_argument, bus_at
from holdfast.cli.where import DEFAULT_URL, add_where_arguments, url_from
from holdfast.model import Filter
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast read                                     everything that is kept
  holdfast read "price > 100" --start 1000 --end 1999
  holdfast read --start 2026-11-15T12:00:00+00:00
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("filter", metavar="FILTER", nargs="?", default="", help="which events (default: all)")
    add_where_arguments(parser)
    parser.add_argument("--start", type=_place, metavar="PLACE", help="a position or a time (default: the first kept)")
    parser.add_argument("--end", type=_place, metavar="PLACE", help="a position or a time (default: the last one now)")
    add_timeout_argument(parser)
    parser.set_defaults(run=_run)


def _place(text: str) -> object:
    place = read_place(text)
    if isinstance(place, str):
        raise argparse.ArgumentTypeError(f"{text!r} is no position and no time")
    return place


def _run(arguments: argparse.Namespace) -> int:
    Filter(arguments.filter)  # what is none is told before a broker is looked for
    loop.run(_read(url_from(arguments) or DEFAULT_URL, arguments))
    return OK


async def _read(url: str, arguments: argparse.Namespace) -> None:
    async with bus_at(url, arguments.timeout) as bus:
        async for batch in bus.read(arguments.filter, arguments.start, arguments.end).batches():
            sys.stdout.buffer.write(b"".join(map(write_line, batch)))
