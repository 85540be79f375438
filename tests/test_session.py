"""The test suite's own promises: no process is left behind, tiers hold, what is started can be interrupted."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.leftover_processes import MARK, leftover_processes
from tests.repository import ROOT
from tests.tiers import blocks, one_always

RunSuite = Callable[..., subprocess.CompletedProcess[str]]

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

# Waits, as a forgotten broker would wait for its clients, but not for ever.
FORGOTTEN = "import signal; signal.alarm(60); signal.pause()"


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Runs a test module in a session of its own, under this suite's conftest."""
    (tmp_path / "tests").mkdir()
    for name in ["__init__.py", "conftest.py", "leftover_processes.py", "times.py"]:
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests" / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")

    def run(source: str, *options: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        (tmp_path / "tests" / "test_inner.py").write_text(source)
        command = [*before, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
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


def test_what_takes_its_time_runs_only_when_all_is_wanted(run_suite: RunSuite) -> None:
    source = """
import pytest

@pytest.mark.full
def test_that_takes_its_time():
    pass

@pytest.fixture
def spark():
    pass

def test_with_spark(spark):
    pass

@pytest.mark.smoke
def test_of_spark_in_every_run(spark):
    pass
"""
    short = run_suite(source)
    assert "1 passed, 2 deselected" in short.stdout
    full = run_suite(source, "--full")
    assert "3 passed" in full.stdout
    assert "3 tests  tests" in full.stdout, "what each folder costs"
    assert "3 passed" in run_suite(source, "--long").stdout
    assert "2 passed, 1 deselected" in run_suite(source, "--full", "-m", "spark").stdout


@pytest.mark.parametrize("options", [(), ("--numprocesses", "1")], ids=["one process", "workers"])
def test_a_full_run_says_what_a_folder_cost_the_processor_also_in_other_processes(
    run_suite: RunSuite, options: Sequence[str]
) -> None:
    source = """
import subprocess, sys

def test_that_waits_for_one_that_works():
    work = "import time; begun = time.process_time()\\nwhile time.process_time() < begun + 0.5: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
"""
    told = run_suite(source, "--full", *options).stdout
    (seconds,) = re.findall(r"[0-9.]+ s +([0-9.]+) s +1 tests  tests", told)
    assert float(seconds) >= 0.5, told
    assert f"{seconds} s of the processor in all" in told


@pytest.mark.parametrize("options", one_always([(), ("--numprocesses", "1")]), ids=["one process", "workers"])
def test_what_tests_start_can_be_interrupted_though_the_shell_ignores_it(
    run_suite: RunSuite, options: Sequence[str]
) -> None:
    """As it does for background jobs."""
    source = """
import signal, subprocess, sys

def test_that_interrupts():
    with subprocess.Popen([sys.executable, "-c", "print('up', flush=True); input()"], stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == -signal.SIGINT
"""
    ignoring = ("/bin/sh", "-c", 'trap \'\' INT; exec "$0" "$@"')
    result = run_suite(source, *options, before=ignoring)
    assert "1 passed" in result.stdout, result.stdout


def test_an_eighth_of_the_seeds_is_in_every_run() -> None:
    drawn = blocks(1_010, 50)
    assert [seed for block in drawn for seed in block.values[0]] == list(range(1, 1_011))
    assert [bool(block.marks) for block in drawn] == [False] * 3 + [True] * 18
    assert [block.values[0] for block in blocks(3, 50, first=0)] == [range(3)]


def test_absent_data_skips_with_a_reason(run_suite: RunSuite) -> None:
    result = run_suite("""
def test_with_data(data_file):
    data_file("no-such-file.txt")
""")
    assert "1 skipped" in result.stdout
    assert "no-such-file.txt is absent" in result.stdout


def test_the_session_is_marked() -> None:
    assert os.environ[MARK].startswith(f"{os.getpid()}.")
