"""`holdfast publish`: events from JSON lines, or one event from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator

import msgspec

from holdfast import client
from holdfast.cli.lines import EventLine, as_builtins, read_line
from holdfast.cli.main import OK, UsageError
from holdfast.cli.standard_input import lines_from
from holdfast.cli.where import DEFAULT_URL, add_where_arguments, url_from
from holdfast.errors import EventError
from holdfast.model.values import Value
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast publish --topic stock --attributes '{"symbol": "IBM", "price": 101.5}'
  holdfast publish < events.jsonl
  holdfast publish --site site.toml --broker b3 < events.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_where_arguments(parser)
    parser.add_argument("--attributes", metavar="JSON", help="publish one event with these attributes")
    parser.add_argument("--topic", default="", help="the topic of that event")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    url = url_from(arguments) or DEFAULT_URL
    if arguments.attributes is None and arguments.topic:
        raise UsageError("--topic is of one event: say --attributes too; lines of JSON have topics of their own")
    one = None if arguments.attributes is None else _one_event(arguments.topic, arguments.attributes)
    count = loop.run(_publish(url, _events(one)))
    print(f"{count:,} published", file=sys.stderr)
    return OK


def _one_event(topic: str, attributes: str) -> EventLine:
    try:
        return EventLine(topic=topic, attributes=msgspec.json.decode(attributes, type=dict[str, Value]))
    except msgspec.DecodeError as error:
        raise EventError(f"--attributes: {error}") from error


async def _events(one: EventLine | None) -> AsyncIterator[EventLine]:
    if one is not None:
        yield one
        return
    number = 0
    async for line in lines_from(sys.stdin.fileno()):
        number += 1
        if line.strip():
            yield read_line(line, number)


async def _publish(url: str, events: AsyncIterator[EventLine]) -> int:
    count = 0
    async with client.connect(url) as bus:
        async for event in events:
            await bus.post(event.attributes, **as_builtins(event))
            count += 1
        await bus.flush()
    return count
