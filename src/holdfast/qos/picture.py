"""A network, drawn: brokers in rings around the root of its tree, coloured by how reliable subscribers there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Final

from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.prediction import Model, Predicted, mean_reliability
from holdfast.topology.graph import SpanningTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS: Final = (".svg", ".png", ".pdf")
LABELS_MAX: Final = 60  # brokers; with more, names would be too small to read
# Inches of the picture and points of names: the first that leave all names apart.
SIZES: Final = ((8.0, 7.0, 9.0), (8.0, 7.0, 7.0), (12.0, 10.5, 7.0), (16.0, 14.0, 6.0))
ROOM: Final = 0.4  # around the outermost ring, in its distance from the next one


def places_of(tree: SpanningTree, brokers: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Where brokers stand: each below its parent, in a sector as wide as it has leaves."""
    root = max(brokers, key=lambda broker: len(tree.neighbours(broker)))
    order, parent = [root], {root: ""}
    for broker in order:
        for near in tree.neighbours(broker):
            if near not in parent:
                parent[near] = broker
                order.append(near)
    leaves = dict.fromkeys(brokers, 0)
    for broker in reversed(order):
        leaves[broker] = leaves[broker] or 1
        if parent[broker]:
            leaves[parent[broker]] += leaves[broker]
    places = {root: (0.0, 0.0)}
    sectors = {root: (0.0, 2 * pi, 0)}
    for broker in order:
        begin, end, depth = sectors[broker]
        children = [near for near in tree.neighbours(broker) if parent[near] == broker]
        width = (end - begin) / max(1, sum(leaves[child] for child in children))
        for child in children:
            share = leaves[child] * width
            angle = begin + share / 2
            places[child] = ((depth + 1) * cos(angle), (depth + 1) * sin(angle))
            sectors[child] = (begin, begin + share, depth + 1)
            begin += share
    return places


def draw_network(model: Model, predicted: Sequence[Predicted], level: Reliability) -> Figure:
    """The picture. Links beside the tree are dashed; brokers without subscribers are white."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    brokers = list(model.graph.brokers)
    places = places_of(model.tree, brokers)
    values = {
        broker: mean_reliability([one for one in predicted if one.subscriber.home == broker], level)
        for broker in brokers
    }
    known = [value for value in values.values() if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    margin = 0.0 if high > low else 0.005
    figure = Figure(figsize=SIZES[0][:2], layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for one, other in model.graph.plain.links:
        is_tree = other in model.tree.neighbours(one)
        (x1, y1), (x2, y2) = places[one], places[other]
        axes.plot(
            [x1, x2],
            [y1, y2],
            color="0.55",
            linewidth=1.2 if is_tree else 0.8,
            linestyle="-" if is_tree else ":",
            zorder=1,
        )
    size = 700 if len(brokers) <= 20 else 300 if len(brokers) <= LABELS_MAX else 60
    with_value = [broker for broker in brokers if values[broker] is not None]
    drawn = axes.scatter(
        [places[broker][0] for broker in with_value],
        [places[broker][1] for broker in with_value],
        c=known,
        vmin=low - margin,
        vmax=high + margin,
        cmap="viridis",
        s=size,
        edgecolors="0.2",
        zorder=2,
    )
    without = [broker for broker in brokers if values[broker] is None]
    axes.scatter(
        [places[b][0] for b in without], [places[b][1] for b in without], c="white", s=size, edgecolors="0.2", zorder=2
    )
    figure.colorbar(drawn, ax=axes, label=f"reliability of subscribers at home there, {level.value}")
    axes.set_title(f"P[delivered within {model.lifetime:g} s], {level.value}: mean over all subscribers "
                   f"{mean_reliability(predicted, level) or 0:.4f}", fontsize=10)  # fmt: skip
    axes.set_axis_off()
    axes.set_aspect("equal")
    radius = ROOM + max(hypot(x, y) for x, y in places.values())
    axes.set(xlim=(-radius, radius), ylim=(-radius, radius))
    if len(brokers) <= LABELS_MAX:
        _write_names(figure, axes, places)
    return figure


def _write_names(figure: Figure, axes: Axes, places: Mapping[str, tuple[float, float]]) -> None:
    """So that no name covers another, in a larger picture if need be; with an edge that sets them off from the dark."""
    from matplotlib.patheffects import withStroke

    edge = [withStroke(linewidth=2.5, foreground="white")]
    names = [
        axes.annotate(broker, place, ha="center", va="center", path_effects=edge, zorder=3)
        for broker, place in places.items()
    ]
    for width, height, points in SIZES:
        figure.set_size_inches(width, height)
        for name in names:
            name.set_fontsize(points)
        figure.draw_without_rendering()
        boxes = [name.get_window_extent() for name in names]
        if not any(one.overlaps(other) for one, other in combinations(boxes, 2)):
            return
    figure.set_size_inches(*SIZES[0][:2])
    for name in names:
        name.remove()
