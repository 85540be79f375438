"""Figures of the documentation: how they look, and SVG that is the same for the same figure.

Text is written as outlines: with fonts of the reader, it would be wider or narrower than what the layout has made room
for. `tests/figures.py` finds texts that cover each other or are cut off.
"""

from __future__ import annotations

import io
import re
from typing import Any, Final

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLUE: Final = "#1f5f8b"
RED: Final = "#c8553d"
GREEN: Final = "#4a7c59"
ORANGE: Final = "#d98e04"
DARK: Final = "#222222"
GREY: Final = "#666666"
PALE: Final = "#dddddd"

_MARGIN: Final = 0.1  # inches

# Without a date, and with ids that are drawn from the content alone, drawing twice gives the same bytes.
_SVG: Final[dict[Any, str]] = {"svg.fonttype": "path", "svg.hashsalt": "holdfast"}
_NO_METADATA: Final = {"Date": None, "Creator": None}
_ID: Final = re.compile(r"\b[a-z][0-9a-f]{10}\b")
_NUMBER: Final = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
_SAME_WITHIN: Final = 0.1  # points: another processor rounds in another way


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches that makes room for its texts."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=_MARGIN, h_pad=_MARGIN))
    FigureCanvasAgg(figure)
    return figure


def as_svg(figure: Figure) -> str:
    written = io.StringIO()
    with matplotlib.rc_context(_SVG):
        figure.savefig(written, format="svg", metadata=_NO_METADATA)
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def is_same_picture(one: str, other: str) -> bool:
    """Whether two SVG texts are the same but for how numbers were rounded."""
    (words, numbers), (other_words, other_numbers) = _taken_apart(one), _taken_apart(other)
    return words == other_words and all(abs(a - b) <= _SAME_WITHIN for a, b in zip(numbers, other_numbers, strict=True))


def _taken_apart(svg: str) -> tuple[list[str], list[float]]:
    """The texts between the numbers, without names that are made from numbers; and the numbers."""
    plain = _ID.sub("id", svg)
    return _NUMBER.split(plain), [float(number) for number in _NUMBER.findall(plain)]
