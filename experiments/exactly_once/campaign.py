"""Kills while a query runs, and what came of it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from experiments.replication.group import NO_PROTOCOL, ReplicaGroup
from holdfast.client import blocking

KINDS: Final = ("before-commit", "after-commit", "driver", "broker", "leader")
CHUNK = 50  # events that are published together
PATIENCE_S = 180.0
LOOK_EVERY_S = 0.5


@dataclass
class Outcome:
    """What was published to the query, and what it published in turn."""

    kind: str
    kills: int = 0
    published: int = 0
    numbers: Counter[int] = field(default_factory=Counter)

    @property
    def lost(self) -> int:
        return sum(number not in self.numbers for number in range(1, self.published + 1))

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.numbers.values())

    @property
    def is_clean(self) -> bool:
        return not self.lost and not self.doubled and max(self.numbers, default=0) <= self.published

    def __str__(self) -> str:
        verdict = "clean" if self.is_clean else "NOT CLEAN"
        return (
            f"{self.kind}: {self.kills} kills, {self.published:,} events in, {self.numbers.total():,} out: "
            f"{self.lost} lost, {self.doubled} doubled: {verdict}"
        )


class Publisher:
    """Publishes numbered events in a thread, whatever happens to brokers, until it is told to stop."""

    def __init__(self, url: str) -> None:
        self.published = 0
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._problem: BaseException | None = None

    def __enter__(self) -> Publisher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> int:
        """Stops; the number of events that were acknowledged, which is all that were published."""
        self._stop.set()
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        return self.published

    def _run(self) -> None:
        try:
            with blocking.connect(self._url, timeout_s=60) as bus:
                while not self._stop.is_set():
                    first = self.published + 1
                    bus.publish_many(
                        ({"number": number, "label": f"event {number}"}, "in") for number in range(first, first + CHUNK)
                    )
                    self.published += CHUNK
                    # A pace that a query on two shared cores follows.
                    self._stop.wait(0.25)
        except BaseException as problem:
            self._problem = problem


class Query:
    """The query's process, with its JVM and workers."""

    def __init__(self, url: str, checkpoint: Path, die: str = "") -> None:
        command = [sys.executable, "-m", "experiments.exactly_once.query", url, str(checkpoint)]
        command += ["--die", die] if die else []
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            process_group=0,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "running\n":
            self.kill()
            raise RuntimeError("the query did not start")

    def wait(self) -> None:
        """Until it has died."""
        self.process.wait(PATIENCE_S)
        self._close_pipes()

    def kill(self) -> None:
        """kill -9 for the driver and its JVM. Spark's Python workers are in a group of their own, and live on for a
        while."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        """Lets it finish what is there."""
        self.process.communicate(timeout=PATIENCE_S)
        if self.process.returncode != 0:
            raise RuntimeError(f"the query failed with {self.process.returncode}")


def numbers_out(url: str) -> Counter[int]:
    with blocking.connect(url, timeout_s=60) as bus:
        return Counter(int(event.attributes["number"]) for event in bus.read("topic = 'out'"))


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {PATIENCE_S:g} s")
        time.sleep(LOOK_EVERY_S)


def run(plan: Sequence[str], replicas: int = 1, seed: int = 1) -> Outcome:
    """One query that goes through a kill of each kind of the plan, in this order. Brokers are processes; the query's
    events go back into the log that they came from."""
    outcome = Outcome(", ".join(dict.fromkeys(plan)))
    with (
        tempfile.TemporaryDirectory() as folder,
        ReplicaGroup(Path(folder), replicas, "batch" if replicas > 1 else NO_PROTOCOL, log_level="quiet") as group,
    ):
        group.start()
        with Publisher(group.url) as publisher, Life(group, Path(folder) / "checkpoint", seed) as life:
            for kind in plan:
                life.suffer(kind)
                outcome.kills += 1
            life.go_on()
            outcome.published = publisher.finish()
            life.finish()
        outcome.numbers = numbers_out(group.url)
    return outcome


class Life:
    """A query's life, from process to process, with one checkpoint."""

    def __init__(self, group: ReplicaGroup, checkpoint: Path, seed: int) -> None:
        self._group = group
        self._checkpoint = checkpoint
        self._chance = random.Random(seed)
        self._query: Query | None = None

    def __enter__(self) -> Life:
        return self

    def __exit__(self, *_: object) -> None:
        if self._query is not None:
            self._query.kill()

    def go_on(self) -> Query:
        """The query, when it has published something more than before."""
        before = numbers_out(self._group.url).total()
        if self._query is None:
            self._query = Query(self._group.url, self._checkpoint)
        wait_until("the query goes on", lambda: numbers_out(self._group.url).total() > before)
        return self._query

    def finish(self) -> None:
        """Lets it deal with all that is there."""
        assert self._query is not None
        self._query.close()
        self._query = None

    def suffer(self, kind: str) -> None:
        match kind:
            case "before-commit" | "after-commit":
                if self._query is not None:
                    self.finish()
                # Epochs go on from life to life.
                epochs = len(list((self._checkpoint / "commits").glob("[0-9]*")))
                moment = f"{kind.removesuffix('-commit')}:{epochs + self._chance.randint(1, 3)}"
                Query(self._group.url, self._checkpoint, moment).wait()
            case "driver":
                query = self.go_on()
                time.sleep(self._chance.uniform(0, 2))
                query.kill()
                self._query = None
            case "broker" | "leader":
                self.go_on()
                time.sleep(self._chance.uniform(0, 2))
                self._group.stop(asyncio.run(self._group.leader()) if kind == "leader" else self._group.names[0])
                time.sleep(self._chance.uniform(0, 1))
                self._group.start()
            case _:
                raise ValueError(f"there is no kind {kind!r} of kill")
