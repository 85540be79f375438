"""`holdfast up`: a whole site, served from this process."""

from __future__ import annotations

import argparse

from holdfast.cli import broker
from holdfast.cli.trace_options import add_trace_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    broker.add_serving_arguments(parser)
    help = "write a trace of each broker there, BROKER.jsonl, for `holdfast trace`"
    add_trace_arguments(parser, "FOLDER", help, is_folder=True)
    parser.set_defaults(run=broker.run, id=None)
