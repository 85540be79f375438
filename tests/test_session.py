"""The test suite's own promises: no process is left behind, campaigns wait for their flag."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leftover_processes import MARK, leftover_processes
from tests.repository import ROOT

RunSuite = Callable[..., subprocess.CompletedProcess[str]]

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

# Waits, as a forgotten broker would wait for its clients, but not for ever.
FORGOTTEN = "import signal; signal.alarm(60); signal.pause()"


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Runs a test module in a session of its own, under this suite's conftest."""
    (tmp_path / "tests").mkdir()
    for name in ["__init__.py", "conftest.py", "leftover_processes.py"]:
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")

    def run(source: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "tests" / "test_inner.py").write_text(source)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    return run


@needs_proc
def test_a_living_child_is_found_and_an_ended_one_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", FORGOTTEN]) as child:
        found = leftover_processes("another session's mark")
        child.kill()
    assert child.pid in [process.process for process in found]
    assert child.pid not in [process.process for process in leftover_processes("another session's mark")]


@needs_proc
def test_a_session_that_leaves_a_process_behind_fails(run_suite: RunSuite) -> None:
    result = run_suite(f"""
import subprocess, sys

def test_that_forgets_an_orphan():
    orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {FORGOTTEN!r}])"
    subprocess.run([sys.executable, "-W", "ignore", "-c", orphan], start_new_session=True, check=True)
""")
    assert "1 passed" in result.stdout
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "left behind" in result.stdout
    assert FORGOTTEN in result.stdout


def test_a_session_that_cleans_up_passes(run_suite: RunSuite) -> None:
    result = run_suite("""
import subprocess, sys

def test_that_waits():
    subprocess.run([sys.executable, "-c", ""], check=True)
""")
    assert result.returncode == pytest.ExitCode.OK, result.stdout
    assert result.stdout.rstrip().splitlines()[-1].strip("= ").startswith("1 passed")


def test_campaigns_run_only_with_their_flag(run_suite: RunSuite) -> None:
    source = """
import pytest
from hypothesis import settings

@pytest.mark.long
def test_campaign():
    assert not settings.default.derandomize

def test_everyday(request):
    assert settings.default.derandomize is not request.config.getoption("--long")
"""
    short = run_suite(source)
    assert "1 passed, 1 skipped" in short.stdout
    assert "--long runs it" in short.stdout
    assert "2 passed" in run_suite(source, "--long").stdout


def test_absent_data_skips_with_a_reason(run_suite: RunSuite) -> None:
    result = run_suite("""
def test_with_data(data_file):
    data_file("no-such-file.txt")
""")
    assert "1 skipped" in result.stdout
    assert "no-such-file.txt is absent" in result.stdout


def test_the_session_is_marked() -> None:
    assert os.environ[MARK].startswith(f"{os.getpid()}.")
