"""The tables and figures of docs/qos-results/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

import msgspec
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from experiments.drawing import new_figure
from experiments.qos.comparison import Compared
from experiments.qos.topology import MeanPoint, Topology, over_all_runs

Kind = tuple[bool, str, str, float]  # graph or tree, brokers, level, days of a broker's period
Kinds = Mapping[Kind, list[Topology]]
COLOURS = {"periodic": "tab:blue", "buffered": "tab:orange", "bypass": "tab:green", "bypass+buffered": "tab:red"}
RESAMPLED = 400  # times, for the interval of a slope

# The orders that the paper claims, worse first (D1-C10, D1-C11). Of good brokers it leaves open which of the two levels
# that buffer is better.
CLAIMS: tuple[tuple[str, tuple[bool, str, str], tuple[bool, str, str]], ...] = (
    ("D1-C10", (True, "low", "periodic"), (True, "low", "buffered")),
    ("D1-C10", (True, "low", "buffered"), (True, "low", "bypass")),
    ("D1-C10", (True, "low", "bypass"), (True, "low", "bypass+buffered")),
    ("D1-C10", (True, "high", "periodic"), (True, "high", "bypass")),
    ("D1-C10", (True, "high", "bypass"), (True, "high", "buffered")),
    ("D1-C10", (True, "high", "bypass"), (True, "high", "bypass+buffered")),
    ("D1-C11", (False, "low", "periodic"), (False, "low", "buffered")),
    ("D1-C11", (False, "low", "buffered"), (False, "high", "periodic")),
    ("D1-C11", (False, "high", "periodic"), (False, "high", "buffered")),
)


class Agreement(msgspec.Struct, frozen=True):
    """Of predicted and measured values of all subscribers: the root of the mean square of their differences, the
    largest, and their mean."""

    rmse: float
    largest: float
    bias: float


def agreement(values: Sequence[tuple[float, float, int]]) -> Agreement:
    """Of triples: predicted, measured, and how many subscribers."""
    x, y, counts = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    weights = counts / counts.sum()
    difference = y - x
    rmse = sqrt(float((weights * difference**2).sum()))
    return Agreement(rmse, float(abs(difference).max()), float((weights * difference).sum()))


def slope(points: Sequence[MeanPoint]) -> tuple[float, float, float]:
    """Of measured over nominal, and its 95% interval from runs that are drawn again with replacement."""
    x = np.array([point.nominal for point in points])
    weights = np.array([point.count for point in points], dtype=float)
    centred = x - np.average(x, weights=weights)
    spread = float((weights * centred**2).sum())
    if spread < 1e-12:
        return (float("nan"),) * 3
    slopes = np.array([point.measured for point in points]).T @ (weights * centred) / spread  # by run
    drawn = np.random.default_rng(1).choice(slopes, (RESAMPLED, len(slopes))).mean(axis=1)
    return float(slopes.mean()), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def by_kind(compared: Sequence[Compared]) -> dict[Kind, list[Topology]]:
    runs: dict[tuple[Kind, int], list[Compared]] = {}
    for one in compared:
        setup = one.setup
        kind: Kind = (setup.graph, setup.quality, setup.level.value, setup.period_days)
        runs.setdefault((kind, setup.seed), []).append(one)
    kinds: dict[Kind, list[Topology]] = {}
    for (kind, _), found in runs.items():
        kinds.setdefault(kind, []).append(over_all_runs(found))
    return kinds


def points_of(topologies: Sequence[Topology]) -> list[MeanPoint]:
    return [point for topology in topologies for point in topology.points]


def run_means(topologies: Sequence[Topology]) -> list[float]:
    """The mean over all subscribers, of each run."""
    means = []
    for topology in topologies:
        counts = [point.count for point in topology.points]
        for run in range(topology.runs):
            measured = (point.measured[run] * point.count for point in topology.points)
            means.append(sum(measured) / sum(counts))
    return means


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and how far the 95% interval of it goes to either side (Student's)."""
    if len(values) < 2:
        return fmean(values), float("nan")
    reach = float(student.ppf(0.975, len(values) - 1)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return fmean(values), reach


def _mean_of(points: Sequence[MeanPoint], get: Callable[[MeanPoint], float]) -> float:
    return sum(get(point) * point.count for point in points) / sum(point.count for point in points)


def _told(mean: float, reach: float) -> str:
    return f"{mean:.4f}" if np.isnan(reach) else f"{mean:.4f} ± {reach:.4f}"


def _against(points: Sequence[MeanPoint], get: Callable[[MeanPoint], float]) -> Agreement:
    return agreement([(get(point), point.mean, point.count) for point in points])


def _replay(points: Sequence[MeanPoint]) -> Agreement:
    """Of every run for itself."""
    pairs = [(point, run) for point in points for run in range(len(point.measured))]
    return agreement([(point.replayed[run], point.measured[run], point.count) for point, run in pairs])


def _lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def tables(kinds: Kinds) -> str:
    heads = ["graph", "brokers", "level", "runs", "measured, mean", "replay: RMSE", "largest", "own parts: RMSE"]
    heads += ["largest", "nominal: RMSE", "largest", "chance", "slope"]
    rows = []
    for (graph, quality, level, _), topologies in kinds.items():
        points = points_of(topologies)
        cells = []
        for found in (
            _replay(points),
            _against(points, lambda point: point.own),
            _against(points, lambda point: point.nominal),
        ):
            cells += [f"{found.rmse:.4f}", f"{found.largest:.3f}"]
        chance = sqrt(_mean_of(points, lambda point: point.noise**2))
        middle, low, high = slope(points)
        told = _told(*mean_and_interval(run_means(topologies)))
        runs = sum(topology.runs for topology in topologies)
        ends = [f"{chance:.4f}", f"{middle:.2f} ({low:.2f} to {high:.2f})"]
        rows.append(["graph" if graph else "tree", f"{quality}-end", level, str(runs), told, *cells, *ends])
    return _lines(heads, rows)


def unnoticed(kinds: Kinds) -> str:
    rows = []
    for (_, quality, level, _), topologies in kinds.items():
        if level == "bypass":
            points = points_of(topologies)
            rows.append(
                [
                    f"{quality}-end",
                    f"{-_replay(points).bias:.4f}",
                    f"{_mean_of(points, lambda point: point.unnoticed):.4f}",
                ]
            )
    return _lines(["brokers", "below the replay, mean", "expected from cuts that nobody has noticed yet"], rows)


def readings(kinds: Kinds) -> str:
    rows = []
    for (_, quality, level, _), topologies in kinds.items():
        points = points_of(topologies)
        if level != "bypass+buffered":
            continue
        for name in points[0].readings:

            def get(point: MeanPoint, name: str = name) -> float:
                return point.readings[name]

            values = [_mean_of(points, get), _mean_of(points, lambda point: point.mean), _against(points, get).rmse]
            rows.append([f"{quality}-end", name, *(f"{value:.4f}" for value in values)])
    return _lines(["brokers", "reading of Eq. 13", "mean predicted", "mean measured", "RMSE"], rows)


def bounds(kinds: Kinds) -> str:
    rows = []
    for (_, quality, level, _), topologies in kinds.items():
        points = points_of(topologies)
        if level == "bypass":
            slack = max(point.own - (point.bound or 0.0) for point in points)
            values = [_mean_of(points, lambda point: point.bound or 0.0), _mean_of(points, lambda point: point.own)]
            values += [_mean_of(points, lambda point: point.mean), slack]
            rows.append([f"{quality}-end", *(f"{value:.4f}" for value in values)])
    return _lines(["brokers", "Eq. 12, mean", "exact, mean", "measured, mean", "largest slack"], rows)


class Order(msgspec.Struct, frozen=True):
    """One of the paper's claims: a better kind of network and a worse one. `gain` is the difference of measured means,
    with its 95% interval over runs."""

    claim: str
    worse: tuple[bool, str, str]
    better: tuple[bool, str, str]
    gain: float
    reach: float


def orders(kinds: Kinds, period: float) -> list[Order]:
    """The runs of one world at two levels are compared run by run: they have the same failures."""
    found = []
    for claim, worse, better in CLAIMS:
        if (*worse, period) not in kinds or (*better, period) not in kinds:
            continue
        low, high = run_means(kinds[*worse, period]), run_means(kinds[*better, period])
        gain, reach = mean_and_interval([b - a for a, b in zip(low, high, strict=True)])
        found.append(Order(claim, worse, better, gain, reach))
    return found


def order_table(found: Sequence[Order]) -> str:
    def name(kind: tuple[bool, str, str]) -> str:
        return f"{'graph' if kind[0] else 'tree'}, {kind[1]}-end, {kind[2]}"

    rows = []
    for one in found:
        verdict = "holds" if one.gain > 0 else "does not hold"
        if not np.isnan(one.reach) and abs(one.gain) <= one.reach:
            verdict = "open"
        rows.append([one.claim, name(one.worse), name(one.better), _told(one.gain, one.reach), verdict])
    return _lines(["claim", "worse", "better", "gain, measured", "verdict"], rows)


def sweep(kinds: Kinds) -> str:
    """Means by level and by the period of brokers, measured and by nominal parts."""
    levels = list(dict.fromkeys(level for graph, quality, level, _ in kinds if graph and quality == "low"))
    rows = []
    for period in sorted({period for graph, quality, _, period in kinds if graph and quality == "low"}):
        cells = []
        for level in levels:
            points = points_of(kinds[True, "low", level, period])
            runs = sum(topology.runs for topology in kinds[True, "low", level, period])
            predicted = _mean_of(points, lambda point: point.nominal)
            own = _mean_of(points, lambda point: point.own)
            cells.append(f"{_mean_of(points, lambda point: point.mean):.4f} / {own:.4f} / {predicted:.4f}")
        rows.append([f"{period:g} days", str(runs), *cells])
    return _lines(["period", "runs", *levels], rows)


def figure(kinds: Kinds, graph: bool) -> Figure:
    """Predicted against measured, one point for all subscribers of a topic and a home (Figs. 6 and 7)."""
    drawn = new_figure(10, 5.6)
    shown: list[Any] = list(drawn.subplots(1, 2))
    predicted: dict[str, Callable[[MeanPoint], float]] = {
        "nominal parts": lambda point: point.nominal,
        "the runs' own parts": lambda point: point.own,
    }
    for axes, (title, get) in zip(shown, predicted.items(), strict=True):
        low = 1.0
        for (is_graph, quality, level, _), topologies in kinds.items():
            if is_graph != graph:
                continue
            points = points_of(topologies)
            x, y = [get(point) for point in points], [point.mean for point in points]
            low = min(low, *x, *y)
            marker = "o" if quality == "low" else "^"
            axes.scatter(
                x, y, s=9, alpha=0.5, marker=marker, color=COLOURS[level], label=f"{quality}-end, {level}", linewidths=0
            )
        axes.plot([low, 1], [low, 1], color="0.4", linewidth=0.8)
        axes.set_xlabel(f"predicted, from {title}")
        axes.set_ylabel("measured, mean of all runs")
        axes.set_aspect("equal")
        axes.grid(alpha=0.3)
    handles, labels = shown[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, markerscale=2)
    return drawn
