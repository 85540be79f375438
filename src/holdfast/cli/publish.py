"""`holdfast publish`: events from JSON lines, or one event from the command line.

A line that is no event ends it: those before it are published, those behind it are not, and the message says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

from holdfast.cli.lines import EventLine, as_builtins, read_event, read_line
from holdfast.cli.main import OK, UsageError
from holdfast.cli.standard_input import lines_from
from holdfast.cli.waiting import add_timeout_argument, bus_at
from holdfast.cli.where import DEFAULT_URL, add_where_arguments, url_from
from holdfast.client import Bus
from holdfast.errors import EventError, NotConnected
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast publish --topic stock --attributes '{"symbol": "IBM", "price": 101.5}'
  holdfast publish < events.jsonl
  holdfast publish --site site.toml --broker b3 < events.jsonl
  holdfast read --url holdfast://10.0.0.1:7411 | holdfast publish

a line of events.jsonl:
  {"topic": "stock", "attributes": {"price": 101.5}, "payload": "aGVsbG8=", "lifetime_ms": 60000}
"""


@dataclass
class Posted:
    count: int = 0
    acknowledged: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_where_arguments(parser)
    parser.add_argument("--attributes", metavar="JSON", help="publish one event with these attributes")
    parser.add_argument("--topic", default="", help="the topic of that event")
    add_timeout_argument(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    url = url_from(arguments) or DEFAULT_URL
    if arguments.attributes is None and arguments.topic:
        raise UsageError("--topic is of one event: say --attributes too; lines of JSON have topics of their own")
    one = None if arguments.attributes is None else read_event(arguments.topic, arguments.attributes)
    if one is None and sys.stdin.isatty():
        print("reading events from the terminal, a JSON object a line; Ctrl-D ends", file=sys.stderr)
    posted = Posted()
    try:
        loop.run(_publish(url, _events(one), arguments.timeout, posted))
    except KeyboardInterrupt:
        print(f"interrupted: {_so_far(posted)}", file=sys.stderr)
        raise
    print(f"{posted.count:,} published", file=sys.stderr)
    return OK


async def _events(one: EventLine | None) -> AsyncIterator[EventLine]:
    if one is not None:
        yield one
        return
    number = 0
    async for line in lines_from(sys.stdin.fileno()):
        number += 1
        if line.strip():
            yield read_line(line, number)


async def _publish(url: str, events: AsyncIterator[EventLine], timeout_s: float | None, posted: Posted) -> None:
    try:
        async with bus_at(url, timeout_s) as bus:
            try:
                await _post(bus, events, posted)
                await bus.flush()
            finally:
                posted.acknowledged = posted.count - bus.unanswered
    except NotConnected as error:
        if not posted.count:
            raise
        raise NotConnected(f"{error}; {_so_far(posted)}") from error


async def _post(bus: Bus, events: AsyncIterator[EventLine], posted: Posted) -> None:
    try:
        async for event in events:
            await bus.post(event.attributes, **as_builtins(event))
            posted.count += 1
    except EventError as error:
        await bus.flush()
        raise EventError(f"{error}; {_before(posted.count)}", error.attribute) from error


def _before(count: int) -> str:
    match count:
        case 0:
            return "nothing was published"
        case 1:
            return "the event before it was published"
        case _:
            return f"the {count:,} events before it were published"


def _so_far(posted: Posted) -> str:
    return f"{posted.acknowledged:,} of {posted.count:,} events were acknowledged"
