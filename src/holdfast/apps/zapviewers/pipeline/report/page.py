"""The page: a heading, a section for each question, and how it was made."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.apps.zapviewers.pipeline.report.figures import TOP, Figures, Ranked
from holdfast.apps.zapviewers.pipeline.report.heat_map import frequent_changes, heat_map
from holdfast.apps.zapviewers.pipeline.report.listing import (
    SHARES_SHOWN,
    bars,
    facts_list,
    length,
    reason_table,
    sample_table,
    share_table,
    span,
)
from holdfast.apps.zapviewers.pipeline.report.markup import Content, Element, element, render, style_sheet
from holdfast.apps.zapviewers.pipeline.report.plots import (
    channel_plots,
    moment,
    number,
    over_time_table,
    total_plot,
)
from holdfast.apps.zapviewers.pipeline.report.style import STYLE

TITLE = "Who watched what"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
# Should markup ever let something through, a browser still runs and loads nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(figures: Figures) -> str:
    """The whole page, as text."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{TITLE} – Holdfast"),
        style_sheet(STYLE),
    )
    main = element(
        "main",
        *_heading(figures),
        *_over_time(figures),
        *_top_lists(figures),
        *_share_and_reach(figures),
        *_changes(figures),
        *_quarantine(figures),
        *_making(figures),
    )
    return "<!DOCTYPE html>\n" + render(element("html", head, element("body", main), lang="en")) + "\n"


def _heading(figures: Figures) -> list[Content]:
    facts, viewing = figures.facts, figures.viewing
    parts: list[Content] = [element("h1", TITLE)]
    if viewing is not None:
        first, last = viewing.began, viewing.at(len(viewing.total.values) - 1)
        days = _day(first) if first.date() == last.date() else f"{_day(first)} to {_day(last)}"
        parts.append(element("p", f"Set-top boxes and their channels, {days}", class_="quiet"))
    if facts.synthetic:
        text = "The data is synthetic: made up by rules and a seed, not recorded from anybody."
        parts.append(element("p", element("strong", text), class_="notice"))
    if figures.missing:
        parts.append(element("p", f"These tables are missing: {', '.join(figures.missing)}.", class_="notice"))
    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in figures.reasons[:3]) or "all lines could be read"
    tiles = [
        _tile("Lines", _count(facts.lines), f"positions {span(facts)}" if span(facts) else ""),
        _tile("Set-top boxes", _count(facts.boxes), f"{_count(facts.watching)} on at the end"),
        _tile("Lines in quarantine", f"{figures.refused:,}", reasons),
    ]
    if viewing is not None:
        peak = viewing.total.peak
        tiles.append(
            _tile("Most viewers", number(viewing.total.values[peak]), f"at {moment(viewing, viewing.at(peak))}")
        )
    return [*parts, element("dl", *tiles, class_="tiles")]


def _over_time(figures: Figures) -> list[Content]:
    viewing = figures.viewing
    parts: list[Content] = [element("h2", "Viewers over time")]
    if viewing is None:
        return [*parts, _nothing("Nobody has watched anything yet.")]
    told = f"Boxes on a channel, at the beginning of every {_step(viewing.step)}."
    if viewing.step > MINUTE:
        told = f"Boxes on a channel: averages of {_step(viewing.step)}."
    if viewing.days_left_out:
        told += f" Left out: {_many(viewing.days_left_out, 'other day')} with a few viewers, by their boxes' clocks."
    return [
        *parts,
        element("p", told),
        total_plot(viewing),
        element("h3", f"The {_many(len(viewing.channels), 'most watched channel')}"),
        element("p", "Ranked by average viewers, drawn to one scale; in grey, the others.", class_="quiet"),
        channel_plots(viewing),
        element("details", element("summary", "The curves as a table"), over_time_table(viewing)),
    ]


def _top_lists(figures: Figures) -> list[Content]:
    position = f"At the end, position {figures.facts.last:,}" if figures.facts.last is not None else "At the end"
    now: list[Content] = [element("h3", position)]
    now.append(bars(figures.now, "viewers") if figures.now else _nothing("Nobody watches a channel that is known."))
    day: list[Content] = [element("h3", "On average")]
    if figures.viewing is None:
        day.append(_nothing("Nobody has watched anything yet."))
    else:
        ranked = [Ranked(series.channel, series.average) for series in figures.viewing.channels]
        day.append(bars(ranked, "viewers"))
    return [
        element("h2", f"Top {TOP}"),
        element("div", element("section", *now), element("section", *day), class_="two"),
    ]


def _share_and_reach(figures: Figures) -> list[Content]:
    parts: list[Content] = [element("h2", "Share and reach")]
    shares = figures.shares
    if shares is None:
        return [*parts, _nothing("There are no windows of time with viewers.")]
    told = (
        "Share is a channel's part of all the time that boxes spent on channels; reach is how many different boxes "
        f"stayed on it, in its best {length(shares.window)}; hours are those of all boxes together."
    )
    if len(shares.channels) > SHARES_SHOWN:
        told += f" The first {SHARES_SHOWN} of {len(shares.channels):,} channels."
    return [*parts, element("p", told), share_table(shares)]


def _changes(figures: Figures) -> list[Content]:
    parts: list[Content] = [element("h2", "Changes of channel")]
    changes = figures.changes
    if changes is None:
        return [*parts, _nothing("No box has changed its channel yet.")]
    inside = sum(changes.zaps.values())
    told = (
        f"{changes.total:,} changes between {_many(changes.kinds, 'pair')} of channels; "
        f"{inside / changes.total:.0%} of them are on this map."
    )
    return [
        *parts,
        element("p", told),
        heat_map(changes),
        element("h3", "The most frequent ones"),
        frequent_changes(changes),
    ]


def _quarantine(figures: Figures) -> list[Content]:
    parts: list[Content] = [element("h2", "Quarantine")]
    if not figures.refused:
        return [*parts, _nothing("All lines could be read.")]
    return [
        *parts,
        element("p", f"{_many(figures.refused, 'line')} could not be read. They are kept, each with the reason."),
        reason_table(figures.reasons),
        element("h3", f"The first {_many(len(figures.sample), 'line')} of them"),
        sample_table(figures.sample),
    ]


def _making(figures: Figures) -> list[Content]:
    return [element("h2", "How this was made"), element("div", facts_list(figures.facts), class_="facts")]


def _tile(term: str, value: str, more: str) -> Element:
    return element("div", element("dt", term), element("dd", value), *([element("dd", more)] if more else []))


def _nothing(text: str) -> Element:
    return element("p", text, class_="quiet")


def _step(step: timedelta) -> str:
    """`second`, `5 seconds`, `minute`, `2 minutes`."""
    name, count = ("minute", step // MINUTE) if step >= MINUTE else ("second", step // SECOND)
    return name if count == 1 else _many(count, name)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _count(value: int | None) -> str:
    return "not recorded" if value is None else f"{value:,}"


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
