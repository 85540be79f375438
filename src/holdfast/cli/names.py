"""`holdfast names`: which named subscriptions keep events, and for whom; and giving one up.

Each broker of a network has its own names. A group has them together: its leader is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import sys
from typing import Any, NamedTuple

import msgspec

from holdfast.cli.group_leader import find_leader, is_led, nobody
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.terminal import duration, table
from holdfast.cli.where import DEFAULT_URL, addresses_at
from holdfast.client.operator import BrokerDesk
from holdfast.client.url import SCHEME
from holdfast.protocols.desks.log_desk import NO_NAME, is_name
from holdfast.protocols.operating.messages import NameReport, NamesListed
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast names list                         of the broker at the default address
  holdfast names list site.toml               of all brokers of a network, or of a group
  holdfast names list site.toml --broker b2   of one of them
  holdfast names forget risk site.toml        nothing is kept for it any more
  holdfast names forget risk --force          also if a client reads it, which is told

Events that a named subscription has not acknowledged are kept for it, whether someone reads it or not.
exit code 1 if a broker does not answer, or if what was asked for does not come about
"""
HEADINGS = ["name", "owner", "acknowledged", "behind", "bytes", "lost", "unused for", "age", "filter"]
CLOSE_MAX = 3  # names that look alike


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    shown = verbs.add_parser("list", help="print the names: who has them, and how far they are behind")
    forgotten = verbs.add_parser("forget", help="give a name up: nothing is kept for it any more")
    forgotten.add_argument("name", metavar="NAME")
    forgotten.add_argument("--force", action="store_true", help="also if a client has it: it gets Superseded")
    shown.add_argument("--json", action="store_true", help="as one JSON object")
    for verb, carry_out in ((shown, _list), (forgotten, _forget)):
        verb.add_argument("where", metavar="SITE|URL", nargs="?", help=f"default {DEFAULT_URL}")
        verb.add_argument("--url", help="the same as URL")
        verb.add_argument("--site", metavar="SITE", help="the same as SITE")
        verb.add_argument("--broker", metavar="ID", help="of a site file: this one only (default: all)")
        verb.set_defaults(run=_run, carry_out=carry_out)


class _Names(NamedTuple):
    """What one broker said, with the link to it."""

    desk: BrokerDesk
    listed: NamesListed


def _run(arguments: argparse.Namespace) -> int:
    if "name" in arguments and not is_name(arguments.name):
        raise UsageError(f"{NO_NAME}, not {len(arguments.name.encode(errors='replace'))}")
    places = [place for place in (arguments.where, arguments.url, arguments.site) if place is not None]
    if len(places) > 1:
        raise UsageError(f"say where once, not {len(places)} times: {', '.join(places)}")
    if arguments.url is not None and not arguments.url.startswith(SCHEME):
        raise UsageError(f"--url is {arguments.url!r}; a URL begins with {SCHEME}")
    brokers = addresses_at(places[0] if places else DEFAULT_URL, arguments.broker)
    return loop.run(_with_desks([address for _, address in brokers], arguments))


async def _with_desks(addresses: list[str], arguments: argparse.Namespace) -> int:
    desks = [BrokerDesk(address) for address in addresses]  # to which that of a leader is added, if it is another one
    try:
        answers = await asyncio.gather(*(desk.inspect(0) for desk in desks))
        asked, code = desks, OK
        if any(not isinstance(answer, Unreachable) and is_led(answer) for answer in answers):
            leader, problems = await find_leader(desks)
            if leader is None:
                return nobody(problems)
            asked = [leader.desk]
        found = []
        for desk, listed in zip(asked, await asyncio.gather(*(desk.names() for desk in asked)), strict=True):
            if isinstance(listed, Unreachable):
                print(f"{desk.address}: {listed.reason}", file=sys.stderr)
                code = CHECK_FAILED
            else:
                found.append(_Names(desk, listed))
        done: int = await arguments.carry_out(found, arguments)
        return max(done, code)
    finally:
        for desk in desks:
            await desk.close()


