"""Whether a figure can be read: every text is inside of it, and covers no other, no line, and no box but its own."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from unittest.mock import patch

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0  # pixels, of 100 an inch: the boxes of texts are a little larger than their ink


def flaws(figure: Figure, *, lines: bool = True) -> list[str]:
    """Everything that is wrong with how it is laid out. Without `lines`, texts may stand on lines.

    It is drawn here once: the layout moves a little when it is done again.
    """
    drawn = _drawn(figure)
    texts = [(artist, box) for artist, box in drawn if isinstance(artist, Text)]
    frames = [
        (artist, box)
        for artist, box in drawn
        if isinstance(artist, FancyBboxPatch | Rectangle) and artist is not figure.patch
    ]
    found = [f"{text.get_text()!r} is cut off" for text, box in texts if not _holds(figure.bbox, box)]
    for (one, box), (other, other_box) in combinations(texts, 2):
        if _meet(box, other_box):
            found.append(f"{one.get_text()!r} and {other.get_text()!r} cover each other")
    for text, box in texts:
        if any(_meet(box, frame) and not _holds(frame, box) for _, frame in frames):
            found.append(f"{text.get_text()!r} crosses the edge of a box")
        if lines and any(_crosses(artist, box) for artist, _ in drawn if isinstance(artist, Line2D)):
            found.append(f"{text.get_text()!r} stands on a line")
    return found


def texts_of(figure: Figure) -> list[str]:
    return [artist.get_text() for artist, _ in _drawn(figure) if isinstance(artist, Text)]


def heights_of(line: Line2D) -> list[float]:
    points: Any = line.get_xydata()
    return [float(y) for _, y in points]


def _drawn(figure: Figure) -> list[tuple[Artist, Bbox]]:
    """All texts, boxes and lines that are drawn, with where they are: figures know more of them than they show."""
    found: list[Artist] = []

    def recorded(kind: type[Artist]) -> Any:
        draw = kind.draw

        def record(self: Artist, *arguments: Any, **options: Any) -> None:
            if self.get_visible() and not any(self is one for one in found):
                found.append(self)
            draw(self, *arguments, **options)

        return patch.object(kind, "draw", record)

    canvas: Any = figure.canvas
    with recorded(Text), recorded(FancyBboxPatch), recorded(Rectangle), recorded(Line2D):
        canvas.draw()
    renderer = canvas.get_renderer()
    shown = [one for one in found if not isinstance(one, Text) or one.get_text().strip()]
    return [(one, _shrunk(one.get_window_extent(renderer))) for one in shown]


def _shrunk(box: Bbox) -> Bbox:
    return Bbox.from_extents(box.x0 + SLACK, box.y0 + SLACK, box.x1 - SLACK, box.y1 - SLACK)


def _meet(one: Bbox, other: Bbox) -> bool:
    across, along = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(across > 0 and along > 0)


def _holds(outer: Any, inner: Bbox) -> bool:
    return bool(outer.x0 <= inner.x0 and outer.y0 <= inner.y0 and inner.x1 <= outer.x1 and inner.y1 <= outer.y1)


def _crosses(line: Line2D, box: Bbox) -> bool:
    return bool(line.get_transform().transform_path(line.get_path()).intersects_bbox(box, filled=False))
