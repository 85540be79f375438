"""`holdfast log`: what a log's folder holds, whether it is whole, giving up what is damaged, taking events along."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from holdfast.cli.lines import write_event
from holdfast.cli.main import BAD_INPUT, CHECK_FAILED, OK
from holdfast.errors import NotALog, RecordsLost
from holdfast.kernel.storage import EVENTS
from holdfast.model.event import decode_all
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.schemes.catalogue import RECORDS
from holdfast.storage import open_log
from holdfast.storage.files import SystemFiles
from holdfast.storage.inspection import LogReport, inspect
from holdfast.storage.repair import RepairReport, repair
from holdfast.storage.settings import MEBIBYTE, LogSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be done with a log."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    looking = actions.add_parser(
        "inspect",
        help="what is in it",
        description="What is in a log, and what an opening would find. Changes nothing; a broker may have it open.",
    )
    looking.set_defaults(run=_inspect)

    checking = actions.add_parser(
        "verify",
        help="whether all of it is whole",
        description="Reads all of a log and lists every damaged range. Exits with 1 if there is one. Changes nothing.",
    )
    checking.set_defaults(run=_verify)

    repairing = actions.add_parser(
        "repair",
        help="give up what is damaged",
        description="Makes a damaged log usable again with what is provably good in it, and says which numbers are "
        "lost. Damaged files are set aside, not deleted. No broker may have the log open.",
    )
    repairing.add_argument("--yes", action="store_true", help="do not ask")
    repairing.set_defaults(run=_repair)

    exporting = actions.add_parser(
        "export",
        help="its events as JSON lines",
        description="Writes the events that a log holds as the lines that `holdfast publish` reads, in the order of "
        "their positions, and says which positions are lost. No broker may have the log open.",
    )
    exporting.set_defaults(run=_export)

    for action in (looking, checking, repairing, exporting):
        action.add_argument("folder", metavar="FOLDER", help="the folder of the log")
    for action in (looking, checking, repairing):
        action.add_argument("--json", action="store_true", help="print JSON")


def _inspect(arguments: argparse.Namespace) -> int:
    _print(inspect(SystemFiles(), arguments.folder, every=False), arguments.json)
    return OK


def _verify(arguments: argparse.Namespace) -> int:
    report = inspect(SystemFiles(), arguments.folder, every=True)
    _print(report, arguments.json)
    return CHECK_FAILED if report.damages else OK


def _repair(arguments: argparse.Namespace) -> int:
    files = SystemFiles()
    report = inspect(files, arguments.folder, every=True)
    if not report.damages:
        _say(asdict(RepairReport()) if arguments.json else "nothing is damaged; nothing was done")
        return OK
    if not arguments.yes:
        _print(report, as_json=False, to_errors=True)
        if not sys.stdin.isatty():
            print("holdfast: a repair gives up what is damaged; --yes says that this is wanted", file=sys.stderr)
            return BAD_INPUT
        print(
            "Give up what is damaged? Restoring a copy would lose less. (yes/no) ", end="", file=sys.stderr, flush=True
        )
        if sys.stdin.readline().strip() != "yes":
            return BAD_INPUT
    done = repair(files, arguments.folder, LogSettings(segment_bytes=_largest(report)))
    if arguments.json:
        _say(asdict(done))
        return OK
    for name, ranges in done.lost.items():
        for first, end in ranges:
            _say(f"lost: stream {name!r}, numbers {first} to {end - 1}")
    for name in done.unknown_end:
        _say(f"lost: stream {name!r}, unknown how many at its end; numbers were left out, so that none is used twice")
    if not done.lost:
        _say("no record was lost")
    _say(f"set aside: {', '.join(done.set_aside)}")
    _say(f"written anew: {', '.join(done.rewritten)}")
    return OK


def _export(arguments: argparse.Namespace) -> int:
    if not inspect(SystemFiles(), arguments.folder, every=False).segments:  # a typo must not make a new log
        raise NotALog(arguments.folder, "there is no log to export")
    log = open_log(arguments.folder)
    written, start = 0, log.first(EVENTS)
    try:
        while start < log.end(EVENTS):
            try:
                for records in log.scan(EVENTS, start):
                    for number, count, _, kind, body in records:
                        written += _write_events(kind, body)
                        start = number + count
            except RecordsLost as lost:
                print(f"holdfast: the positions {lost.first} to {lost.next - 1} are lost", file=sys.stderr)
                start = lost.next
    finally:
        log.close()
    sys.stdout.buffer.flush()
    print(f"holdfast: {written:,} events were written", file=sys.stderr)
    return OK


def _write_events(kind: int, body: bytes) -> int:
    record = RECORDS.decode(kind, body)
    if not isinstance(record, LoggedEvents):
        return 0
    events = decode_all(record.events)
    sys.stdout.buffer.write(b"".join(map(write_event, events)))
    return len(events)


def _largest(report: LogReport) -> int:
    return max([segment.bytes for segment in report.segments], default=64 * MEBIBYTE)


def _print(report: LogReport, as_json: bool, to_errors: bool = False) -> None:
    if as_json:
        _say(report.as_json())
        return
    stream = sys.stderr if to_errors else sys.stdout
    for line in _lines(report):
        shown = line if line.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in line)
        print(shown, file=stream)


def _lines(report: LogReport) -> list[str]:
    lines = [f"log {report.log_id}, format {report.version}, checksums in {report.checksum}: {report.verdict}"]
    if report.torn:
        start, end = report.torn
        lines.append(f"  torn tail, or a commit under way: bytes {start} to {end} of {report.segments[-1].file}")
    for damage in report.damages:
        where = f", bytes {damage.start} to {damage.end}" if damage.end else ""
        lines.append(f"  DAMAGED {damage.file}{where}: {damage.problem}")
        for name, (first, last) in damage.streams.items():
            lines.append(f"    stream {name!r}: numbers {first} " + (f"to {last - 1}" if last is not None else "on"))
    lines += [f"  repaired: {repair}" for repair in report.repairs]
    lines += [f"  {segment.file}: {segment.used:,} of {segment.bytes:,} bytes used" for segment in report.segments]
    for stream in report.streams:
        since = f", from {_time(stream.oldest)} on" if stream.oldest is not None else ""
        lines.append(
            f"  stream {stream.name}: first {stream.first}, next {stream.next}; "
            f"{stream.records:,} records in {stream.bytes:,} bytes on disk{since}"
        )
    return lines


def _time(nanoseconds: int | None) -> str:
    return "?" if nanoseconds is None else datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="seconds")


def _say(what: object) -> None:
    print(what if isinstance(what, str) else json.dumps(what, indent=2))
