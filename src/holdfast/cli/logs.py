"""How the commands log: as lines for people, or as JSON, one object a line."""

from __future__ import annotations

import argparse
import logging
import sys
from datetime import UTC, datetime

import msgspec

LEVELS = {"quiet": logging.CRITICAL, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}


class JsonFormatter(logging.Formatter):
    """{"time", "level", "logger", "message"}, and "exception" where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(row).decode()


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="the form of the log, on standard error"
    )
    parser.add_argument("--log-level", choices=tuple(LEVELS), default="info", help="how much to log (default info)")


def start_logging(arguments: argparse.Namespace) -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if arguments.log == "json" else text)
    logging.basicConfig(level=LEVELS[arguments.log_level], handlers=[handler])
