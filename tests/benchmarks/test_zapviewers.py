"""The benchmark of ZapViewers' parts runs, and measures what it names."""

from __future__ import annotations

from benchmarks.zapviewers import measure
from holdfast.apps.zapviewers.channels import INVENTED


def test_it_measures_every_part() -> None:
    found = measure(INVENTED, runs=2, seconds=30, boxes=2_000)
    assert {name for name, value in found.items() if value <= 0} == set()
    assert found["bytes_a_line"] < 60
    assert found["boxes_seen"] <= 2_000
