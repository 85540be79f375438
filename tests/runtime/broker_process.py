"""A broker in a process of its own, as a user starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class BrokerProcess:
    """Started at once; killed at the end of a `with`."""

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        entry: str = "",
        rest: str = "",
        options: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        log: str = "quiet",
        descriptors: int = 0,
    ) -> None:
        """`entry` is more of the broker's table, `rest` more of the site file, `options` more of the command.

        `log` is the level of the log; `descriptors` limits what the process may open.
        """
        self.port = port or free_port()
        self._options = options
        self._environment = {**os.environ, **environment} if environment else None
        self.url = f"holdfast://127.0.0.1:{self.port}"
        self._site = folder / f"site-{self.port}.toml"
        self._site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{self.port}"\n{entry}{rest}')
        self._log = folder / f"log-{self.port}.txt"
        self._log_level = log
        self._descriptors = descriptors
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "broker", str(self._site), "--log-level", self._log_level]
        command += self._options
        if self._descriptors:
            # prlimit(1) may be absent; the interpreter can do it before it becomes the broker.
            limited = (
                f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({self._descriptors},) * 2); "
            )
            command = [sys.executable, "-c", limited + "os.execv(sys.argv[1], sys.argv[1:])", *command]
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"broker b1 serves {self.url}\n"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> int:
        """As an operator does it; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def resident_bytes(self) -> int:
        return self._status("VmRSS")

    def peak_bytes(self) -> int:
        """The most that was ever resident, since it was last forgotten."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        # 5 sets the peak to what is resident now: proc(5).
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024

    def descriptors(self) -> int:
        """How many descriptors are open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log_lines(self) -> list[str]:
        """What was logged so far, if `log` was asked for."""
        return self._log.read_text().splitlines()

    def logged(self, text: str) -> str:
        """Waits for a line of the log that has the text in it."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = next((line for line in self.log_lines() if text in line), None)
            if found is not None:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{text!r} was not logged: {self.log_lines()}")

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self.kill()
        elif self.process.stdout is not None:
            self.process.stdout.close()
