"""`holdfast subscribe`: events as JSON lines, as they come."""

from __future__ import annotations

import argparse
import sys

from holdfast import client
from holdfast.cli.lines import write_line
from holdfast.cli.main import OK
from holdfast.runtime import loop

DEFAULT_URL = "holdfast://127.0.0.1:7411"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", metavar="FILTER", nargs="?", default="", help="which events (default: all)")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"where (default {DEFAULT_URL})")
    parser.add_argument("--count", type=int, metavar="N", help="stop after so many events")
    parser.add_argument(
        "--overflow", choices=("disconnect", "drop-oldest", "block"), default="disconnect", help="if we are too slow"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    loop.run(_subscribe(arguments.url, arguments.filter, arguments.overflow, arguments.count))
    return OK


async def _subscribe(url: str, text: str, overflow: str, count: int | None) -> None:
    def on_state(state: client.State, detail: str) -> None:
        print(f"{state.value}: {detail}", file=sys.stderr, flush=True)

    left = count
    async with client.connect(url, on_state=on_state) as bus, bus.subscribe(text, overflow=overflow) as events:
        print("subscribed", file=sys.stderr, flush=True)
        if left == 0:
            return
        async for batch in events.batches():
            shown = batch if left is None else batch[:left]
            sys.stdout.buffer.write(b"".join(map(write_line, shown)))
            sys.stdout.buffer.flush()
            if left is not None:
                left -= len(shown)
                if left == 0:
                    return
