"""A standalone Spark cluster on this machine: a master, and two workers whose Python knows nothing of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pyspark

from holdfast.spark.java import java_home
from tests.leftover_processes import MARK
from tests.runtime.broker_process import free_port

HOST = "127.0.0.1"
WORKERS = 2
START_S_MAX = 120.0
SPARK_HOME = Path(pyspark.__file__).parent


class StandaloneCluster:
    """Runs within a `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.master = f"spark://{HOST}:{free_port()}"
        # Nothing is installed in it, and nothing else is found: executors get all that they import from Spark itself
        # and from the session.
        self.python = folder / "bare" / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        venv.create(self.python.parent.parent, with_pip=False, symlinks=True)
        try:
            port = self.master.rpartition(":")[2]
            master = self._start("master.Master", "--host", HOST, "--port", port, "--webui-port", "0")
            self._wait_for(master, "New state: ALIVE")
            workers = [self._start_worker(number) for number in range(WORKERS)]
            for log in workers:
                self._wait_for(log, "Successfully registered with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_worker(self, number: int) -> Path:
        folder = str(self._folder / f"worker-{number}")
        options = ("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", folder)
        return self._start("worker.Worker", *options, self.master)

    def _start(self, role: str, *options: str) -> Path:
        """Its log."""
        log = self._folder / f"process-{len(self._processes)}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *options]
        with log.open("wb") as output:
            started = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self._folder, env=self._environment(), start_new_session=True
            )
        self._processes.append(started)
        return log

    def _environment(self) -> Mapping[str, str]:
        return {
            "PATH": os.pathsep.join([str(self.python.parent), "/usr/bin", "/bin"]),
            "HOME": str(self._folder),
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            MARK: os.environ.get(MARK, ""),
        }

    def _wait_for(self, log: Path, words: str) -> None:
        until = time.monotonic() + START_S_MAX
        while words not in log.read_text(errors="replace"):
            assert time.monotonic() < until, log.read_text(errors="replace")[-2000:]
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        # Workers end their executors when they are asked to end.
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
