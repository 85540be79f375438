"""What `holdfast status` shows of a network: each broker's links and tables, and who is missing, as others see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.broker.status import Remark, Section, Tone

HEADINGS = ["broker", "neighbours", "routes", "advertised", "told", "hidden", "in/s", "out/s"]
HEADINGS += ["waiting", "detours", "lost", "expired"]
_TABLES = ("routes", "routes_advertised", "routes_told", "routes_hidden")
_RATES = ("events_arrived", "events_forwarded")
_EVENTS = ("feeds_events", "detours_sent_total", "events_lost_total", "events_expired_under_way_total")

Row = Mapping[str, Any]


def network_sections(rows: Sequence[Row]) -> list[Section]:
    """Of all brokers that were asked, also those that did not answer; none if no network is among those who did."""
    members = {row["broker"]: row for row in rows if "reliability" in row}
    if not members:
        return []
    lines = [HEADINGS]
    for row in rows:
        if row["broker"] in members:
            lines.append(_cells(row))
        elif row["broker"]:
            lines.append([row["broker"], "?", *["-"] * (len(HEADINGS) - 2)])
    return [Section(lines, _verdict(rows, members))]


def _cells(row: Row) -> list[str]:
    measures, rates = row["measures"], row.get("rates", {})
    cells = [row["broker"], ", ".join(_shown(row, peer) for peer in _names(row["neighbours"])) or "none"]
    cells += [f"{measures[name]:,}" for name in _TABLES]
    cells += [f"{rates[name]:,.0f}" if name in rates else "-" for name in _RATES]
    return cells + [f"{measures[name]:,}" if name in measures else "-" for name in _EVENTS]


def _shown(row: Row, peer: str) -> str:
    if peer not in _names(row["neighbours_up"]):
        return f"{peer} (down)"
    return f"{peer} (suspected)" if peer in _names(row["neighbours_suspected"]) else peer


def _verdict(rows: Sequence[Row], members: Mapping[str, Row]) -> list[Remark]:
    levels = list(dict.fromkeys(row["reliability"] for row in members.values()))
    links = _links(members)
    up = [ends for ends, is_up in links.items() if is_up]
    answer = f"{len(members)} of {len(rows)} brokers answer"
    text = f"reliability {', '.join(levels)}: {answer}, {len(up)} of {len(links)} links are up"
    is_whole = len(members) == len(rows) and len(up) == len(links)
    remarks = [Remark(text, Tone.PLAIN if is_whole else Tone.WARNING)]
    for row in rows:
        name = row["broker"]
        near = [other for other, told in members.items() if name in _names(told["neighbours"])]
        if name and name not in members and near:
            remarks.append(Remark(_missing(name, near, members), Tone.ALARM))
    for one, other in [ends for ends, is_up in links.items() if not is_up]:
        if one in members and other in members:
            remarks.append(Remark(f"the link between {one} and {other} is down, and both are up", Tone.ALARM))
    return remarks


def _missing(name: str, near: Sequence[str], members: Mapping[str, Row]) -> str:
    """A broker that does not answer here, as its neighbours see it."""
    linked = [other for other in near if name in _names(members[other]["neighbours_up"])]
    if linked:
        by = ", ".join(linked)
        return f"{name} does not answer, and is linked with {by}: it hangs, or operators can't reach it"
    waiting = sum(members[other]["measures"]["feeds_events"] for other in near)
    kept = f"; {waiting:,} events wait there" if waiting else ""
    return f"{name} is down, say {', '.join(near)}{kept}"


def _links(members: Mapping[str, Row]) -> dict[tuple[str, str], bool]:
    """The links that those who answer have, and whether each end that answers says that it is up."""
    links: dict[tuple[str, str], bool] = {}
    for name, row in members.items():
        for peer in _names(row["neighbours"]):
            ends = (peer, name) if (peer, name) in links else (name, peer)
            links[ends] = links.get(ends, True) and peer in _names(row["neighbours_up"])
    return links


def _names(listed: str) -> list[str]:
    return listed.split(", ") if listed else []
