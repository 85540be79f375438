"""`holdfast up`: a whole site, served from this process."""

from __future__ import annotations

import argparse

from holdfast.cli import broker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    broker.add_serving_arguments(parser)
    parser.set_defaults(run=broker.run, id=None)
