"""Lists with numbers: bars of the most watched channels, shares, reasons, lines in quarantine, facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from holdfast.apps.zapviewers.pipeline.facts import Facts
from holdfast.apps.zapviewers.pipeline.report.figures import Ranked, Refused, Shares
from holdfast.apps.zapviewers.pipeline.report.markup import Content, Element, element, name, shown
from holdfast.apps.zapviewers.pipeline.report.plots import number

SHARES_SHOWN = 25
TEXT_SHOWN = 80


def bars(ranked: Sequence[Ranked], unit: str) -> Element:
    """Channels with bars as long as their numbers are large. It is a table: who can't see bars hears numbers."""
    most = max((entry.viewers for entry in ranked), default=0) or 1
    rows = [
        element(
            "tr",
            element("td", str(place), class_="number quiet"),
            element("th", name(entry.channel), scope="row"),
            element("td", number(entry.viewers), class_="number"),
            element("td", _bar(entry.viewers / most), class_="wide"),
        )
        for place, entry in enumerate(ranked, 1)
    ]
    head = _head(("", "number"), ("channel", ""), (unit, "number"), ("", ""))
    return element("table", head, element("tbody", *rows), class_="bars")


def share_table(shares: Shares) -> Element:
    """Share, reach and average of the channels, the largest share first."""
    shown_first = shares.channels[:SHARES_SHOWN]
    most = shown_first[0].share
    rows = [
        element(
            "tr",
            element("th", name(entry.channel), scope="row"),
            element("td", f"{entry.share:.1%}", class_="number"),
            element("td", _bar(entry.share / most), class_="wide"),
            element("td", f"{entry.reach:,}", class_="number"),
            element("td", number(entry.seconds / 3600), class_="number"),
        )
        for entry in shown_first
    ]
    head = _head(("channel", ""), ("share", "number"), ("", ""), ("reach", "number"), ("hours", "number"))
    return element("table", head, element("tbody", *rows), class_="bars")


def reason_table(reasons: Sequence[tuple[str, int]]) -> Element:
    """Why lines are in quarantine, and how many for each reason."""
    rows = [
        element("tr", element("th", name(reason), scope="row"), element("td", f"{count:,}", class_="number"))
        for reason, count in reasons
    ]
    return element("table", _head(("reason", ""), ("lines", "number")), element("tbody", *rows))


def sample_table(sample: Sequence[Refused]) -> Element:
    """The first lines in quarantine, as they came."""
    rows = [
        element(
            "tr",
            element("td", f"{refused.position:,}", class_="number"),
            element("td", f"{refused.line:,}", class_="number"),
            element("td", name(refused.reason)),
            element("td", element("code", as_text(refused.text))),
        )
        for refused in sample
    ]
    head = _head(("position", "number"), ("line", "number"), ("reason", ""), ("text", ""))
    return element("div", element("table", head, element("tbody", *rows)), class_="scroll")


def facts_list(facts: Facts) -> Element:
    """Where the tables come from."""
    pairs = [
        ("log read from", facts.url),
        ("log id", facts.log),
        ("positions", span(facts)),
        ("engine", facts.engine),
        ("tables made", facts.when),
        *((program, version) for program, version in facts.versions.items()),
    ]
    entries: list[Content] = []
    for term, text in pairs:
        entries += [element("dt", shown(term)), element("dd", name(text or "not recorded"))]
    return element("dl", *entries)


def span(facts: Facts) -> str:
    """The positions of the log that the tables are about."""
    if facts.first is None or facts.last is None:
        return ""
    return f"{facts.first:,} to {facts.last:,}"


def length(window: timedelta) -> str:
    """How long a window is, in words."""
    minutes = window // timedelta(minutes=1)
    if minutes % 1440 == 0:
        return "day" if minutes == 1440 else f"{minutes // 1440} days"
    return "hour" if minutes == 60 else f"{minutes} minutes"


def as_text(line: bytes) -> str:
    """The bytes of a line for people: what is no text is shown by its number."""
    text = line.decode("utf-8", "backslashreplace")
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"


def _bar(share: float) -> Element:
    rect = element("rect", width=f"{100 * share:.2f}%", height="100%", rx="2")
    return element("svg", rect, class_="bar", aria_hidden="true")


def _head(*columns: tuple[str, str]) -> Element:
    cells = [
        element("th", text, scope="col", class_=kind) if kind else element("th", text, scope="col")
        for text, kind in columns
    ]
    return element("thead", element("tr", *cells))
