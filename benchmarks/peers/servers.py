"""Starts servers on free ports, in folders of their own, and takes them down again, whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers.system import System

START_S = 60.0
STOP_S = 10.0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def running(system: System) -> Iterator[tuple[int, int]]:
    """The system's server: its port and its process, which is 0 if it has none, until the end of the `with`."""
    port = free_port()
    with TemporaryDirectory(prefix="holdfast-peers-") as name, contextlib.ExitStack() as started:
        process: subprocess.Popen[bytes] | None = None
        for server in system.servers(Path(name), port):
            process = subprocess.Popen(
                server.command,
                env={**os.environ, **server.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            started.callback(_stop, process)
        if process is not None:
            _wait_until_it_listens(system.name, process, port)
        yield port, process.pid if process is not None else 0


def _wait_until_it_listens(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ChildProcessError(f"the server of {name} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise TimeoutError(f"the server of {name} did not listen within {START_S:.0f} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a server with all that it started: they are one process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
