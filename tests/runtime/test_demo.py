"""What ./demo runs: it proves what it shows, says so without colours where there is no terminal, and leaves nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from examples.take_over import INTERRUPTED, conclude
from experiments.replication.verdict import Verdict

COMMAND = [sys.executable, "-m", "examples.take_over"]


def left_behind(output: str) -> list[str]:
    """Replicas whose processes are still there, and files."""
    processes = re.findall(r"process (\d+)", output)
    assert len(processes) == 3
    folders = Path(tempfile.gettempdir()).glob("holdfast-demo-*")
    running = [process for process in processes if _is_replica(process)]
    return running + [str(folder) for folder in folders if _belongs(folder, output)]


def _is_replica(process: str) -> bool:
    command = Path("/proc", process, "cmdline")
    return command.exists() and b"holdfast.cli" in command.read_bytes()


def _belongs(folder: Path, output: str) -> bool:
    site = folder / "group.toml"
    return site.exists() and re.findall(r"serves at (\S+),", output)[0] in site.read_text()


def test_the_demo_kills_the_leader_and_proves_that_nothing_is_lost() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout
    killed = re.findall(r"kill -9 for (r\d), which leads", done.stdout)
    now = re.findall(r"(r\d) leads now", done.stdout)
    assert len(killed) == len(now) == 1
    assert killed != now
    assert f"{killed[0]} has caught up" in done.stdout
    assert "0 lost, 0 doubled, 0 out of order" in done.stdout
    assert "proved: " in done.stdout.splitlines()[-1]
    assert left_behind(done.stdout) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(number: signal.Signals) -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        output = ""
        while "kill -9" not in output:
            line = demo.stdout.readline()
            assert line
            output += line
        demo.send_signal(number)
        rest, problems = demo.communicate(timeout=60)
    assert demo.returncode == INTERRUPTED
    assert problems == ""
    assert "interrupted" in rest.splitlines()[-1]
    assert left_behind(output) == []


def test_a_failed_proof_is_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude(Verdict(2, 1, (1,), 1, 0, 0, ("one is missing",))) == 1
    assert "FAILED" in capsys.readouterr().out