# ------------------------------------------------------------------------------------------------------------- list
async def _list(found: list[_Names], arguments: argparse.Namespace) -> int:
    """Those that hold the oldest events come first."""
    keeping = [listed for _, listed in found if not listed.problem]
    for listed in (listed for _, listed in found if listed.problem):
        print(f"{listed.broker} keeps no log, and so no names", file=sys.stderr)
    names = [(listed.broker, report) for listed in keeping for report in listed.names]
    names.sort(key=lambda each: (-each[1].behind, each[0], each[1].name))
    if arguments.json:
        rows = [_row(broker, report) for broker, report in names]
        sys.stdout.write(msgspec.json.encode({"names": rows}).decode() + "\n")
    elif names:
        several = len(keeping) > 1
        lines = [["broker", *HEADINGS] if several else HEADINGS]
        lines += [
            [broker, *name_cells(_row(broker, r))] if several else name_cells(_row(broker, r)) for broker, r in names
        ]
        print(table(lines))
    elif keeping:
        print("no named subscriptions")
    return OK


def _row(broker: str, report: NameReport) -> dict[str, Any]:
    return {"broker": broker, **name_row(report)}


def name_row(report: NameReport) -> dict[str, Any]:
    """One name, as `--json` shows it; times are null where they are not known."""
    return {
        "name": report.name,
        "owner": report.owner,
        "connected": report.connected,
        "acknowledged": report.acknowledged,
        "behind_events": report.behind,
        "behind_bytes": report.bytes,
        "lost_events": report.lost,
        "unused_s": None if report.unused < 0 else report.unused / 10**9,
        "age_s": None if report.age < 0 else report.age / 10**9,
        "filter": report.filter,
    }


def name_cells(row: dict[str, Any]) -> list[str]:
    owner = "-" if not row["owner"] else row["owner"] if row["connected"] else f"{row['owner']} (away)"
    numbers = [f"{row[name]:,}" for name in ("acknowledged", "behind_events", "behind_bytes", "lost_events")]
    times = ["-" if row[name] is None else duration(int(row[name] * 10**9)) for name in ("unused_s", "age_s")]
    return [_printable(row["name"]), owner, *numbers, *times, _printable(row["filter"])]


def _printable(text: str) -> str:
    """Names and filters are what users chose: a line break would tear a table apart."""
    return text if text.isprintable() else repr(text)[1:-1]


# ----------------------------------------------------------------------------------------------------------- forget
async def _forget(found: list[_Names], arguments: argparse.Namespace) -> int:
    name, force = arguments.name, arguments.force
    having = [names for names in found if any(report.name == name for report in names.listed.names)]
    if not having:
        return _unknown(found, name)
    if len(having) > 1:
        brokers = [names.listed.broker for names in having]
        print(f"{', '.join(brokers)} have a named subscription {name!r} each: say --broker", file=sys.stderr)
        return CHECK_FAILED
    desk, broker = having[0].desk, having[0].listed.broker
    removed = await desk.forget_name(name, force)
    if isinstance(removed, Unreachable):
        print(f"{broker}: {removed.reason}; whether {name!r} is forgotten shows `holdfast names list`", file=sys.stderr)
    elif removed.problem:
        print(f"{broker}: {removed.problem}", file=sys.stderr)
    elif removed.removed:
        told = f"; {removed.owner}, who read it, is told" if removed.owner else ""
        print(f"forgotten: {name!r} at {broker}, {removed.behind:,} events behind{told}")
        return OK
    elif removed.owner:
        reads = f"{removed.owner} reads {name!r} at {broker} right now" if _is_read(having[0], name) else (
            f"{removed.owner} has {name!r} at {broker}; it is away, and may come back"
        )  # fmt: skip
        print(f"{reads}: --force takes it away, and {removed.owner} gets Superseded", file=sys.stderr)
    else:
        return _unknown(found, name)
    return CHECK_FAILED


def _is_read(names: _Names, name: str) -> bool:
    return any(report.connected for report in names.listed.names if report.name == name)


def _unknown(found: list[_Names], name: str) -> int:
    for _, listed in found:
        if listed.problem:
            print(f"{listed.broker}: {listed.problem}", file=sys.stderr)
    keeping = [listed for _, listed in found if not listed.problem]
    if keeping:
        brokers = ", ".join(listed.broker for listed in keeping)
        known = [report.name for listed in keeping for report in listed.names]
        close = " or ".join(map(repr, difflib.get_close_matches(name, known, CLOSE_MAX)))
        there = ", ".join(map(repr, known[:CLOSE_MAX])) + (" …" if len(known) > CLOSE_MAX else "")
        has = "it has" if len(keeping) == 1 else "they have"
        hint = f"; did you mean {close}?" if close else f": {has} {there}" if known else f": {has} none"
        print(f"there is no named subscription {name!r} at {brokers}{hint}", file=sys.stderr)
    return CHECK_FAILED
