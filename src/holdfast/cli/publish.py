"""`holdfast publish`: events from JSON lines, or one event from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

import msgspec

from holdfast import client
from holdfast.cli.lines import EventLine, as_builtins, read_line
from holdfast.cli.main import OK
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
    if arguments.attributes is not None:
        try:
            attributes = msgspec.json.decode(arguments.attributes, type=dict[str, Value])
        except msgspec.DecodeError as error:
            raise EventError(f"--attributes: {error}") from error
        events: Iterable[EventLine] = [EventLine(topic=arguments.topic, attributes=attributes)]
    else:
        events = (read_line(line, number) for number, line in enumerate(sys.stdin.buffer, 1) if line.strip())
    count = loop.run(_publish(url, events))
    print(f"{count:,} published", file=sys.stderr)
    return OK


async def _publish(url: str, events: Iterable[EventLine]) -> int:
    count = 0
    async with client.connect(url) as bus:
        for event in events:
            await bus.post(event.attributes, **as_builtins(event))
            count += 1
        await bus.flush()
    return count
