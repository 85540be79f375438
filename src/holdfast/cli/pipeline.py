"""`holdfast pipeline`: who watched what, told by Spark from a log. Each verb is a function here."""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.main import OK, UsageError

EXAMPLES = """\
examples:
  holdfast pipeline report --tables var/tables --output report.html      the tables as one page, for any browser
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    _add_report(verbs.add_parser("report", help="write the tables as one HTML page that needs no network"))


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
