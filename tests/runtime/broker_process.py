"""A broker in a process of its own, as a user starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
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
    ) -> None:
        """`entry` is more of the broker's table, `rest` more of the site file, `options` more of the command."""
        self.port = port or free_port()
        self._options = options
        self._environment = {**os.environ, **environment} if environment else None
        self.url = f"holdfast://127.0.0.1:{self.port}"
        self._site = folder / f"site-{self.port}.toml"
        self._site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{self.port}"\n{entry}{rest}')
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "broker", str(self._site), "--log-level", "quiet"]
        command += self._options
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
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
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self.kill()
