"""What ./demo runs: set-top boxes publish, three replicas count who watches what, and the top ten is shown, live.

The replica that leads is killed in the middle of it, and started again later. At the end it is proved that nothing was
lost and that all replicas count the same. The boxes are synthetic: nobody was watched for this.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial

import holdfast
from examples.recount import Proof, gather, judge
from examples.showing import BOLD, GREEN, RED, STAGE, YELLOW, play, say, start
from experiments.replication.gaps import largest_gap
from experiments.replication.group import ReplicaGroup
from holdfast.apps.zapviewers import watching
from holdfast.apps.zapviewers.generator import ZapSettings
from holdfast.apps.zapviewers.publishing import Acknowledged, PublishedLines, PublishSettings, publish_log
from holdfast.cli.terminal import is_terminal
from holdfast.kernel.time import MILLISECOND

APPLICATION = """\
[application]
factory = "holdfast.apps.zapviewers.viewership:Viewership"
[application.settings]
every_ms = 500
"""
PUBLISHERS = 4
LOG = ZapSettings(boxes=25_000)
SPEED = 5.0
SETTINGS = PublishSettings(run="demo", log=LOG, publishers=PUBLISHERS, speed=SPEED)
CALM_S, AFTER_KILL_S, AFTER_RETURN_S = 5.0, 4.0, 3.0
PATIENCE_S = 60.0
PAGE_LINES = 11
PLAIN_EVERY_S = 1.0  # without a terminal


class Boxes:
    """The publishers; used with `async with`."""

    def __init__(self, url: str, settings: PublishSettings) -> None:
        self.tally = PublishedLines()
        self.acknowledged: list[tuple[int, int]] = []
        self.answered_at: list[int] = []
        self._url = url
        self._settings = settings
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Boxes:
        self._task = asyncio.create_task(publish_log(self._url, self._settings, self.tally, self._stop, self._hear))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _hear(self, acknowledged: Acknowledged) -> None:
        self.acknowledged.append((acknowledged.publisher, acknowledged.number))
        self.answered_at.append(acknowledged.at)

    def check_running(self) -> None:
        """Raises what a publisher raised."""
        assert self._task is not None
        if self._task.done():
            self._task.result()

    async def finish(self) -> None:
        """Returns when everything that was published is acknowledged."""
        assert self._task is not None
        self._stop.set()
        await asyncio.wait_for(self._task, PATIENCE_S)


async def show_top(url: str, footer: Callable[[], str]) -> None:
    """The top ten, as it changes; where there is no terminal, a line now and then."""
    before, said_at = None, -PLAIN_EVERY_S
    async with holdfast.connect(url) as bus, aclosing(watching.follow_top(bus)) as boards:
        async for board in boards:
            if is_terminal():
                STAGE.turn_to(partial(_page, board, before, footer))
            elif board.top and time.monotonic() - said_at >= PLAIN_EVERY_S:
                said_at = time.monotonic()
                say(f"  {watching.line(board)}")
            before = board


def _page(board: watching.Board, before: watching.Board | None, footer: Callable[[], str]) -> list[str]:
    width = shutil.get_terminal_size().columns - 1
    page = watching.page(board, before, width)
    return ["", *page, *[""] * (PAGE_LINES - len(page)), footer()[:width]]


async def wait(boxes: Boxes, seconds: float) -> None:
    await asyncio.sleep(seconds)
    boxes.check_running()


async def scene(group: ReplicaGroup) -> int:
    leader = await start(group)

    def footer() -> str:
        replicas = "  ".join(f"{name} {'runs' if name in group.processes else 'is dead'}" for name in group.names)
        return f"     {replicas}   {boxes.tally.lines:,} lines acknowledged   (synthetic)"

    say(f"{PUBLISHERS} publishers with {LOG.boxes:,} set-top boxes each begin; the boxes are synthetic", BOLD)
    async with Boxes(group.url, SETTINGS) as boxes:
        showing = asyncio.create_task(show_top(group.url, footer))
        try:
            await wait(boxes, CALM_S)
            killed_at = time.monotonic_ns()
            group.stop(leader)
            say(f"kill -9 for {leader}, which leads, while boxes go on", RED)
            new = await group.leader()
            say(f"{new} leads now, {(time.monotonic_ns() - killed_at) / MILLISECOND:,.0f} ms later", BOLD)
            await wait(boxes, AFTER_KILL_S)
            gap = largest_gap(boxes.answered_at, killed_at, time.monotonic_ns()) / MILLISECOND
            say(f"publishers saw nothing but a gap: {gap:,.0f} ms without an acknowledgement", BOLD)
            await group.start_beside()
            say(f"{leader} is started again, with what its disk has", YELLOW)
            await group.caught_up()
            say(f"{leader} has caught up; {await group.leader()} leads, and the group may lose one again", BOLD)
            await wait(boxes, AFTER_RETURN_S)
            await boxes.finish()
            if showing.done():
                showing.result()
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError, holdfast.HoldfastError):
                await showing
            STAGE.leave()
        say("the publishers have stopped, and all that they published is acknowledged; now everything is counted again")
        evidence = await gather(group, boxes.acknowledged)
        for name, state in evidence.states.items():
            say(f"  {name} at position {state.position:,}: viewership {state.digest}")
        return conclude(judge(evidence))


def conclude(proof: Proof) -> int:
    """Says what was proved; the exit code."""
    say(str(proof))
    if proof.problems:
        for problem in proof.problems:
            say(f"FAILED: {problem}", RED)
        return 1
    say("proved: each publication is in the log once, and positions have no gaps;", GREEN)
    say("proved: all replicas count the same viewers at the same position, and so does who counts from the log", GREEN)
    return 0


if __name__ == "__main__":
    sys.exit(play(scene, APPLICATION))
