"""`holdfast trace`: story, check and summary, on good files and bad ones."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.cli import trace_file
from holdfast.cli.main import main
from holdfast.sim.swarm import checkers_of
from holdfast.trace.schema import Header
from holdfast.trace.story import story
from holdfast.trace.summary import summary
from holdfast.trace.writer import TraceWriter
from tests.trace.example import example_run
from tests.trace.runs import HEADER, Run


def trace_bytes(run: Run) -> bytes:
    sink = io.BytesIO()
    writer = TraceWriter(run.header, sink)
    for row in run.rows:
        writer.write(row)
    return sink.getvalue()


def saved(run: Run, folder: Path) -> str:
    path = folder / "run.jsonl"
    path.write_bytes(trace_bytes(run))
    return str(path)


def good() -> Run:
    return Run().subscribe("s/1/1").publish("p/1/1").deliver("s/1/1", "p/1/1")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`holdfast trace …`: its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["trace", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


Call = Callable[..., tuple[int, str, str]]


def test_story_and_summary_print_what_the_library_says(call: Call, tmp_path: Path) -> None:
    run = example_run()
    path = saved(run, tmp_path)
    told = "".join(f"{line}\n" for line in story(run.header, run.rows, "feed/1/1"))
    assert call("story", "feed/1/1", "--trace", path) == (0, told, "")
    counted = "".join(f"{line}\n" for line in summary(run.header, run.rows))
    assert call("summary", "--trace", path) == (0, counted, "")


def test_the_event_may_stand_before_the_files_or_behind_them(call: Call, tmp_path: Path) -> None:
    path = saved(example_run(), tmp_path)
    assert call("story", "--trace", path, "feed/1/1") == call("story", "feed/1/1", "--trace", path)
    assert call("story", "--trace", path) == (2, "", "holdfast: say which event: its id, for instance p1/1/17\n")


def test_an_unknown_event_is_bad_input(call: Call, tmp_path: Path) -> None:
    answer = call("story", "fed/1/1", "--trace", saved(example_run(), tmp_path))
    assert answer == (2, "", "holdfast: the trace has no event 'fed/1/1'; did you mean feed/1/1?\n")


def test_check_asks_for_what_every_scheme_promises(call: Call, tmp_path: Path) -> None:
    path = saved(good(), tmp_path)
    assert call("check", "--trace", path) == (
        0,
        "ok      only-matching\nok      at-most-once\nok      bounded-queues\n",
        "",
    )


def test_check_asks_for_what_the_header_promises(call: Call, tmp_path: Path) -> None:
    run = Run(replace(HEADER, promises=["liveness", "weak-ordered:b2"]))
    assert call("check", "--trace", saved(run, tmp_path)) == (0, "ok      liveness\nok      weak-ordered:b2\n", "")
    assert call("check", "--trace", saved(run, tmp_path), "--checkers", "complete") == (0, "ok      complete\n", "")


def test_check_asks_for_all(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("check", "--trace", saved(good(), tmp_path), "--checkers", "all")
    assert code == 0
    assert out.split() == [
        word for name, entry in checkers_of(HEADER.system).items() if not entry.argument for word in ("ok", name)
    ]


def test_check_shows_violations_and_exits_with_1(call: Call, tmp_path: Path) -> None:
    path = saved(good().deliver("s/1/1", "p/1/1", "p/1/1", "p/1/1"), tmp_path)
    assert call("check", "--trace", path, "--checkers", "liveness,at-most-once", "--show", "2") == (
        1,
        "ok      liveness\n"
        "FAILED  at-most-once: 3 violations\n"
        "        at 5.000 ms: s/1/1 got p/1/1 a second time\n"
        "        at 6.000 ms: s/1/1 got p/1/1 a second time\n"
        "        and 1 more; --show 3 shows all\n",
        "",
    )


def test_text_of_a_trace_does_not_command_the_terminal(call: Call, tmp_path: Path) -> None:
    path = saved(Run(replace(HEADER, run="r\x1b[2J")).deliver("s\x07/1/1", "p/1/1"), tmp_path)
    assert call("summary", "--trace", path)[1].startswith("run r\ufffd[2J, system tree")
    assert "s\ufffd got p/1/1" in call("check", "--trace", path)[1]


def test_one_violation_is_one(call: Call, tmp_path: Path) -> None:
    path = saved(good().publish("p/1/2", acknowledge=False), tmp_path)
    code, out, _ = call("check", "--trace", path, "--checkers", "liveness")
    expected = "FAILED  liveness: 1 violation\n        at 5.000 ms: p never learned whether p/1/2 was accepted\n"
    assert (code, out) == (1, expected)


def test_a_count_of_violations_that_was_cut_short_says_so(call: Call, tmp_path: Path) -> None:
    path = saved(good().deliver("s/1/1", *["p/1/1"] * 1005), tmp_path)
    code, out, _ = call("check", "--trace", path, "--show", "0")
    assert code == 1
    assert "FAILED  at-most-once: at least 1000 violations\n" in out


@pytest.mark.parametrize(
    ("run", "arguments", "problem"),
    [
        (Run(), ("--checkers", "order"), "there is no checker 'order'; there are only-matching, "),
        (Run(), ("--checkers", "liveness,,"), "there is no checker ''; there are only-matching, "),
        (Run(), ("--checkers", "weak-ordered"), "checker 'weak-ordered' needs an argument: weak-ordered:BROKER"),
        (
            Run(Header(run="r", system="x", promises=["liveness", "odd"])),
            (),
            "the trace of r is of the scheme 'x', which is not known here; there is no checker 'odd'; there are ",
        ),
        (Run(Header(run="r", system="x", sampled=True)), (), "the trace of r leaves rows out (it is sampled)"),
    ],
)
def test_what_can_not_be_checked_is_bad_input(
    call: Call, tmp_path: Path, run: Run, arguments: tuple[str, ...], problem: str
) -> None:
    code, out, err = call("check", "--trace", saved(run, tmp_path), *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"holdfast: {problem}")
    assert "Traceback" not in err


def test_a_wrong_number_to_show_is_wrong_usage(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        call("check", "--trace", "x", "--show", "-1")
    assert "a number is needed here, not '-1'" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress), ("jsonl", bytes)])
def test_a_trace_may_be_compressed_and_may_come_from_standard_input(
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    compress: Callable[[bytes], bytes],
) -> None:
    run = good()
    data = compress(trace_bytes(run))
    path = tmp_path / f"run.jsonl.{suffix}"
    path.write_bytes(data)
    expected = (0, "".join(f"{line}\n" for line in summary(run.header, run.rows)), "")
    assert call("summary", "--trace", str(path)) == expected
    standard_input = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdin", standard_input)
    assert call("summary", "--trace", "-") == expected


LINES = trace_bytes(Run().publish(*(f"p/1/{n}" for n in range(1, 200))))
XZ = lzma.compress(LINES)
GZ = gzip.compress(LINES, mtime=0)  # the same bytes in every process that collects this


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1: a trace begins with a header line, 'holdfast-trace' in it; here is nothing"),
        (b"{}\n", "line 1: this is no header of a trace: Object missing required field `format`"),
        (b"PK\x03\x04", "line 1: this is no header of a trace: JSON is malformed"),
        (LINES[:-5], "line 399: the trace is cut off in the middle of this line, its last"),
        (LINES + b"oops\n", "line 400: this is no row of a trace: JSON is malformed"),
        (GZ[:-100], "line "),
        (GZ[:40], "line 1: the compressed file is cut off here"),
        (GZ[:40] + b"\xff" * 40, "line 1: the compressed file is damaged: "),
        (GZ[:-8] + bytes(8), "line "),
        (XZ[:-20], "line "),
        (XZ[:60] + b"\xff" * 60, "line 1: the compressed file is damaged: "),
    ],
)
def test_a_bad_file_is_named_with_its_line(call: Call, tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    code, out, err = call("summary", "--trace", str(path))
    assert (code, out) == (2, "")
    assert err.startswith(f"holdfast: {path}, {problem}")
    assert err.count("\n") == 1


def test_a_bad_line_of_standard_input_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"oops\n")))
    code, _, err = call("summary", "--trace", "-")
    assert code == 2
    assert err.startswith("holdfast: standard input, line 1: this is no header of a trace")


def test_a_line_without_end_is_not_read_into_memory(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "LINE_BYTES_MAX", 500)
    path = tmp_path / "endless"
    path.write_bytes(LINES + b"x" * 501)
    expected = (2, "", f"holdfast: {path}, line 400: the line is longer than 500 bytes\n")
    assert call("summary", "--trace", str(path)) == expected


def test_reliability_prints_shares_and_as_json_numbers(call: Call, tmp_path: Path) -> None:
    run = Run().subscribe("s/1/1", "t/1/1").publish("p/1/1", "p/1/2").deliver("s/1/1", "p/1/1")
    code, out, _ = call("reliability", "--trace", saved(run, tmp_path))
    assert code == 0
    assert out.splitlines() == [
        "s/1/1  every event  0.50000  1 of 2 on time",
        "t/1/1  every event  0.00000  0 of 2 on time",
        "all 2               0.25000  1 of 4 on time",
    ]
    code, out, _ = call("reliability", "--trace", saved(run, tmp_path), "--json")
    document = json.loads(out)
    assert (code, document["run"], document["total"]) == (0, "hand/1", {"wanted": 4, "on_time": 1, "ratio": 0.25})
    assert document["subscriptions"][0] == {
        "subscription": "s/1/1",
        "subscriber": "s",
        "wanted": 2,
        "on_time": 1,
        "ratio": 0.5,
    }


def test_reliability_of_a_sampled_trace_is_refused(call: Call, tmp_path: Path) -> None:
    code, _, err = call("reliability", "--trace", saved(Run(replace(HEADER, sampled=True)), tmp_path))
    assert code == 2
    assert "sampled" in err
