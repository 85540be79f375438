"""Viewers over time, as pictures: all channels together, and the most watched ones each on its own.

The curves are SVG that is stretched to the width that there is; the texts around them are not, so that they can be read
on a phone. Ten curves in one picture can't be told apart by everyone: so each channel has a picture, all of one scale,
with the others' curves in grey behind its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

from holdfast.apps.zapviewers.pipeline.report.figures import Viewing
from holdfast.apps.zapviewers.pipeline.report.markup import Element, element, isolated, name

WIDTH, HEIGHT = 1440.0, 1000.0  # of the pictures' own units
X_TICKS_MAX = 8
Y_TICKS_MAX = 5
Y_TICKS_SMALL_MAX = 3
POINTS_SMALL_MAX = 144
MINUTES, HOURS, DAYS = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
TIME_STEPS = [
    *(timedelta(seconds=seconds) for seconds in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30)),
    *(HOURS * hours for hours in (1, 2, 3, 6, 12)),
    DAYS,
]


def number(value: float) -> str:
    """A number for people."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.1f}"


def moment(viewing: Viewing, at: datetime) -> str:
    """A time of day, with its date where several days are shown."""
    several = viewing.began.date() != (viewing.ended - timedelta(microseconds=1)).date()
    return f"{at:%d %b} {_clock(at, viewing.step)}" if several else _clock(at, viewing.step)


def _clock(at: datetime, step: timedelta) -> str:
    """A time of day, as exact as steps of a length can be."""
    return f"{at:%H:%M:%S}" if step < MINUTES else f"{at:%H:%M}"


def total_plot(viewing: Viewing) -> Element:
    """Viewers of all channels together, over all the time that is shown."""
    top = _top(max(viewing.total.values), Y_TICKS_MAX)
    peak, last = viewing.total.peak, viewing.at(len(viewing.total.values) - 1)
    words = (
        f"From {moment(viewing, viewing.began)} to {moment(viewing, last)}: {number(viewing.total.average)} viewers on "
        f"average, most of them at {moment(viewing, viewing.at(peak))}: {number(viewing.total.values[peak])}."
    )
    svg = _picture(
        "total",
        "Viewers of all channels over time",
        words,
        [
            *_grid(_y_ticks(top, Y_TICKS_MAX), top),
            element("path", d=_area(viewing.total.values, top), class_="area"),
            element("path", d=_line(viewing.total.values, top), class_="line"),
        ],
    )
    return element("figure", _framed(viewing, svg, _y_ticks(top, Y_TICKS_MAX), top, ""), element("figcaption", words))


def channel_plots(viewing: Viewing) -> Element:
    """A small picture for each of the most watched channels. Their curves are smoother than that of all channels."""
    curves = [smooth(series.values) for series in viewing.channels]
    top = _top(max(max(values) for values in curves), Y_TICKS_SMALL_MAX)
    lines = [
        element("path", d=_line(values, top), id=f"c{place}", class_="curve") for place, values in enumerate(curves)
    ]
    store = element("svg", element("defs", *lines), class_="store", aria_hidden="true")
    panels = [_panel(viewing, curves, place, top) for place in range(len(curves))]
    return element("div", store, element("div", *panels, class_="panels"))


