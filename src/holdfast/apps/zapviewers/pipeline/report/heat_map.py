"""Changes of channel as a map: rows are where boxes came from, columns where they went, the darker the more."""

from __future__ import annotations

from math import sqrt

from holdfast.apps.zapviewers.pipeline.report.figures import Changes
from holdfast.apps.zapviewers.pipeline.report.markup import Element, element, isolated, name

MOST_FREQUENT = 10
LEGEND_STEPS = 5
GAP = 0.06


def heat_map(changes: Changes) -> Element:
    """The map, with what its shades mean."""
    size = len(changes.channels)
    most = max(changes.zaps.values(), default=0)
    cells = [
        element(
            "rect",
            element("title", f"{isolated(came_from)} → {isolated(to)}: {changes.zaps.get((came_from, to), 0):,}"),
            x=column + GAP,
            y=row + GAP,
            width=1 - 2 * GAP,
            height=1 - 2 * GAP,
            fill_opacity=f"{_shade(changes.zaps.get((came_from, to), 0), most):.3f}",
            class_="cell",
        )
        for row, came_from in enumerate(changes.channels)
        for column, to in enumerate(changes.channels)
    ]
    svg = element(
        "svg",
        element("title", "Changes of channel", id="heat-title"),
        element("desc", f"{size} by {size} channels; the table below has the most frequent changes.", id="heat-desc"),
        *cells,
        viewBox=f"0 0 {size} {size}",
        role="img",
        aria_labelledby="heat-title heat-desc",
    )
    labels = [element("span", name(channel)) for channel in changes.channels]
    grid = element(
        "div",
        element("div", "to →", element("br"), "from ↓", class_="corner quiet"),
        element("div", *labels, class_="columns", style=f"--n:{size}", aria_hidden="true"),
        element("div", *labels, class_="rows", style=f"--n:{size}", aria_hidden="true"),
        svg,
        class_="heat",
    )
    caption = (
        f"The {size} channels with the most changes; one square for each pair. Hover over a square for its number."
    )
    return element("figure", grid, _legend(most), element("figcaption", caption))


def frequent_changes(changes: Changes) -> Element:
    """The most frequent changes, as a table."""
    ranked = sorted(changes.zaps.items(), key=lambda item: (-item[1], item[0]))[:MOST_FREQUENT]
    rows = [
        element(
            "tr",
            element("td", name(came_from)),
            element("td", name(to)),
            element("td", f"{count:,}", class_="number"),
        )
        for (came_from, to), count in ranked
    ]
    head = element(
        "tr",
        element("th", "from", scope="col"),
        element("th", "to", scope="col"),
        element("th", "changes", scope="col", class_="number"),
    )
    return element("table", element("thead", head), element("tbody", *rows))


def _shade(count: int, most: int) -> float:
    """Between 0 and 1. By the root: a few pairs have most of the changes, and the others differ too."""
    return sqrt(count / most) if count else 0.0


def _legend(most: int) -> Element:
    steps = [round(most * (step / LEGEND_STEPS) ** 2) for step in range(LEGEND_STEPS + 1)]
    keys = [
        element(
            "span",
            element(
                "svg",
                element("rect", width=1, height=1, class_="cell", fill_opacity=f"{_shade(step, most):.3f}"),
                viewBox="0 0 1 1",
                aria_hidden="true",
            ),
            f"{step:,}",
        )
        for step in dict.fromkeys(steps)
    ]
    return element("p", "Changes: ", *keys, class_="legend")
