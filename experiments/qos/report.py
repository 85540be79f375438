"""The tables and figures of docs/qos-results/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

import msgspec
import numpy as np

from experiments.qos.comparison import Compared, Point

Kind = tuple[bool, str, str]  # graph or tree, brokers, level
COLOURS = {"periodic": "tab:blue", "buffered": "tab:orange", "bypass": "tab:green", "bypass+buffered": "tab:red"}


class Agreement(msgspec.Struct, frozen=True):
    """Of predicted and measured values: the root of the mean square of their differences, the largest, their mean, and
    the slope of measured over predicted."""

    rmse: float
    largest: float
    bias: float
    slope: float


def agreement(points: Sequence[Point], predicted: Callable[[Point], float]) -> Agreement:
    x = np.array([predicted(point) for point in points])
    y = np.array([point.measured for point in points])
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread) if spread > 1e-12 else float("nan")
    return Agreement(float(sqrt(((x - y) ** 2).mean())), float(abs(x - y).max()), float((y - x).mean()), slope)


def by_kind(compared: Sequence[Compared]) -> dict[Kind, list[Compared]]:
    kinds: dict[Kind, list[Compared]] = {}
    for one in compared:
        kinds.setdefault((one.setup.graph, one.setup.quality, one.setup.level.value), []).append(one)
    return kinds


def _cells(found: Agreement) -> str:
    return f"{found.rmse:.4f} | {found.largest:.3f}"


def tables(kinds: Mapping[Kind, list[Compared]]) -> str:
    heads = ["graph", "brokers", "level", "runs", "measured, mean", "replay: RMSE", "largest", "own parts: RMSE"]
    heads += ["largest", "nominal: RMSE", "largest", "slope"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for (graph, quality, level), runs in kinds.items():
        points = [point for one in runs for point in one.points]
        replay, own, nominal = (
            agreement(points, get) for get in (lambda p: p.replayed, lambda p: p.paired, lambda p: p.nominal)
        )
        means = [fmean(point.measured for point in one.points) for one in runs]
        spread = f" ± {1.96 * float(np.std(means, ddof=1)) / sqrt(len(means)):.4f}" if len(means) > 1 else ""
        lines.append(
            f"| {'graph' if graph else 'tree'} | {quality}-end | {level} | {len(runs)} | {fmean(means):.4f}{spread} | "
            f"{_cells(replay)} | {_cells(own)} | {_cells(nominal)} | {nominal.slope:.2f} |"
        )
    return "\n".join(lines)


def readings(kinds: Mapping[Kind, list[Compared]]) -> str:
    lines = ["| brokers | reading of Eq. 13 | mean predicted | mean measured | RMSE |", "|---|---|---|---|---|"]
    for (_, quality, level), runs in kinds.items():
        points = [point for one in runs for point in one.points]
        if level != "bypass+buffered":
            continue
        for name in points[0].readings:
            found = agreement(points, lambda point, name=name: point.readings[name])  # type: ignore[misc]
            mean = fmean(point.readings[name] for point in points)
            measured = fmean(point.measured for point in points)
            lines.append(f"| {quality}-end | {name} | {mean:.4f} | {measured:.4f} | {found.rmse:.4f} |")
    return "\n".join(lines)


def bounds(kinds: Mapping[Kind, list[Compared]]) -> str:
    lines = ["| brokers | Eq. 12, mean | exact, mean | measured, mean |", "|---|---|---|---|"]
    for (_, quality, level), runs in kinds.items():
        points = [point for one in runs for point in one.points if point.bound is not None]
        if level == "bypass":
            values = [fmean(point.bound or 0.0 for point in points), fmean(point.paired for point in points)]
            values.append(fmean(point.measured for point in points))
            lines.append(f"| {quality}-end | " + " | ".join(f"{value:.4f}" for value in values) + " |")
    return "\n".join(lines)


def figure(kinds: Mapping[Kind, list[Compared]], graph: bool, path: str) -> None:
    """Predicted by nominal parts against measured, one point for each subscriber (Figs. 6 and 7)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 5.6), layout="constrained")
    FigureCanvasAgg(drawn)
    shown: list[Any] = list(drawn.subplots(1, 2))
    predicted: dict[str, Callable[[Point], float]] = {
        "nominal parts": lambda point: point.nominal,
        "the run's own parts": lambda point: point.paired,
    }
    for axes, (title, get) in zip(shown, predicted.items(), strict=True):
        low = 1.0
        for (is_graph, quality, level), runs in kinds.items():
            if is_graph != graph:
                continue
            points = [point for one in runs for point in one.points]
            x, y = [get(point) for point in points], [point.measured for point in points]
            low = min(low, *x, *y)
            marker = "o" if quality == "low" else "^"
            axes.scatter(
                x, y, s=9, alpha=0.5, marker=marker, color=COLOURS[level], label=f"{quality}-end, {level}", linewidths=0
            )
        axes.plot([low, 1], [low, 1], color="0.4", linewidth=0.8)
        axes.set_xlabel(f"predicted, from {title}")
        axes.set_ylabel("measured")
        axes.set_aspect("equal")
        axes.grid(alpha=0.3)
    handles, labels = shown[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    drawn.savefig(path, dpi=120)