def smooth(values: list[float]) -> list[float]:
    """Averages of so many values each that a small picture has room for them all."""
    width = -(-len(values) // POINTS_SMALL_MAX)
    groups = [values[start : start + width] for start in range(0, len(values), width)]
    return [sum(group) / len(group) for group in groups]


def _panel(viewing: Viewing, curves: list[list[float]], place: int, top: float) -> Element:
    series, ticks = viewing.channels[place], _y_ticks(top, Y_TICKS_SMALL_MAX)
    when, most = moment(viewing, viewing.at(series.peak)), number(series.values[series.peak])
    svg = _picture(
        f"p{place}",
        f"Viewers of {isolated(series.channel)} over time",
        f"{number(series.average)} on average; most, {most}, at {when}.",
        [
            *_grid(ticks, top),
            *(element("use", href=f"#c{other}", class_="other") for other in range(len(curves)) if other != place),
            element("path", d=_area(curves[place], top), class_="area"),
            element("path", d=_line(curves[place], top), class_="line"),
        ],
    )
    return element(
        "figure",
        element("h4", f"{place + 1}. ", name(series.channel)),
        element("p", f"average {number(series.average)}, most {most} at {when}", class_="quiet"),
        _framed(viewing, svg, ticks, top, " small"),
    )


def over_time_table(viewing: Viewing) -> Element:
    """The curves in numbers: averages of at most about thirty stretches of time."""
    span = viewing.ended - viewing.began
    step = next((step for step in TIME_STEPS if span / step <= 30), DAYS)
    stretches: dict[datetime, list[int]] = {}
    for place in range(len(viewing.total.values)):
        stretches.setdefault(_floor(viewing.at(place), step), []).append(place)
    columns = [viewing.total, *viewing.channels]
    head = element(
        "tr",
        element("th", "from", scope="col"),
        element("th", "all", scope="col", class_="number"),
        *(element("th", name(series.channel), scope="col", class_="number") for series in viewing.channels),
    )
    rows = [
        element(
            "tr",
            element("th", moment(viewing, at), scope="row"),
            *(
                element("td", number(sum(series.values[place] for place in places) / len(places)), class_="number")
                for series in columns
            ),
        )
        for at, places in stretches.items()
    ]
    return element("div", element("table", element("thead", head), element("tbody", *rows)), class_="scroll")


def _picture(label: str, title: str, words: str, content: list[Element]) -> Element:
    return element(
        "svg",
        element("title", title, id=f"{label}-title"),
        element("desc", words, id=f"{label}-desc"),
        *content,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{label}-title {label}-desc",
    )


def _framed(viewing: Viewing, svg: Element, ticks: list[float], top: float, kind: str) -> Element:
    labels = [element("span", number(value), style=f"bottom:{100 * value / top:.2f}%") for value in ticks]
    # The room that they need can't be seen from labels that stand where they are put.
    room = f"--n:{max(len(number(value)) for value in ticks)}"
    y_axis = element("div", *labels, class_="y", style=room, aria_hidden="true")
    return element("div", y_axis, element("div", svg, _x_axis(viewing), class_="field"), class_=f"plot{kind}")


def _line(values: list[float], top: float) -> str:
    """The steps of a curve as a path."""
    pieces: list[str] = []
    height = None
    for place, value in enumerate(values):
        y = round(HEIGHT * (1 - value / top))
        if y != height:
            x = f"{WIDTH * place / len(values):.1f}".removesuffix(".0")
            pieces.append(f"M0 {y}" if height is None else f"H{x}V{y}")
            height = y
    return "".join([*pieces, f"H{WIDTH:g}"])


def _area(values: list[float], top: float) -> str:
    return f"{_line(values, top)}V{HEIGHT:g}H0z"


def _grid(ticks: list[float], top: float) -> list[Element]:
    return [element("path", d=f"M0 {HEIGHT * (1 - value / top):g}H{WIDTH:g}", class_="grid") for value in ticks]


def _x_axis(viewing: Viewing) -> Element:
    span = viewing.ended - viewing.began
    step = next((step for step in TIME_STEPS if span / step <= X_TICKS_MAX), DAYS)
    first = _floor(viewing.began, step)
    labels: list[Element] = []
    for place in count():
        at = first + step * place
        if at > viewing.ended:
            break
        if at >= viewing.began:
            left = (at - viewing.began) / span
            # Narrow pictures leave out the odd ones, small ones every second of the others, too.
            kind = "odd" if len(labels) % 2 else "half" if len(labels) % 4 else ""
            kind += " end" if left > 0.97 else ""
            text = f"{at:%d %b}" if step >= DAYS else _clock(at, step)
            labels.append(element("span", text, class_=kind.strip(), style=f"left:{100 * left:.2f}%"))
    return element("div", *labels, class_="x", aria_hidden="true")


def _floor(at: datetime, step: timedelta) -> datetime:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + step * ((at - midnight) // step)


def _y_step(top: float, ticks: int) -> float:
    step = 1.0
    for factor in (2, 2.5, 2) * 12:
        if top / step <= ticks:
            break
        step *= factor
    return step


def _top(most: float, ticks: int) -> float:
    """The end of the scale: a round number that is not below any value."""
    step = _y_step(max(1.0, most), ticks)
    return max(1.0, step * -(-most // step))


def _y_ticks(top: float, ticks: int) -> list[float]:
    step = _y_step(top, ticks)
    return [step * place for place in range(round(top / step) + 1)]
