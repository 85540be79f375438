"""`holdfast status`: the live network: brokers, links, roles, rates, backlog."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Scheme
from holdfast.broker.status import Section, Tone
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.names import HEADINGS as NAME_HEADINGS
from holdfast.cli.names import name_cells, name_row
from holdfast.cli.terminal import CLEAR, duration, is_terminal, paint, table
from holdfast.cli.where import DEFAULT_URL, addresses_at
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime import loop

EXAMPLES = """\
examples:
  holdfast status                        the broker at the default address
  holdfast status site.toml --watch      all brokers of a site, again and again
  holdfast status --json                 one JSON object
  holdfast status --subscriptions 10     with the ten subscriptions that get the least of what arrives on time, and
                                         the ten names that are furthest behind

exit code 1 if a broker does not answer; of a group or a network, if a member does not
"""
RATES_OVER_S = 0.5
LINKS_SHOWN = 10
EVERY_S_MIN = 0.1
HEADINGS = [
    "broker",
    "address",
    "state",
    "up",
    "clients",
    "subscriptions",
    "in/s",
    "out/s",
    "events",
    "backlog",
    "on time, of arrived",
]

FATES = ("on_time", "expired", "dropped")  # what became of events that were wanted
OF_SOME_ROWS = ("rates", "reason")  # beside what every row has

Answer = Inspected | Unreachable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
    parser.add_argument("--broker", metavar="ID", help="of a site file: this one only (default: all)")
    parser.add_argument("--watch", action="store_true", help="again and again, until interrupted")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="with --watch (default 2)")
    parser.add_argument("--links", type=int, default=LINKS_SHOWN, metavar="N", help="links to show for each broker")
    parser.add_argument(
        "--subscriptions",
        type=int,
        default=0,
        metavar="N",
        help="subscriptions to show for each broker, the least on time first, and names, the furthest behind first "
        "(default none)",
    )
    parser.add_argument(
        "--application", action="store_true", help="with a digest of the state of the hosted application"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, one object a look")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    brokers = addresses_at(arguments.where, arguments.broker)
    if arguments.every < EVERY_S_MIN:
        raise UsageError(f"--every is {arguments.every} s, and has to be {EVERY_S_MIN} or more")
    return loop.run(_show(brokers, arguments))


class _Look(NamedTuple):
    """What all brokers said at one time."""

    at: float
    answers: list[Answer]


async def _look(desks: Sequence[BrokerDesk], arguments: argparse.Namespace) -> _Look:
    wanted = (arguments.links, arguments.application, arguments.subscriptions)
    answers = await asyncio.gather(*(desk.inspect(*wanted) for desk in desks))
    return _Look(time.monotonic(), list(answers))


async def _show(brokers: Sequence[tuple[str, str]], arguments: argparse.Namespace) -> int:
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(BrokerDesk(address)) for _, address in brokers]
        before = await _look(desks, arguments)
        if not all(isinstance(answer, Unreachable) for answer in before.answers):
            await asyncio.sleep(RATES_OVER_S)
        while True:
            now = await _look(desks, arguments)
            seconds = now.at - before.at
            told = zip(brokers, before.answers, now.answers, strict=True)
            rows = [row_of(name, address, then, answer, seconds) for (name, address), then, answer in told]
            if arguments.json:
                sys.stdout.write(msgspec.json.encode({"brokers": rows}).decode() + "\n")
            else:
                sys.stdout.write((CLEAR if arguments.watch and is_terminal() else "") + _page(rows))
            sys.stdout.flush()
            if not arguments.watch:
                return CHECK_FAILED if any(row["state"] != "up" and _is_missed(row, rows) for row in rows) else OK
            before = now
            await asyncio.sleep(arguments.every)


def row_of(name: str, address: str, before: Answer, now: Answer, seconds: float) -> dict[str, Any]:
    """One broker, as `--json` shows it. What its scheme tells takes the place of nothing that all brokers have."""
    if isinstance(now, Unreachable):
        return {"broker": name, "address": address, "state": "unreachable", "reason": now.reason}
    row: dict[str, Any] = {
        "broker": now.broker,
        "address": address,
        "state": "up",
        "incarnation": now.incarnation,
        "uptime_s": now.uptime / 10**9,
        "measures": now.measures,
        "links_total": now.links_total,
        "links": [msgspec.structs.asdict(link) for link in now.links],
        "subscriptions": [msgspec.structs.asdict(one) for one in now.subscriptions],
        "names": [name_row(one) for one in now.names],
    }
    if isinstance(before, Inspected) and before.incarnation == now.incarnation:
        row["rates"] = {
            name.removesuffix("_total"): (value - before.measures.get(name, 0)) / seconds
            for name, value in now.measures.items()
            if name.endswith("_total")
        }
    if name and name != now.broker:
        row["state"] = "unexpected"
        row["reason"] = f"{now.broker} answers at {address}, not {name}"
    return row | {fact: text for fact, text in now.facts.items() if fact not in row and fact not in OF_SOME_ROWS}


def _schemes_of(rows: Sequence[dict[str, Any]]) -> list[Scheme]:
    """Of those who answered; a broker may be of one that is not known here."""
    said = dict.fromkeys(row["scheme"] for row in rows if "scheme" in row)
    return [SCHEMES[kind] for kind in said if kind in SCHEMES]


def _is_missed(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
    return all(scheme.is_missed(row["broker"], rows) for scheme in _schemes_of(rows))


_COLOURS = {Tone.WARNING: "yellow", Tone.ALARM: "red"}


def section_text(section: Section) -> str:
    remarks = [
        paint(remark.text, _COLOURS[remark.tone]) if remark.tone in _COLOURS else remark.text
        for remark in section.remarks
    ]
    return "\n".join(["", table(section.table), *remarks, ""])


def _page(rows: Sequence[dict[str, Any]]) -> str:
    lines = [HEADINGS]
    for row in rows:
        measures, rates = row.get("measures", {}), row.get("rates", {})
        cells = [row["broker"] or "-", row["address"], row["state"]]
        if measures:
            cells.append(duration(int(row["uptime_s"] * 10**9)))
            cells += [f"{measures[name]:,}" for name in ("clients_connected", "subscriptions")]
            cells += [f"{rates[name]:,.0f}" if name in rates else "-" for name in ("events_accepted", "events_sent")]
            cells += [f"{measures[name]:,}" for name in ("events_accepted_total", "backlog_events")]
            cells.append(_on_time(*(measures.get(f"events_{name}_total", 0) for name in FATES)))
        lines.append(cells + ["-"] * (len(HEADINGS) - len(cells)))
    schemes = _schemes_of(rows)
    parts = [table(lines), *(section_text(section) for scheme in schemes for section in scheme.status(rows))]
    speakers = [speaker for scheme in schemes if (speaker := scheme.speaker(rows)) is not None]
    for row in rows:
        if "reason" in row:
            parts.append(paint(f"{row['broker'] or row['address']}: {row['reason']}", "red"))
            continue
        if "log_head" in row["measures"]:
            parts.append(_log(row))
        if "application_digest" in row:
            text = f"its state is {row['application_digest']} after {row['measures']['events_accepted_total']:,} events"
            parts.append(f"{row['broker']}: hosts {row['application']}; {text}")
        if row["links"]:
            parts.append(_links(row))
        if row["subscriptions"]:
            parts.append(_subscriptions(row))
        # Brokers that are one have the same names, and the one that speaks for all knows who is there to read them.
        if row["names"] and (not speakers or row in speakers):
            parts.append(_names(row))
    return "\n".join(parts) + "\n"


def _log(row: dict[str, Any]) -> str:
    measures = row["measures"]
    tail, head = measures["log_tail"], measures["log_head"]
    kept = (
        f"positions {tail:,} to {head:,}, {measures['log_bytes'] / 1024**2:,.1f} MiB" if tail <= head else "no events"
    )
    named = f"{measures['named_subscriptions']:,} named subscriptions"
    behind = f", the slowest {measures['named_lag_events']:,} events behind" if measures["named_lag_events"] else ""
    held_by = row.get("log_held_by")
    holds = f"; {held_by!r} holds the oldest events" if held_by else ""
    text = f"{row['broker']}: log: {kept}; {named}{behind}{holds}"
    if measures["log_alarm"]:
        alarm = "ALARM: the log is near its hard limit; soon events go that named subscriptions need"
        if held_by:
            alarm += f": read {held_by!r}, or let it go with `holdfast names forget`"
        text += "\n" + paint(f"{row['broker']}: {alarm}", "red")
    return text


def _on_time(on_time: int, expired: int, dropped: int) -> str:
    """Of the events that arrived at the broker and whose fate it knows. What never came there is not in it."""
    wanted = on_time + expired + dropped
    return f"{on_time / wanted:.2%}" if wanted else "-"


def _subscriptions(row: dict[str, Any]) -> str:
    lines = [
        ["subscriber", "number", "waiting", "received", "expired", "dropped", "on time, of arrived", "state", "filter"]
    ]
    for one in row["subscriptions"]:
        fates = [one[name] for name in FATES]
        numbers = [f"{count:,}" for count in (one["number"], one["waiting"], *fates)]
        lines.append([one["client"], *numbers, _on_time(*fates), one["state"] or "-", one["filter"]])
    return f"\n{row['broker']}: subscriptions that get the least of what arrives on time\n{table(lines, '  ')}"


def _names(row: dict[str, Any]) -> str:
    lines = [NAME_HEADINGS, *map(name_cells, row["names"])]
    return f"\n{row['broker']}: names that are furthest behind\n{table(lines, '  ')}"


def _links(row: dict[str, Any]) -> str:
    links = [["link", "role", "for", "waiting", "bytes"]]
    for link in row["links"]:
        waiting = [f"{link['waiting_messages']:,}", f"{link['waiting_bytes']:,}"]
        links.append([link["peer"], link["role"], duration(link["age"]), *waiting])
    shown = f"\n{row['broker']}: {row['links_total']:,} links"
    if row["links_total"] > len(row["links"]):
        shown += f", of which {len(row['links'])} with the most waiting"
    return f"{shown}\n{table(links, '  ')}"
