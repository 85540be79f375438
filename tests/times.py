"""What each folder of tests costs: said at the end of a full run.

Seconds of the clock depend on what else runs on the machine; those of the processor hardly do. They are the test
process's own and those of the processes that it started and that have ended.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest

PROCESSOR = "processor_s"  # a property of a report
SPENT = pytest.StashKey[float]()  # by the time of the last report


def spent() -> float:
    """Seconds of the processor, of this process and those that it waited for."""
    return sum(os.times()[:4])


def note_processor(config: pytest.Config, report: pytest.TestReport) -> None:
    """Says in a report what was spent since the one before."""
    now = spent()
    report.user_properties.append((PROCESSOR, now - config.stash[SPENT]))
    config.stash[SPENT] = now


def seconds_by_folder(reports: Iterable[pytest.TestReport]) -> list[tuple[str, int, float, float]]:
    """Folders with how many tests ran there, and how long they took together by the clock and of the processor, the
    costliest first."""
    seconds: Counter[str] = Counter()
    processor: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in reports:
        folder = report.nodeid.partition("::")[0].rpartition("/")[0]
        seconds[folder] += report.duration  # type: ignore[assignment]  # a Counter holds floats as well
        processor[folder] += sum(value for name, value in report.user_properties if name == PROCESSOR)  # type: ignore[misc]
        tests[folder] += report.when == "call"
    return [(folder, tests[folder], seconds[folder], cost) for folder, cost in processor.most_common()]


def show_times(terminal: pytest.TerminalReporter) -> None:
    reports = [report for some in terminal.stats.values() for report in some if isinstance(report, pytest.TestReport)]
    terminal.section("seconds by folder, summed over all processes: by the clock, and of the processor")
    for folder, tests, seconds, processor in seconds_by_folder(reports):
        terminal.line(f"{seconds:8.1f} s {processor:8.1f} s {tests:6,} tests  {folder}")
    terminal.line(f"{sum(spent for *_, spent in seconds_by_folder(reports)):19.1f} s of the processor in all")
