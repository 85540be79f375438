"""What a system under measurement is: a server, if it has one, and a publisher and a subscriber in processes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from benchmarks.peers.loads import Job


class Server(NamedTuple):
    """A process to start: its command, and what it is to find in its environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = {}


class System:
    """Base of all systems. `publish` and `subscribe` run in processes of their own, and talk as `process` says."""

    name: ClassVar[str]
    form: ClassVar[str]  # how it is used here
    guarantee: ClassVar[str]
    programs: ClassVar[Sequence[str]] = ()  # that must be installed
    distributions: ClassVar[Sequence[tuple[str, str]]] = ()  # Python modules and their names, that must be installed
    kinds: ClassVar[frozenset[str]] = frozenset({"throughput", "latency"})  # of loads that are for all, which it runs
    speed: ClassVar[float] = 1.0  # about how fast, so that a run takes a second or so: events are scaled by it

    def missing(self) -> list[str]:
        """What would have to be installed first."""
        programs = [name for name in self.programs if find_program(name) is None]
        modules = [name for module, name in self.distributions if not has_module(module)]
        return programs + modules

    def versions(self) -> str:
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for _, name in self.distributions)

    def servers(self, folder: Path, port: int) -> list[Server]:
        """What to start, in order; the last one listens at the port. Nothing, if programs talk to each other."""
        raise NotImplementedError

    def publish(self, job: Job) -> None:
        raise NotImplementedError

    def subscribe(self, job: Job) -> None:
        raise NotImplementedError


def has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def find_program(name: str) -> str | None:
    """Where a program is. Servers often lie where only root looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


def program(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise FileNotFoundError(name)
    return found


def first_line(*command: str) -> str:
    """What a program says of its version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return ((done.stdout or done.stderr).strip().splitlines() or ["?"])[0]
