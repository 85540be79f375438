"""What brokers trace while they serve, as a command line says it."""

from __future__ import annotations

import argparse

from holdfast.cli.main import UsageError
from holdfast.runtime.live_trace import TRACE_BYTES_MAX, TRACE_BYTES_MIN, TraceSettings


def add_trace_arguments(parser: argparse.ArgumentParser, metavar: str, help: str, is_folder: bool = False) -> None:
    parser.add_argument("--trace", metavar=metavar, help=help)
    parser.add_argument(
        "--trace-sample",
        type=float,
        metavar="SHARE",
        help="trace this share of the events, the same ones at all brokers (default 1: all)",
    )
    parser.add_argument(
        "--trace-bytes",
        type=int,
        metavar="N",
        help=f"what the trace of a broker may take: then the oldest rows go (default {TRACE_BYTES_MAX:,})",
    )
    parser.set_defaults(trace_is_folder=is_folder)


def trace_settings(arguments: argparse.Namespace, brokers: int) -> TraceSettings | None:
    """What is to be traced, if anything is."""
    if arguments.trace is None:
        if arguments.trace_sample is not None or arguments.trace_bytes is not None:
            raise UsageError("--trace-sample and --trace-bytes are for a trace: say --trace too")
        return None
    share = 1.0 if arguments.trace_sample is None else arguments.trace_sample
    if not 0 < share <= 1:
        raise UsageError(f"--trace-sample is {share}, and has to be above 0 and at most 1")
    size = TRACE_BYTES_MAX if arguments.trace_bytes is None else arguments.trace_bytes
    if size < TRACE_BYTES_MIN:
        raise UsageError(f"--trace-bytes is {size}, and has to be {TRACE_BYTES_MIN:,} or more")
    if brokers > 1 and not arguments.trace_is_folder:
        raise UsageError(f"--trace is one file, and {brokers} brokers are served: say --id, or `holdfast up --trace`")
    return TraceSettings(arguments.trace, arguments.trace_is_folder, share, size)
