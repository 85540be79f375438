"""What is computed and drawn of a crash, from made-up arrivals."""

from __future__ import annotations

import math

from experiments.replication.crash import BIN, Bin, in_bins
from experiments.replication.plot import Panel, draw
from holdfast.kernel.time import MILLISECOND
from tests.figures import flaws, heights_of


def test_arrivals_are_counted_in_bins_and_latency_is_of_those_that_have_one() -> None:
    began = 10_000 * MILLISECOND
    arrivals = [
        (began - 1, 9),  # before
        (began, 2 * MILLISECOND),
        (began + 1, 0),
        (began + BIN - 1, 4 * MILLISECOND),
        (began + 2 * BIN, 0),
        (began + 3 * BIN, 9),  # after
    ]
    assert in_bins(arrivals, began, 3 * BIN) == [
        Bin(0, 30.0, 2.0, 4.0),
        Bin(100, 0.0, None, None),
        Bin(200, 10.0, None, None),
    ]


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    panel = Panel("a < b", [0.0, 1.0, 2.0, 3.0], {"rate": [1.0, 2.0, 3.0, 4.0]}, {"p50": [1.0, None, 10.0, 5.0]}, {})
    figure = draw([panel, panel], "two", "1/s", "ms")
    lines = [[heights_of(line) for line in axes.lines] for axes in figure.axes]
    assert [[[y for y in line if not math.isnan(y)] for line in of_axes] for of_axes in lines] == [
        [[1.0, 2.0, 3.0, 4.0]],
        [[1.0, 2.0, 3.0, 4.0]],
        [[1.0, 10.0, 5.0]],
        [[1.0, 10.0, 5.0]],
    ]
    assert math.isnan(lines[2][0][1])
    assert flaws(figure) == []
