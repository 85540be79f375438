"""Finds processes that a test session started and did not end.

A process counts as left behind if it descends from this one, or if its environment holds this session's mark
(which finds it even after its parent has gone). Needs /proc; where that is missing, nothing is found.
"""

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "HOLDFAST_TEST_SESSION"
_PROC = Path("/proc")
# Python starts it beside the first pool of processes, and it goes when this process does.
_ENDS_WITH_ITS_PARENT = "multiprocessing.resource_tracker"


@dataclass(frozen=True)
class LeftoverProcess:
    """One living process, with the command line that started it."""

    process: int
    command: str

    def kill(self) -> None:
        """End it; a process that has gone meanwhile is fine."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)


def mark_session() -> str:
    """Mark this process, so that all processes started from now on carry the mark; returns the mark."""
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    os.environ[MARK] = mark
    return mark


def leftover_processes(mark: str, grace_s: float = 0.0) -> list[LeftoverProcess]:
    """The living processes of this session besides this one, once they had grace_s to end by themselves."""
    deadline = time.monotonic() + grace_s
    while (found := _living(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _living(mark: str) -> list[LeftoverProcess]:
    parents: dict[int, int] = {}
    marked: set[int] = set()
    needle = f"{MARK}={mark}".encode()
    for entry in _PROC.glob("[0-9]*"):
        try:
            # The command's name is in parentheses and may itself hold blanks and parentheses.
            state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state in {"Z", "X"}:
                continue
            process = int(entry.name)
            parents[process] = int(parent)
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                marked.add(process)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    own = os.getpid()
    ours = marked | {process for process in parents if _descends(process, own, parents)}
    found = [LeftoverProcess(process, _command(process)) for process in sorted(ours - {own})]
    return [process for process in found if _ENDS_WITH_ITS_PARENT not in process.command]


def _descends(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process == ancestor:
            return True
    return False


def _command(process: int) -> str:
    try:
        words = (_PROC / str(process) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    return b" ".join(words).decode(errors="replace").strip() or "?"
