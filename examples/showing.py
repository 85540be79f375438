"""What the demos with processes share: saying what happens, and brokers that are gone afterwards, whatever happens."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from experiments.processes import SiteProcesses
from experiments.replication.group import ReplicaGroup
from holdfast.cli.terminal import InPlace, is_terminal
from holdfast.runtime import loop

STARTED = time.monotonic()
BOLD, RED, GREEN, YELLOW = "1", "1;31", "1;32", "33"
INTERRUPTED = 130

Processes = TypeVar("Processes", bound=SiteProcesses)


class Stage:
    """What was said, and below it what changes in its place. Without a terminal only what was said."""

    def __init__(self) -> None:
        self._screen = InPlace()
        self._page: Callable[[], list[str]] = list

    def say(self, text: str, code: str = "0") -> None:
        seconds = time.monotonic() - STARTED
        shown = f"\033[{code}m{text}\033[0m" if is_terminal() else text
        self._screen.show(self._page(), above=[f"{seconds:6.2f} s  {shown}"])

    def turn_to(self, page: Callable[[], list[str]]) -> None:
        """The page is made anew whenever it is shown."""
        if is_terminal():
            self._page = page
            self._screen.show(page())

    def leave(self) -> None:
        """What is shown now stays; what is said next comes below."""
        self._screen, self._page = InPlace(), list


STAGE = Stage()
say = STAGE.say


async def _show(make: Callable[[Path], Processes], scene: Callable[[Processes], Awaitable[int]]) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder, make(Path(folder)) as processes:
        return await scene(processes)


def play_with(make: Callable[[Path], Processes], scene: Callable[[Processes], Awaitable[int]]) -> int:
    """Plays a scene with brokers that are made in a folder, and not started yet. The exit code."""
    try:
        return loop.run(_show(make, scene))
    except (KeyboardInterrupt, asyncio.CancelledError):
        STAGE.leave()
        say("interrupted; the brokers are stopped, and their files are gone")
        return INTERRUPTED


def play(scene: Callable[[ReplicaGroup], Awaitable[int]], rest: str = "") -> int:
    """Plays a scene with a group of three; `rest` is more of its site file."""
    return play_with(lambda folder: ReplicaGroup(folder, rest=rest), scene)


async def start(group: ReplicaGroup) -> str:
    """Starts the replicas, and says so; who leads."""
    await group.start_beside()
    for name, process in group.processes.items():
        say(f"replica {name} serves at {group.addresses[name]}, process {process.pid}")
    leader = await group.leader()
    await group.caught_up()
    say(f"{leader} leads; clients were given all three addresses, and find it", BOLD)
    return leader


if __name__ == "__main__":
    sys.exit("this is no demo of its own: run ./demo")
