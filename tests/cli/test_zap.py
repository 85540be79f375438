"""`holdfast zap generate`: the log it writes, and what it says about options that do not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.apps.zapviewers.audience import Audience
from holdfast.cli.main import main

SMALL = ["zap", "generate", "--boxes", "1000", "--rate", "5"]


def generated(capsysbinary: pytest.CaptureFixture[bytes], *options: str) -> bytes:
    assert main([*SMALL, *options]) == 0
    captured = capsysbinary.readouterr()
    assert b"lines of a synthetic log" in captured.err
    return captured.out


def test_a_log_goes_to_standard_output_or_to_a_file(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    log = generated(capsysbinary, "--duration", "2m")
    assert generated(capsysbinary, "--duration", "120", "--output", str(tmp_path / "zaps.txt")) == b""
    assert (tmp_path / "zaps.txt").read_bytes() == log
    audience = Audience()
    audience.take(log)
    assert audience.lines > 500
    assert (audience.malformed, audience.anomalies) == (0, 0)


def test_options_say_what_is_made(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    channels = tmp_path / "channels.csv"
    channels.write_text("id,name\n1,Blå Kanal\n2,Grønn Kanal\n", encoding="utf-8")
    log = generated(
        capsysbinary,
        *("--seed", "3", "--first-box", "70000", "--day", "2026-11-15", "--from", "07:30", "--count", "40"),
        *("--channels", str(channels)),
    )
    assert log.count(b"\n") == 40
    lines = [line.split(b",") for line in log.splitlines()]
    assert {line[0] for line in lines} == {b"2026-11-15"}
    assert {line[1][:4] for line in lines} <= {b"07:2", b"07:3"}
    assert {line[2][:5] for line in lines} == {b"10.1."}
    assert {name.decode() for line in lines for name in line[3:] if len(line) == 5} == {"Blå Kanal", "Grønn Kanal"}


def test_a_count_stops_a_log_or_its_duration_does(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    whole = generated(capsysbinary, "--duration", "20")
    lines = whole.splitlines(keepends=True)
    assert generated(capsysbinary, "--duration", "20", "--count", "7") == b"".join(lines[:7])
    assert generated(capsysbinary, "--duration", "20", "--count", "100000") == whole
    assert generated(capsysbinary, "--count", "0") == b""


def test_without_options_it_is_a_minute(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert generated(capsysbinary) == generated(capsysbinary, "--duration", "60")


def test_a_log_does_not_depend_on_the_hashes_of_a_process() -> None:
    digests = {
        sha256(
            subprocess.run(
                [sys.executable, "-m", "holdfast.cli", *SMALL, "--duration", "60"],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
        ).hexdigest()
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--boxes", "3"], "give at least 10"),
        (["--boxes", "many"], "'many' is no whole number"),
        (["--seed", "-1"], "'-1' is no whole number"),
        (["--first-box", "6553600"], "numbers from 0 to 6,553,599"),
        (["--rate", "1000"], "at most 11.061"),
        (["--rate", "0"], "more than 0"),
        (["--rate", "nan"], "'nan' is no number of lines a second"),
        (["--day", "2026-02-30"], "'2026-02-30' is no day"),
        (["--day", "9999-12-31"], "no day of the years 1900 to 2999"),
        (["--from", "24:00"], "'24:00' is no time of day"),
        (["--from", "8pm"], "'8pm' is no time of day"),
        (["--duration", "0"], "'0' is no duration"),
        (["--duration", "1w"], "'1w' is no duration"),
        (["--duration", "999d"], "no duration up to a year"),
        (["--channels", "nowhere.csv"], "nowhere.csv: No such file"),
        (["--output", "."], "Is a directory"),
    ],
)
def test_options_that_do_not_fit_are_explained(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main([*SMALL, *options])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "no column 'name'"), (b"name\n\xff\n", "not written in UTF-8"), (b"name\nA\n", "1 channels")],
)
def test_a_file_of_channels_that_is_none_is_named(
    content: bytes, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "channels.csv").write_bytes(content)
    assert main([*SMALL, "--channels", str(tmp_path / "channels.csv")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "channels.csv" in error
