"""Runs the linter, the type checker and the tests of a tier, and says how long each part took. ./test calls it.

With --full all tests run: those that share a Spark session in one process, and beside it all others in one process for
each core. Without arguments only those run that find mistakes fast, in one process more than there are cores: some wait
for sockets and clocks. Other arguments go to pytest, in one process. When lint or types fail, no test runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, NamedTuple

WORKERS = min(8, max(2, os.cpu_count() or 2))
CHECKS = {
    "lint": ["ruff", "check", "--quiet", "."],
    "format": ["ruff", "format", "--check", "--quiet", "."],
    "types": ["mypy", "--no-error-summary"],
}


def shared_out(workers: int) -> list[str]:
    return ["pytest", "--numprocesses", str(workers), "--dist", "worksteal"]


TIERS = {(): "quick", ("--full",): "full"}
LANES = {
    "quick": {"tests": shared_out(WORKERS + 1)},
    "full": {
        "tests with Spark": ["pytest", "--full", "-m", "spark"],
        "other tests": [*shared_out(WORKERS), "--full", "-m", "not spark"],
    },
}


class Part(NamedTuple):
    name: str
    seconds: float
    code: int


def run_together(commands: dict[str, list[str]]) -> list[Part]:
    """Runs commands beside one another. The last one's output is shown as it comes, that of the others at the end."""
    begun = time.monotonic()
    last = list(commands)[-1]
    running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes] | None]] = {}
    for name, command in commands.items():
        output = None if name == last else tempfile.TemporaryFile()  # noqa: SIM115  # open until it is shown
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=output, stderr=output)
        running[name] = (process, output)
    ended: dict[str, Part] = {}
    try:
        while len(ended) < len(running):
            for name, (process, _) in running.items():
                if name not in ended and process.poll() is not None:
                    ended[name] = Part(name, time.monotonic() - begun, process.returncode)
            time.sleep(0.05)
    except KeyboardInterrupt:  # all that runs here is interrupted with this process, and cleans up
        for process, _ in running.values():
            process.wait()
        raise
    for name, (_, output) in running.items():
        if output is not None:
            with output:
                output.seek(0)
                print(f"\n{name}:", flush=True)
                sys.stdout.buffer.write(output.read())
                sys.stdout.buffer.flush()
    return [ended[name] for name in commands]


def main(arguments: Sequence[str]) -> int:
    tier = TIERS.get(tuple(arguments), "chosen")
    lanes = LANES.get(tier, {"tests": ["pytest", *arguments]})
    begun = time.monotonic()
    parts = [part for name, command in CHECKS.items() for part in run_together({name: command})]
    if not any(part.code for part in parts):
        parts += run_together(lanes)
    print(f"\nhow long it took ({tier} tests):")
    for part in [*parts, Part("all", time.monotonic() - begun, max(abs(part.code) for part in parts))]:
        print(f"{part.seconds:8.1f} s  {part.name}{'' if part.code == 0 else ': failed'}")
    return int(any(part.code for part in parts))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
