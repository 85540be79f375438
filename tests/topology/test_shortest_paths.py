"""Shortest paths are those of the obvious method, are searched once, and fit their rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, TopologyError
from holdfast.topology.shortest_paths import UNREACHABLE, ShortestPaths

NODES = 7
node = st.integers(0, NODES - 1)
graphs = st.lists(st.tuples(node, node, st.integers(0, 20)), max_size=14)


def relaxed(links: list[tuple[int, int, int]]) -> list[list[int]]:
    """Every pair's delay by relaxing over all nodes in turn: the oracle."""
    far = 10**9
    delays = [[0 if one == other else far for other in range(NODES)] for one in range(NODES)]
    for one, other, delay in links:
        delays[one][other] = delays[other][one] = min(delays[one][other], delay)
    for middle in range(NODES):
        for one in range(NODES):
            for other in range(NODES):
                delays[one][other] = min(delays[one][other], delays[one][middle] + delays[middle][other])
    return [[UNREACHABLE if delay == far else delay for delay in row] for row in delays]


@given(graphs)
def test_delays_are_those_of_the_obvious_method(links: list[tuple[int, int, int]]) -> None:
    paths = ShortestPaths(NODES, links)
    assert [list(paths.delays_from(source)) for source in range(NODES)] == relaxed(links)


@given(graphs, st.lists(st.tuples(node, node), max_size=20))
def test_a_pair_has_the_same_delay_in_any_order_of_questions(
    links: list[tuple[int, int, int]], questions: list[tuple[int, int]]
) -> None:
    paths, expected = ShortestPaths(NODES, links), relaxed(links)
    assert [paths.delay(*question) for question in questions] == [expected[one][other] for one, other in questions]


def test_a_source_is_searched_once_and_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = ShortestPaths._search

    def counted(self: ShortestPaths, source: int) -> Any:
        searched.append(source)
        return search(self, source)

    monkeypatch.setattr(ShortestPaths, "_search", counted)
    paths = ShortestPaths(3, [(0, 1, 5), (1, 2, 5)])
    assert searched == []
    # The way back is read from the row that is there.
    assert [paths.delay(0, 2), paths.delay(0, 1), paths.delay(2, 0), paths.delays_from(0)[2]] == [10, 5, 10, 10]
    assert searched == [0]


def test_a_row_takes_eight_bytes_a_node_and_cannot_be_changed() -> None:
    row = ShortestPaths(100, [(0, 99, 2**50)]).delays_from(0)
    assert row.nbytes == 800
    assert row[99] == 2**50
    with pytest.raises(TypeError, match="read-only"):
        row[99] = 0


@pytest.mark.parametrize("link", [(0, 3, 1), (-1, 0, 1), (0, 1, -1), (0, 1, 2**62)])
def test_a_link_that_no_graph_has_is_refused(link: tuple[int, int, int]) -> None:
    with pytest.raises(TopologyError, match=f"the link {link[0]} – {link[1]} ") as caught:
        ShortestPaths(3, [link])
    assert caught.value.parameter == "links"
    assert isinstance(caught.value, HoldfastError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("source", [-1, 3])
def test_a_source_that_is_no_node_is_refused(source: int) -> None:
    with pytest.raises(TopologyError, match=f"no node {source} "):
        ShortestPaths(3, []).delays_from(source)
