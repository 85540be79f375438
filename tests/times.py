"""What each folder of tests costs: said at the end of a full run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def seconds_by_folder(reports: Iterable[pytest.TestReport]) -> list[tuple[str, int, float]]:
    """Folders with how many tests ran there and how long they took together, the costliest first."""
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in reports:
        folder = report.nodeid.partition("::")[0].rpartition("/")[0]
        seconds[folder] += report.duration  # type: ignore[assignment]  # a Counter holds floats as well
        tests[folder] += report.when == "call"
    return [(folder, tests[folder], cost) for folder, cost in seconds.most_common()]


def show_times(terminal: pytest.TerminalReporter) -> None:
    reports = [report for some in terminal.stats.values() for report in some if isinstance(report, pytest.TestReport)]
    terminal.section("seconds by folder, summed over all processes")
    for folder, tests, seconds in seconds_by_folder(reports):
        terminal.line(f"{seconds:8.1f} s {tests:6,} tests  {folder}")
