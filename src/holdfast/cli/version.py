"""`holdfast version`: what is installed, and what it runs on."""

from __future__ import annotations

import argparse
import importlib.util
import platform

import msgspec

from holdfast import __version__
from holdfast.cli.main import OK
from holdfast.matching.index import ENGINE
from holdfast.model.batch import READ_BY
from holdfast.protocols.client_catalogue import PROTOCOL_VERSIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    facts = {
        "holdfast": __version__,
        "protocol": ", ".join(map(str, PROTOCOL_VERSIONS)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "index": ENGINE,
        "events": READ_BY,
        "loop": "uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
    }
    if arguments.json:
        print(msgspec.json.encode(facts).decode())
    else:
        for name, value in facts.items():
            print(f"{name:10} {value}")
    return OK
