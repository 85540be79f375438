"""`holdfast`: finds the subcommand, runs it, and turns what it raised into a message and an exit code.

A subcommand is a module of this folder with `add_arguments(parser)`, which sets `run` on the parser's defaults: a
function from the arguments to an exit code. Only the module of the subcommand that was asked for is imported, so that
looking at a trace does not wait for what a simulation needs. To add one, write its module and its line in SUBCOMMANDS.

Exit codes: 0 all is well; 1 a check failed; 2 wrong usage or bad input, with a message on standard error; 3 a
broker stopped by itself; 4 a broker's storage failed, or can't be used; 130 interrupted from the keyboard; 141 whoever
read our output has closed it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from holdfast import HoldfastError, __version__

OK = 0
CHECK_FAILED = 1
BAD_INPUT = 2
BROKER_FAILED = 3
STORAGE_FAILED = 4
INTERRUPTED = 130
OUTPUT_CLOSED = 141

SUBCOMMANDS = {
    "init": "write a commented site file to start from",
    "up": "serve all brokers of a site from this process",
    "broker": "serve one broker of a site, or all of them",
    "publish": "publish events, from JSON lines or from the command line",
    "subscribe": "print events as JSON lines, as they come",
    "read": "print events from a broker's log, by position",
    "status": "show the live network: brokers, links, roles, rates, backlog",
    "names": "which named subscriptions keep events, and for whom; forget one",
    "group": "who leads a group of replicas; let another one lead",
    "network": "who belongs to a network; add and remove brokers and links while events flow",
    "standin": "who stands in for a broker that failed; let a spare take its place, and give it back",
    "bench": "measure a broker: events a second, and latency",
    "zap": "ZapViewers: a synthetic log of set-top boxes; publish it, watch who watches what, ask",
    "pipeline": "who watched what, told by Spark from a log, as tables and as a page",
    "predict": "how likely each subscriber gets an event on time, from how brokers and links fail",
    "sim": "break a site under the simulator, by seed; replay a seed",
    "log": "look into a broker's log: inspect, verify, repair",
    "trace": "look into the trace of a run: the story of an event, checks, a summary",
    "version": "show what is installed",
}


class UsageError(HoldfastError):
    """Options that do not go together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `holdfast` with the given arguments, or those of the process. Gives the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_what_is_closed()
    _never_fail_on_a_character()
    try:
        parser = make_parser(given)
        parsed, rest = parser.parse_known_args(given)
        if rest:
            hint = ""
            if hasattr(parsed, "filter"):
                hint = "; a filter is one argument: put quotes around it"
            elif given[0] == "publish":
                hint = "; events are read from standard input, a line of JSON each: holdfast publish < FILE"
            parser.error(f"{given[0]}: unrecognized arguments: {' '.join(rest)}{hint}")
        code: int = parsed.run(parsed)
        sys.stdout.flush()
        return code
    except HoldfastError as problem:
        return _fail(problem)
    except BrokenPipeError:
        # The interpreter flushes standard output once more as it ends, and may complain (Python's docs on SIGPIPE).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUTPUT_CLOSED
    except OSError as problem:
        return _fail(f"{problem.filename}: {problem.strerror}" if problem.filename else problem)
    except KeyboardInterrupt:
        return INTERRUPTED


def make_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Reads command lines. Only the options of the command that is given are there: the others take time to import."""
    parser = argparse.ArgumentParser(
        prog="holdfast",
        description="Content-based publish/subscribe that keeps its promises while brokers and links fail.",
        epilog="exit codes: 0 all is well, 1 a check failed, 2 wrong usage or bad input, 3 a broker stopped by itself, "
        "4 its storage failed",
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    asked = next((argument for argument in given if not argument.startswith("-")), "")
    for name, help in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
        if name == asked:
            import_module(f"holdfast.cli.{name}").add_arguments(subparser)
    return parser


def _fail(problem: object) -> int:
    print(f"holdfast: {problem}", file=sys.stderr)
    return BAD_INPUT


def _open_what_is_closed() -> None:
    """A program that was started without standard input or output (`<&-`) has none to read, and writes to nobody. Or
    else the next file or socket would be taken for it."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, open(descriptor, mode))  # noqa: SIM115 - for as long as we live


def _never_fail_on_a_character() -> None:
    """A terminal that can't show a sign gets its number instead of us a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
