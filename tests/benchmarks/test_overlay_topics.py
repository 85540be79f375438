"""The benchmark of many topics: a small run delivers what brute force says is due, or stops."""

from __future__ import annotations

import pytest

from benchmarks.overlay_topics import measure_topics


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_every_broker_knows_all_topics_and_each_event_finds_its_subscribers(level: str) -> None:
    measured = measure_topics(200, level)
    assert measured.deliveries > 0
    assert measured.entries >= 7 * 200 + 200
