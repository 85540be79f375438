"""Starts a program that outlives who starts it, and says which process it is; and tells whether that one is there.

    python launch.py RECORD LOG PROGRAM [ARGUMENT …]

The program's parent ends at once, so that nobody has to wait for it, and what happens to whoever started it does not
happen to it. Which process it is stands in RECORD before it begins: a crash in between leaves none that nobody knows.
This file imports nothing of Holdfast, and runs by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

_BOOT = "/proc/sys/kernel/random/boot_id"


def identity_of(pid: int) -> str:
    """What no other process has, also not a later one with its number; empty if there is none, or it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return "" if os.path.exists(_BOOT) else _listed(pid)
    state, threads = fields[0], int(fields[17])
    if state in "ZX" and threads <= 1:  # else some of it goes on, and has its files open
        return ""
    with open(_BOOT, encoding="utf-8") as file:
        return f"{file.read().strip()}/{fields[19]}"  # field 22 of proc(5): when it was started


def _listed(pid: int) -> str:
    """The same where there is no /proc."""
    found = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = found.stdout.strip().partition(" ")
    return "" if state[:1] in ("", "Z") else " ".join(started.split())


def write_durably(path: str, data: bytes) -> None:
    """All of it or nothing is there after a crash."""
    new = f"{path}.new"
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(new, path)
    sync_folder(os.path.dirname(path))


def sync_folder(folder: str) -> None:
    file = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def main(arguments: list[str]) -> None:
    record, log, *command = arguments
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    pid = os.getpid()
    write_durably(record, json.dumps({"pid": pid, "identity": identity_of(pid)}).encode())
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
