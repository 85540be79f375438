"""`holdfast zap publish | watch | ask`: a log on its way to brokers that count viewers, and what comes of it."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from holdfast import client
from holdfast.apps.zapviewers import watching
from holdfast.apps.zapviewers.asking import ask_counts, ask_top, ask_viewers
from holdfast.apps.zapviewers.channels import INVENTED, read_channels
from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.generator import BOXES, ZapSettings
from holdfast.apps.zapviewers.publishing import PUBLISHERS_MAX, PublishedLines, PublishSettings, publish_log
from holdfast.cli.main import INTERRUPTED, OK
from holdfast.cli.terminal import InPlace, is_terminal, table
from holdfast.cli.where import DEFAULT_URL, url_of
from holdfast.cli.zap_options import read_duration, read_rate, read_speed, read_time, read_whole
from holdfast.runtime import loop

DURATION_S = 60


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")


# ------------------------------------------------------------------------------------------------------------- publish
def add_publish(parser: argparse.ArgumentParser) -> None:
    standard = ZapSettings()
    _add_where(parser)
    parser.add_argument(
        "--publishers", type=read_whole, default=1, metavar="N", help=f"1 to {PUBLISHERS_MAX} (default 1)"
    )
    parser.add_argument(
        "--boxes", type=read_whole, default=BOXES, metavar="N", help=f"of each publisher (default and most {BOXES:,})"
    )
    parser.add_argument(
        "--first-box", type=read_whole, default=0, metavar="N", help="number of the first one (default 0)"
    )
    parser.add_argument(
        "--seed", type=read_whole, default=standard.seed, metavar="N", help="equal seeds, equal logs; the next for each"
    )
    parser.add_argument(
        "--from", type=read_time, default=standard.start_s, metavar="TIME", dest="start", help="HH:MM[:SS] of the log"
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=read_rate, metavar="R", help="lines a second, of all publishers together")
    pace.add_argument(
        "--speed", type=read_speed, default=1.0, metavar="X", help="times as fast as boxes are (default 1); max: as "
        "fast as the brokers acknowledge",
    )  # fmt: skip
    parser.add_argument(
        "--duration", type=read_duration, metavar="TIME", help=f"30, 10m, 2h, 1d (default {DURATION_S} seconds)"
    )
    parser.add_argument("--count", type=read_whole, metavar="N", help="stop after so many lines, of all publishers")
    parser.add_argument("--channels", metavar="FILE", help="a CSV file with a column 'name'")
    parser.set_defaults(run=_publish)


def _publish(arguments: argparse.Namespace) -> int:
    seconds = arguments.duration
    if seconds is None and arguments.count is None:
        seconds = DURATION_S
    settings = PublishSettings(
        run=secrets.token_hex(4),
        log=ZapSettings(
            seed=arguments.seed,
            boxes=arguments.boxes,
            first_box=arguments.first_box,
            start_s=arguments.start,
            channels=INVENTED if arguments.channels is None else read_channel_file(arguments.channels),
        ),
        publishers=arguments.publishers,
        speed=arguments.speed if arguments.rate is None else None,
        rate=arguments.rate,
        seconds=seconds,
        lines=arguments.count,
    )
    url, tally, code = url_of(arguments.where), PublishedLines(), OK
    try:
        loop.run(publish_log(url, settings, tally))
    except KeyboardInterrupt:
        code = INTERRUPTED
    print(f"{tally} (synthetic, run {settings.run})")
    return code


def read_channel_file(name: str) -> Sequence[str]:
    """The names in a file, or ZapError, which names it."""
    with open(name, encoding="utf-8", newline="") as file:
        try:
            return read_channels(file)
        except UnicodeDecodeError as problem:
            raise ZapError(f"{name} is not written in UTF-8: {problem.reason}") from problem
        except ZapError as problem:
            raise ZapError(f"{name}: {problem}") from problem


# --------------------------------------------------------------------------------------------------------------- watch
def add_watch(parser: argparse.ArgumentParser) -> None:
    _add_where(parser)
    parser.add_argument("--channel", metavar="NAME", help="only this one")
    parser.add_argument("--once", action="store_true", help="what is the case now, and no more")
    parser.add_argument("--count", type=read_whole, metavar="N", help="stop after so many looks")
    parser.set_defaults(run=_watch)


def _watch(arguments: argparse.Namespace) -> int:
    looks = 1 if arguments.once else arguments.count
    if looks != 0:
        loop.run(_follow(url_of(arguments.where), arguments.channel, looks))
    return OK


async def _follow(url: str, channel: str | None, looks: int | None) -> None:
    async with client.connect(url) as bus:
        shown = _top_pages(bus) if channel is None else _channel_lines(bus, channel)
        screen = InPlace()
        async with aclosing(shown) as pages:
            seen = 0
            async for page in pages:
                screen.show(page)
                seen += 1
                if seen == looks:
                    return


async def _top_pages(bus: client.Bus) -> AsyncGenerator[list[str], None]:
    before = None
    async with aclosing(watching.follow_top(bus)) as boards:
        async for board in boards:
            width = shutil.get_terminal_size().columns
            yield watching.page(board, before, width) if is_terminal() else [watching.line(board)]
            before = board


async def _channel_lines(bus: client.Bus, channel: str) -> AsyncGenerator[list[str], None]:
    async with aclosing(watching.follow_channel(bus, channel)) as moments:
        async for moment in moments:
            at = f" at position {moment.position:,}" if moment.position else ""
            yield [f"{moment.channel}: {moment.viewers:,} viewers{at}"]


# ----------------------------------------------------------------------------------------------------------------- ask
def add_ask(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="WHAT", required=True)
    top = verbs.add_parser("top", help="the most watched channels")
    viewers = verbs.add_parser("viewers", help="how many watch a channel")
    counts = verbs.add_parser("counts", help="lines, boxes, malformed lines, digests of the state")
    viewers.add_argument("channel", metavar="CHANNEL")
    for verb in (top, viewers, counts):
        _add_where(verb)
        verb.add_argument("--json", action="store_true", help="as JSON")
    top.add_argument("--n", type=read_whole, default=10, metavar="N", help="how many (default 10)")
    top.set_defaults(run=_ask, ask=_ask_top)
    viewers.set_defaults(run=_ask, ask=_ask_viewers)
    counts.set_defaults(run=_ask, ask=_ask_counts)


def _ask(arguments: argparse.Namespace) -> int:
    answer, text = loop.run(_asked(arguments))
    sys.stdout.write((msgspec.json.encode(answer).decode() if arguments.json else text) + "\n")
    return OK


async def _asked(arguments: argparse.Namespace) -> tuple[Any, str]:
    async with client.connect(url_of(arguments.where)) as bus:
        answer: tuple[Any, str] = await arguments.ask(bus, arguments)
        return answer


async def _ask_top(bus: client.Bus, arguments: argparse.Namespace) -> tuple[Any, str]:
    answer = await ask_top(bus, arguments.n)
    rows = [[str(rank), name, f"{viewers:,}"] for rank, (name, viewers) in enumerate(answer["top"], 1)]
    about = f"{answer['viewers']:,} viewers on {answer['channels']:,} channels at position {answer['position']:,}"
    return answer, f"{table([['rank', 'channel', 'viewers'], *rows])}\n{about}"


async def _ask_viewers(bus: client.Bus, arguments: argparse.Namespace) -> tuple[Any, str]:
    viewers = await ask_viewers(bus, arguments.channel)
    return {"channel": arguments.channel, "viewers": viewers}, f"{viewers:,}"


async def _ask_counts(bus: client.Bus, arguments: argparse.Namespace) -> tuple[Any, str]:
    answer = await ask_counts(bus)
    lines = [
        f"{name:<10} {value:,}" if isinstance(value, int) else f"{name:<10} {value}"
        for name, value in answer.items()
        if name != "sample"
    ]
    lines += [
        f"malformed at position {one['position']:,}: {one['reason']}: {one['line']!r}" for one in answer["sample"]
    ]
    return answer, "\n".join(lines)
