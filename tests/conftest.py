"""Options, profiles and fixtures of the whole test suite."""

import gc
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.leftover_processes import LeftoverProcess, leftover_processes, mark_session
from tests.times import SPENT, note_processor, show_times, spent

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run: a failure is found by everyone or by no one.
settings.register_profile("default", derandomize=True, deadline=None, database=None)
# New examples in every run, and many; a failure prints the blob that reproduces it.
settings.register_profile(
    "long",
    derandomize=False,
    deadline=None,
    max_examples=20_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

# Tests that run only with the option of their marker's name, and why they are skipped without it.
OPTIONAL = {
    "long": "a campaign; --long runs it",
    "browser": "needs Chromium; --browser runs it",
    "cluster": "starts a Spark cluster; --cluster runs it",
}

GARBAGE = (20_000, 20, 20)  # thresholds of the collector; Python's own are 700, 10 and 10

SESSION = pytest.StashKey[str]()
LEFT_BEHIND = pytest.StashKey[list[LeftoverProcess]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run all that CI runs")
    parser.addoption("--long", action="store_true", help="run the campaigns too, with new random examples")
    parser.addoption("--browser", action="store_true", help="look at pages in a real browser too, which is Chromium")
    parser.addoption("--cluster", action="store_true", help="run Spark on a standalone cluster of this machine too")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "default")
    config.stash[SESSION] = mark_session()
    # A shell's background jobs ignore SIGINT, those of nohup SIGHUP; so would all that tests start, and wait for ever.
    # What a process handles itself, be it by doing nothing, has its default again in the processes that it starts.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            if not item.get_closest_marker("smoke"):
                item.add_marker(pytest.mark.full)
        for marker, reason in OPTIONAL.items():
            if item.get_closest_marker(marker) and not config.getoption(f"--{marker}"):
                item.add_marker(pytest.mark.skip(reason=reason))
    if not (config.getoption("--full") or config.getoption("--long")):
        # Not skipped: hundreds of reasons would hide those that a reader should look at.
        left_out = [item for item in items if item.get_closest_marker("full")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now stays until the end, and runs leave little in circles: looking through all of it again and
    again took up to a fifth of the time of simulated runs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    session.config.stash[SPENT] = spent()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    note_processor(item.config, report)
    return report


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """Finds a data file in HOLDFAST_DATA (default ../shared/data) by its name, or skips the test."""
    folder = Path(os.environ.get("HOLDFAST_DATA") or ROOT.parent / "shared" / "data")

    def find(name: str) -> Path:
        path = folder / name
        if not path.is_file():
            pytest.skip(f"the data file {name} is absent (HOLDFAST_DATA names its folder)")
        return path

    return find


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    left_behind = leftover_processes(session.config.stash[SESSION], grace_s=2.0)
    session.config.stash[LEFT_BEHIND] = left_behind
    for process in left_behind:
        process.kill()
    if left_behind and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--full"):
        show_times(terminalreporter)
    left_behind = config.stash.get(LEFT_BEHIND, [])
    if left_behind:
        terminalreporter.section("processes left behind by the tests (now killed)", red=True)
        for process in left_behind:
            terminalreporter.line(f"{process.process}: {process.command}")
