"""`holdfast pipeline`: who watched what, told by Spark from a log. Each verb is a function here."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.where import url_of
from holdfast.cli.zap_options import read_whole

SHOWN = 20  # differences
EVERY_S_MAX = 86_400
EXAMPLES = """\
examples:
  holdfast pipeline run zapviewers zap.toml --tables var/tables          a log into tables, as far as it goes
  holdfast pipeline compare zap.toml --tables var/tables                 do Spark and the brokers count the same?
  holdfast pipeline report --tables var/tables --output report.html      the tables as one page, for any browser
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _add_run(verbs.add_parser("run", help="bring the tables up to the end of a broker's log"))
    _add_compare(verbs.add_parser("compare", help="check Spark's numbers against the brokers'"))
    _add_report(verbs.add_parser("report", help="write the tables as one HTML page that needs no network"))


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pipeline", choices=["zapviewers"], help="which pipeline")
    parser.add_argument("where", metavar="SITE|URL", help="a site file, or where its brokers are")
    parser.add_argument("--tables", metavar="DIR", type=Path, required=True, help="the folder of the tables")
    parser.add_argument(
        "--engine",
        choices=["batch", "streaming", "declared"],
        default="declared",
        help="declared and streaming go on where they were; batch makes all tables anew (default declared)",
    )
    parser.add_argument("--to", type=read_whole, metavar="POSITION", help="the last one to take; for batch alone")
    parser.add_argument(
        "--every", type=_read_seconds, metavar="SECONDS", help="for streaming: go on until interrupted, so often"
    )
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="for Java (default 2g)")
    parser.add_argument("--synthetic", action="store_true", help="say in the report that the log is made up")
    parser.set_defaults(run=_run)


def _read_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= EVERY_S_MAX:
        raise argparse.ArgumentTypeError(f"seconds from 0 to {EVERY_S_MAX:,}, not {text!r}")
    return seconds


def _run(arguments: argparse.Namespace) -> int:
    url = url_of(arguments.where)
    # Here, since Spark is part of an extra and the other subcommands do without it.
    try:
        from holdfast.apps.zapviewers.pipeline.running import run
    except ImportError as problem:
        raise UsageError(f"{problem}: a pipeline needs Spark: pip install holdfast[spark]") from problem

    facts = run(
        url,
        arguments.tables,
        arguments.engine,
        to=arguments.to,
        every_s=arguments.every,
        memory=arguments.memory,
        synthetic=arguments.synthetic,
        tell=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print(
        f"{facts.lines:,} lines of {facts.boxes:,} boxes, up to position {facts.last:,}; {facts.malformed:,} in "
        f"quarantine: {arguments.tables}"
    )
    return OK


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = "Do Spark and the brokers count the same? Exits with 1 if they do not."
    parser.add_argument("where", metavar="SITE|URL", help="a site file, or where its brokers are")
    parser.add_argument("--tables", metavar="DIR", type=Path, required=True, help="the folder of the tables")
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    url = url_of(arguments.where)
    try:
        from holdfast.apps.zapviewers.pipeline.comparing import compare
    except ImportError as problem:
        raise UsageError(f"{problem}: tables are read by pyarrow: pip install holdfast[spark]") from problem

    comparisons = asyncio.run(compare(url, arguments.tables))
    for comparison in comparisons:
        one, other = comparison.one, comparison.other
        counts = ", ".join(f"{count:,} {name}" for name, count in one.counts.items())
        verdict = "FAILED" if comparison.differences else "ok"
        print(
            f"{verdict:6}  position {one.position:,}: {one.who} and {other.who}; {counts}, {len(one.viewers)} channels"
        )
        for what, here, there in comparison.differences[:SHOWN]:
            print(f"        {what}: {one.who} {here:,}, {other.who} {there:,}")
    return CHECK_FAILED if any(comparison.differences for comparison in comparisons) else OK


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", metavar="DIR", type=Path, required=True, help="the folder of the tables")
    parser.add_argument(
        "--output", metavar="FILE", type=Path, default=Path("report.html"), help="the page (default report.html)"
    )
    parser.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    # Here, since pyarrow is part of an extra and the other subcommands do without it.
    try:
        from holdfast.apps.zapviewers.pipeline.report import write_report
    except ImportError as problem:
        raise UsageError(f"{problem}: the report needs pyarrow: pip install holdfast[spark]") from problem

    write_report(arguments.tables, arguments.output)
    print(arguments.output)
    return OK
