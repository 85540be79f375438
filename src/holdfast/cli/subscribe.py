"""`holdfast subscribe`: events as JSON lines, as they come."""

from __future__ import annotations

import argparse
import sys

from holdfast import client
from holdfast.cli.lines import read_place, write_line
from holdfast.cli.main import OK, UsageError
from holdfast.cli.waiting import add_timeout_argument, bus_at
from holdfast.cli.where import DEFAULT_URL, add_where_arguments, url_from
from holdfast.cli.zap_options import read_whole
from holdfast.model import Filter
from holdfast.model.values import is_unicode_text
from holdfast.protocols.desks.log_desk import NAME_BYTES_MAX
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast subscribe "topic = 'stock' AND price > 100"
  holdfast subscribe "price > 100" --name risk          carries on where the last one under this name was
  holdfast subscribe --name all --from earliest --count 10
  holdfast subscribe --site site.toml --broker b1       at this broker of a site
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("filter", metavar="FILTER", nargs="?", default="", help="which events (default: all)")
    add_where_arguments(parser)
    parser.add_argument("--count", type=read_whole, metavar="N", help="stop after so many events")
    parser.add_argument(
        "--overflow", choices=("disconnect", "drop-oldest", "block"), default="disconnect", help="if we are too slow"
    )
    parser.add_argument("--name", type=_name, help="a named subscription: the broker keeps what was not printed")
    parser.add_argument(
        "--from", dest="from_", type=read_place, metavar="PLACE",
        help="with --name: new, earliest, a position or a time; moves a name that exists",
    )  # fmt: skip
    add_timeout_argument(parser)
    parser.set_defaults(run=_run)


def _name(text: str) -> str:
    if not is_unicode_text(text) or not 0 < len(text.encode()) <= NAME_BYTES_MAX:
        raise argparse.ArgumentTypeError(f"a subscription's name has 1 to {NAME_BYTES_MAX} bytes of UTF-8")
    return text


def _run(arguments: argparse.Namespace) -> int:
    if arguments.from_ is not None and arguments.name is None:
        raise UsageError("--from is for named subscriptions: say --name, or use holdfast read")
    Filter(arguments.filter)  # what is none is told before a broker is looked for
    loop.run(_subscribe(url_from(arguments) or DEFAULT_URL, arguments))
    return OK


async def _subscribe(url: str, arguments: argparse.Namespace) -> None:
    def on_state(state: client.State, detail: str) -> None:
        print(f"{state.value}: {detail}", file=sys.stderr, flush=True)

    async with bus_at(url, arguments.timeout, on_state) as bus:
        made: client.Subscription | client.NamedSubscription
        if arguments.name is None:
            made = bus.subscribe(arguments.filter, overflow=arguments.overflow)
        else:
            made = bus.subscribe(arguments.filter, name=arguments.name, from_=arguments.from_, auto_ack=False)
        async with made as events:
            print("subscribed", file=sys.stderr, flush=True)
            await _print(events, arguments.count)


async def _print(events: client.Subscription | client.NamedSubscription, count: int | None) -> None:
    if count == 0:
        return
    async for batch in events.batches():
        shown = batch if count is None else batch[:count]
        sys.stdout.buffer.write(b"".join(map(write_line, shown)))
        sys.stdout.buffer.flush()
        if isinstance(events, client.NamedSubscription):
            await events.ack(shown[-1])  # what was printed, and nothing else
        if count is not None:
            count -= len(shown)
            if count == 0:
                return
