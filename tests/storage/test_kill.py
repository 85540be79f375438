"""A real process is killed while it writes real files: what it said was safe is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from holdfast.storage import LogSettings, open_log
from tests.repository import ROOT

KILLS = 5


def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    folder = str(tmp_path / "log")
    rng = Random(1)
    said = 0
    for _ in range(KILLS):
        command = [sys.executable, "-m", "tests.storage.writing_process", folder]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(rng.randrange(1, 300)):
                said = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().split("\n")[:-1]
        said = int(rest[-1]) if rest else said
        log = open_log(folder, LogSettings(segment_bytes=256 * 1024, verify="all"))
        found = [(number, body) for records in log.scan("a") for number, _, _, _, body in records]
        assert found == [(number, b"%d," % number * 30) for number in range(1, len(found) + 1)]
        assert len(found) >= said
        log.close()
