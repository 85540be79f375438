"""What `holdfast status` shows of a network: each broker's links and tables, and who is missing, as others see it; who
belongs to it, by the newest map that one of them has, and where that differs from what they were told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.broker.status import Remark, Section, Tone

HEADINGS = ["broker", "neighbours", "routes", "advertised", "told", "hidden", "in/s", "out/s"]
HEADINGS += ["waiting", "detours", "lost", "expired"]
_TABLES = ("routes", "routes_advertised", "routes_told", "routes_hidden")
_RATES = ("events_arrived", "events_forwarded")
_SHOWN_MAX = 20
# What members that see to stand-ins say of it.
_CYCLE = {"standin_case": Tone.WARNING, "standin_problem": Tone.ALARM, "standin_back": Tone.PLAIN}
_EVENTS = ("feeds_events", "detours_sent_total", "events_lost_total", "events_expired_under_way_total")

Row = Mapping[str, Any]


def network_sections(rows: Sequence[Row]) -> list[Section]:
    """Of all brokers that were asked, also those that did not answer; none if no network is among those who did."""
    there = {row["broker"]: row for row in rows if "reliability" in row}
    if not there:
        return []
    lines = [HEADINGS]
    for row in rows:
        if row["broker"] in there:
            lines.append(_cells(row))
        elif row["broker"]:
            lines.append([row["broker"], "?", *["-"] * (len(HEADINGS) - 2)])
    return [Section(lines, [*_verdict(rows, there), *_of_map(rows, there)])]


def is_outside(broker: str, rows: Sequence[Row]) -> bool:
    """Whether the network goes on without it: a spare, or one that was taken out, need not run."""
    newest = _newest(rows)
    return newest is not None and broker != "" and broker not in _names(newest["members"])


def _newest(rows: Sequence[Row]) -> Row | None:
    """A row with the map that counts. Of those who have the same, a member knows what is wrong with it."""
    mapped = [row for row in rows if "map" in row]
    return max(mapped, key=lambda row: (int(row["map"]), row["broker"] == row["keeper"]), default=None)


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


def _verdict(rows: Sequence[Row], there: Mapping[str, Row]) -> list[Remark]:
    members = {name: row for name, row in there.items() if not is_outside(name, rows)}
    wanted = [row for row in rows if not is_outside(row["broker"], rows)]
    levels = list(dict.fromkeys(row["reliability"] for row in there.values()))
    links = _links(members)
    up = [ends for ends, is_up in links.items() if is_up]
    answer = f"{len(members)} of {len(wanted)} brokers answer"
    text = f"reliability {', '.join(levels)}: {answer}, {len(up)} of {len(links)} links are up"
    is_whole = len(members) == len(wanted) and len(up) == len(links)
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


def _of_map(rows: Sequence[Row], there: Mapping[str, Row]) -> list[Remark]:
    """What there is to say of the map, where it is not just what all begin with."""
    newest = _newest(rows)
    if newest is None:
        return []
    number, members = int(newest["map"]), _names(newest["members"])
    remarks = [Remark(f"map {number}; {newest['keeper']} keeps the order of changes")] if number else []
    remarks += [Remark(f"{by} stands in for {name}") for name, by in _by(newest, "resting") if by]
    remarks += [Remark(f"{by} shares the work of {name}") for name, by in _by(newest, "sharing")]
    if "change" in newest:
        remarks.append(Remark(f"change: {newest['change']}"))
        known = [row for row in there.values() if int(row.get("map", -1)) == number]
        waits = [row["change_problem"] for row in known if "change_problem" in row]
        if waits:
            remarks.append(Remark(f"it waits: {'; '.join(dict.fromkeys(waits))}", Tone.WARNING))
    for fact, tone in _CYCLE.items():
        said = dict.fromkeys(row[fact] for row in there.values() if fact in row)
        remarks += [Remark(text, tone) for text in said]
    complaining = {name: row["complaints"] for name, row in there.items() if "complaints" in row}
    remarks += [Remark(f"{name} complains of {text}", Tone.WARNING) for name, text in complaining.items()]
    outside = [name for name in there if name not in members]
    unaware = [name for name in outside if "problem" not in there[name]]
    if unaware:
        problem = f"{', '.join(unaware)}: no member any more, and has not heard of it: stop it"
        remarks.append(Remark(problem, Tone.ALARM))
    older = [name for name, row in there.items() if name in members and int(row.get("map", number)) < number]
    if older:
        who = f"{', '.join(older)}: {'has' if len(older) == 1 else 'have'}"
        remarks.append(Remark(f"{who} not heard of map {number} yet", Tone.WARNING))
    asked = [row["broker"] for row in rows]
    if unasked := [name for name in members if name not in asked and len(rows) > 1]:
        shown = ", ".join(unasked[:_SHOWN_MAX]) + (", …" if len(unasked) > _SHOWN_MAX else "")
        remarks.append(Remark(f"not asked, and {'a member' if len(unasked) == 1 else 'members'}: {shown}"))
    for name, tone in (("problem", Tone.PLAIN), ("difference", Tone.WARNING)):
        by_text: dict[str, list[str]] = {}
        for broker, row in there.items():
            if name in row:
                by_text.setdefault(row[name], []).append(broker)
        remarks += [Remark(f"{', '.join(brokers)}: {text}", tone) for text, brokers in by_text.items()]
    return remarks


def _by(row: Row, fact: str) -> list[tuple[str, str]]:
    """Brokers, with who stands in for each or shares its work."""
    said = (text.partition(" by ") for text in _names(row.get(fact, "")))
    return [(name, by) for name, _, by in said]


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
