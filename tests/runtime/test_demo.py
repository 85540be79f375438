"""What the demos run that start brokers: they prove what they show, also without a terminal, and leave nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from examples import standing_in, take_over, through_brokers, who_watches
from examples.recount import Entry, Evidence, Proof, ReplicaState, judge, recount, replay
from examples.showing import INTERRUPTED
from experiments.replication.verdict import Verdict
from tests.apps.zapviewers.reports import payload, report, zap

GROUP, ZAPVIEWERS, NETWORK, STAND_IN = (
    [sys.executable, "-m", f"examples.{name}"]
    for name in ("take_over", "who_watches", "through_brokers", "standing_in")
)


def left_behind(output: str, brokers: int = 3) -> list[str]:
    """Brokers whose processes are still there, and files."""
    processes = re.findall(r"process (\d+)", output)
    assert len(processes) == brokers
    folders = Path(tempfile.gettempdir()).glob("holdfast-demo-*")
    running = [process for process in processes if _is_broker(process)]
    return running + [str(folder) for folder in folders if _belongs(folder, output)]


def _is_broker(process: str) -> bool:
    command = Path("/proc", process, "cmdline")
    return command.exists() and b"holdfast.cli" in command.read_bytes()


def _belongs(folder: Path, output: str) -> bool:
    address = re.findall(r"serves at (\S+),", output)[0]
    return any(address in site.read_text() for site in folder.glob("*.toml"))


@pytest.mark.parametrize(
    "command",
    [pytest.param(ZAPVIEWERS, id="zapviewers", marks=pytest.mark.full), pytest.param(GROUP, id="group")],
)
def test_the_demo_kills_the_leader_and_proves_that_nothing_is_lost(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout
    killed = re.findall(r"kill -9 for (r\d), which leads", done.stdout)
    now = re.findall(r"(r\d) leads now", done.stdout)
    assert len(killed) == len(now) == 1
    assert killed != now
    assert f"{killed[0]} has caught up" in done.stdout
    assert "0 lost, 0 doubled" in done.stdout
    assert "proved: " in done.stdout.splitlines()[-1]
    assert left_behind(done.stdout) == []


@pytest.mark.full
def test_the_demo_of_a_network_kills_a_broker_in_the_middle_and_proves_that_nothing_is_lost() -> None:
    """D1-C3: and status shows meanwhile who is down, and what waits for it."""
    done = subprocess.run(NETWORK, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout
    assert "kill -9 for b3" in done.stdout
    assert re.findall(r"got: b5 (\d+) of \d+, b6 \d+ of \d+, b7 120 of 120", done.stdout)
    (waiting,) = re.findall(r"b3 is down, say b2, b5, b6; (\d+) events wait there", done.stdout)
    assert int(waiting) > 0
    assert "proved: 180 quotes were accepted" in done.stdout.splitlines()[-1]
    assert left_behind(done.stdout, brokers=7) == []


@pytest.mark.full
def test_the_demo_of_stand_ins_replaces_a_broker_and_gives_its_place_back() -> None:
    """D0-B2: nobody operates it. A broker is slow at first, and relieved; then it is killed, and those beyond it get
    all that was published meanwhile when it is replaced."""
    done = subprocess.run(STAND_IN, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\033" not in done.stdout
    said = [r"watch: .* b8 shares the work of b3", r"over: b8 shares the work of b3", r"kill -9 for b3"]
    said += [r"watch: .* b8 stands in for b3", r"b3 is started again", r"over: b8 stands in for b3"]
    said += [r"b3 needs a stand-in \(congestion\)", r"b3 needs a stand-in \(crash\)", r"b3 is well again"]
    assert re.search(".*".join(said), done.stdout, re.DOTALL), done.stdout
    prompt = dict(re.findall(r"  ([\w -]+), \d.* behind b3 (\d+)% within 20 ms", done.stdout))
    assert int(prompt["relieved"]) > int(prompt["until it was relieved"])
    assert int(prompt["with the stand-in"]) > int(prompt["until the stand-in was there"])
    assert "nobody operated it" in done.stdout.splitlines()[-1]
    assert left_behind(done.stdout, brokers=9) == []


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(number: signal.Signals) -> None:
    with subprocess.Popen(ZAPVIEWERS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
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
    quotes = through_brokers.Scene(cast(Any, None))
    quotes.accepted, quotes.got = [{"number": 1, "price": 120.0, "symbol": "IBM"}], {"b5": [1], "b7": []}
    assert through_brokers.conclude(quotes) == 1
    assert "FAILED: b7 did not get exactly what was wanted" in capsys.readouterr().out
    for got, problem in (([2, 1], "twice or out of order"), ([1], "that b3 never had: [2]")):
        standing = standing_in.Scene(cast(Any, None))
        standing.accepted, standing.got = 2, {"b5": got}
        assert standing_in.conclude(standing, {1}, range(0)) == 1
        assert problem in capsys.readouterr().out
    assert take_over.conclude(Verdict(2, 1, (1,), 1, 0, 0, ("one is missing",))) == 1
    assert "FAILED" in capsys.readouterr().out
    assert who_watches.conclude(Proof(2, 1, 1, 0, 1, 0, ("one is missing",))) == 1
    assert "FAILED: one is missing" in capsys.readouterr().out


@pytest.mark.full
def test_the_top_ten_is_shown_in_place_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(ZAPVIEWERS, stdout=theirs, env=environment) as demo:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # how Linux says that the other side is closed
            while more := os.read(ours, 100_000):
                shown += more
    os.close(ours)
    assert demo.returncode == 0
    pages = shown.decode().split("\x1b[13F\x1b[J")
    assert len(pages) > 5
    assert sum("  1  " in page and " 10  " in page and "is dead" in page for page in pages) > 0
    assert "proved: " in pages[-1]


# ------------------------------------------------------------------------------------------------------- the proof
LINES = (
    zap(1, "A", "X"),
    zap(2, "A", "X"),
    report(1, "power off"),
    zap(3, "B", "A"),
    report(2, "volume 3"),
    report(1, "power on"),
    report(4, "power on"),
    zap(3, "C", "B"),
    report(2, "power off"),
)


def evidence() -> Evidence:
    """Of a run in which all went well: three publications and a top list."""
    payloads = [payload(*LINES[:3]), payload(*LINES[3:6]), payload(*LINES[6:])]
    log = [Entry(place, "zap", (1, place), data) for place, data in enumerate(payloads, 1)]
    log.append(Entry(4, "zap-top", (0, 0), b"[]"))
    counts = json.loads(replay(log).execute(b'{"ask": "counts"}'))
    states = {name: ReplicaState(4, "same") for name in ("r1", "r2", "r3")}
    return Evidence([(1, 1), (1, 2), (1, 3)], log, states, {"A": 1, "C": 1}, counts)


def test_viewers_are_counted_again_by_other_means() -> None:
    good = evidence()
    assert recount(entry.payload for entry in good.log if entry.topic == "zap") == {"A": 1, "C": 1}
    assert dict(replay(good.log).compute_top_list(10)) == {"A": 1, "C": 1}
    assert judge(good) == Proof(3, 9, 0, 0, 4, 2, ())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"acknowledged": [(1, 1), (1, 2), (1, 3), (2, 1)]}, "1 publications were acknowledged and are not in the log"),
        ({"log": [*evidence().log, evidence().log[0]]}, "1 publications are in the log again"),
        ({"log": evidence().log[1:]}, "positions are not 1 to 3"),
        ({"states": {"r1": ReplicaState(4, "same"), "r2": ReplicaState(3, "same")}}, "not all at position 4"),
        (
            {"states": {"r1": ReplicaState(4, "same"), "r2": ReplicaState(4, "other")}},
            "viewerships of the replicas differ",
        ),
        ({"top": {"A": 2, "C": 1}}, "others watch A"),
        ({"counts": {**evidence().counts, "audience": "?"}}, "audience: ?, and "),
    ],
)
def test_the_proof_fails_if_anything_is_wrong(change: dict[str, Any], problem: str) -> None:
    assert any(problem in found for found in judge(evidence()._replace(**change)).problems)
