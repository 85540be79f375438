"""`holdfast trace`: the story of an event, the checks of a run, a summary, how reliable it was. Each is one call below
`holdfast.trace`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.cli.main import BAD_INPUT, CHECK_FAILED, OK, UsageError
from holdfast.cli.trace_file import open_traces
from holdfast.sim.swarm import checkers_of
from holdfast.trace.checkers import (
    PROMISED_BY_ALL,
    VIOLATIONS_KEPT,
    Checker,
    check_trace,
    make_checker,
    unchecked,
)
from holdfast.trace.checkers.registry import Known
from holdfast.trace.errors import SampledTrace, UnknownChecker
from holdfast.trace.reliability import Reliability, measure_reliability, told, total
from holdfast.trace.schema import Header
from holdfast.trace.story import story
from holdfast.trace.summary import summary

SHOWN_DEFAULT = 5
CANT_CHECK = BAD_INPUT  # nothing of what was asked for can be checked on such a trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The questions to a trace."""
    questions = parser.add_subparsers(metavar="QUESTION", required=True)

    telling = questions.add_parser(
        "story", help="what happened to one event", description="What happened to one event."
    )
    telling.add_argument("event", metavar="EVENT", nargs="?", help="its id, for instance p1/1/17")
    _add_file(telling)
    telling.set_defaults(run=_story)

    checking = questions.add_parser(
        "check",
        help="whether the run kept its promises",
        description="Whether the run kept its promises. Exits with 1 if it did not.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="checkers:\n" + "\n".join(_described()),
    )
    _add_file(checking)
    checking.add_argument(
        "--checkers",
        metavar="A,B",
        help="which promises, or 'all' (default: those that the header names, or else what every scheme promises: "
        f"{', '.join(PROMISED_BY_ALL)})",
    )
    checking.add_argument(
        "--show",
        type=_count,
        default=SHOWN_DEFAULT,
        metavar="N",
        help=f"how many violations to show of each checker (default {SHOWN_DEFAULT})",
    )
    checking.set_defaults(run=_check)

    counting = questions.add_parser(
        "summary", help="rows by kind, deliveries, latencies", description="Rows by kind, deliveries, latencies."
    )
    _add_file(counting)
    counting.set_defaults(run=_summary)

    measuring = questions.add_parser(
        "reliability",
        help="the share of events that came on time",
        description="For each subscription, and for all: of the events that it wanted, those that came on time.",
    )
    _add_file(measuring)
    measuring.add_argument("--json", action="store_true", help="as one JSON object")
    measuring.set_defaults(run=_reliability)


def _add_file(parser: argparse.ArgumentParser) -> None:
    text = (
        "the trace; may be compressed by gzip or xz, and '-' is standard input; several are those of a site's brokers"
    )
    parser.add_argument("--trace", metavar="FILE", nargs="+", required=True, help=text)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a number is needed here, not {text!r}")
    return int(text)


def _described() -> list[str]:
    known = {name: entry for kind in SCHEMES.kinds for name, entry in checkers_of(kind).items()}
    names = {f"{name}:{entry.argument}" if entry.argument else name: entry.promise for name, entry in known.items()}
    return [f"  {name:22}  {promise}" for name, promise in names.items()]


def _story(arguments: argparse.Namespace) -> int:
    if arguments.event is None and len(arguments.trace) > 1:
        arguments.event = arguments.trace.pop()  # behind the files, which may be several, it counts as one of them
    if arguments.event is None:
        raise UsageError("say which event: its id, for instance p1/1/17")
    with open_traces(arguments.trace) as (header, rows):
        _write(story(header, rows, arguments.event, _moment(header)))
    return OK


def _summary(arguments: argparse.Namespace) -> int:
    with open_traces(arguments.trace) as (header, rows):
        _write(summary(header, rows, _moment(header)))
    return OK


def _reliability(arguments: argparse.Namespace) -> int:
    with open_traces(arguments.trace) as (header, rows):
        if header.is_live:
            raise SampledTrace(f"the traces of {header.run} are those of brokers, which do not say what clients got")
        if header.sampled:
            raise SampledTrace(f"the trace of {header.run} leaves rows out (it is sampled): shares of it say nothing")
        measured = measure_reliability(rows)
    if arguments.json:
        document = {"run": header.run, "total": _shown(total(measured)), "subscriptions": [_shown(m) for m in measured]}
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    else:
        _write(told(measured))
    return OK


def _shown(one: Reliability) -> dict[str, Any]:
    fields = {name: value for name, value in msgspec.structs.asdict(one).items() if value != ""}
    return {**fields, "ratio": one.ratio}


def _check(arguments: argparse.Namespace) -> int:
    with open_traces(arguments.trace) as (header, rows):
        wanted = {checker.name: checker for checker in _made(arguments.checkers, header)}
        without = {name: why for name in wanted if (why := unchecked(header, name))}
        checkers = [checker for name, checker in wanted.items() if name not in without]
        _write([f"not checked  {name}: {why}" for name, why in without.items()])
        if not checkers:
            return CANT_CHECK
        check_trace(header, rows, checkers)
    for checker in checkers:
        _write(_verdict(checker, arguments.show))
    return CHECK_FAILED if any(checker.violations for checker in checkers) else OK


def _made(asked: str | None, header: Header) -> list[Checker]:
    known = checkers_of(header.system)
    try:
        return [make_checker(name, known) for name in _names(asked, header, known)]
    except UnknownChecker as error:
        if header.system in SCHEMES:
            raise
        why = f"the trace of {header.run} is of the scheme {header.system!r}, which is not known here; {error}"
        raise UnknownChecker(error.checker, why) from error


def _names(asked: str | None, header: Header, known: Mapping[str, Known]) -> list[str]:
    if asked is None:
        return header.promises or list(PROMISED_BY_ALL)
    if asked == "all":
        return [name for name, entry in known.items() if not entry.argument]
    return asked.split(",")


def _verdict(checker: Checker, shown: int) -> list[str]:
    count = len(checker.violations)
    if not count:
        return [f"ok      {checker.name}"]
    at_least = "at least " if count == VIOLATIONS_KEPT else ""
    lines = [f"FAILED  {checker.name}: {at_least}{count} violation{'s' if count > 1 else ''}"]
    lines += [f"        at {violation.t / 1e6:.3f} ms: {violation.message}" for violation in checker.violations[:shown]]
    if count > shown:
        lines.append(f"        and {count - shown} more; --show {count} shows all")
    return lines


def _moment(header: Header) -> Callable[[int], str] | None:
    """Brokers that serve trace by the wall clock."""
    return _utc if header.is_live else None


def _utc(t: int) -> str:
    return f"{datetime.fromtimestamp(t // 10**9, UTC):%Y-%m-%d %H:%M:%S}.{t % 10**9 // 10**6:03} UTC"


def _write(lines: Sequence[str]) -> None:
    """Prints lines. What a trace holds is anybody's text: signs that would command the terminal are not passed on."""
    for line in lines:
        shown = line if line.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in line)
        sys.stdout.write(f"{shown}\n")
