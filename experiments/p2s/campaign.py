"""All groups with all numbers of publishers, round by round."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import holdfast
from benchmarks.machine import description
from benchmarks.replication.__main__ import groups_in_turn
from benchmarks.replication.loads import Job
from benchmarks.replication.measure import Offered, Running, Saturated, offer, running, saturate
from benchmarks.replication.paper import OFFERED, PUBLISHERS, REPLICAS
from benchmarks.replication.results import Results
from benchmarks.replication.zaps import prepare
from holdfast.apps.zapviewers.channels import INVENTED
from holdfast.apps.zapviewers.viewership import TOP, VIEWERS
from holdfast.runtime import loop

PROTOCOL = "multi"  # the paper's
APPLICATION = '[application]\nfactory = "holdfast.apps.zapviewers.viewership:Viewership"\n'
FOLLOW = (f"topic = '{TOP}'", f"topic = '{VIEWERS}' AND channel = '{INVENTED[0]}'")
WARM_UP = Job("", 3, 100.0, 0.5)
COUNTED = ("events", "lines", "malformed", "anomalies", "boxes", "watching")
CHANNELS_ASKED = 1000


class Plan(NamedTuple):
    """What to measure: the first of the paper's groups and numbers of publishers."""

    replicas: Sequence[int] = REPLICAS
    publishers: Sequence[int] = PUBLISHERS
    rounds: int = 3
    seconds: float = 6.0
    events: int = 2_400  # publications of a saturated run; as many for each number of publishers

    @property
    def publications(self) -> int:
        """Of the busiest publisher, with offered loads."""
        jobs = [Job("", count, OFFERED[count], self.seconds) for count in self.publishers]
        return sum(_each(job) for job in (WARM_UP, *jobs))


FULL = Plan()
QUICK = Plan(REPLICAS[:2], PUBLISHERS[:2], 1, 1.0, 240)


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, as it is written to a file."""

    results: Results
    viewership: dict[str, Any]  # that every group had counted in the end
    load_after: float


def run(plan: Plan, tell: Callable[[str], None], folder: str | None = None) -> Campaign:
    offered: list[Offered] = []
    saturated: list[Saturated] = []
    seen: list[dict[str, Any]] = []
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="holdfast-zaps-") as zaps:
        prepare(Path(zaps), max(WARM_UP.publishers, *plan.publishers), plan.publications)
        for number in range(plan.rounds):
            for replicas in groups_in_turn(number, plan.replicas):
                tell(f"round {number + 1} of {plan.rounds}, replicas: {replicas}, load {os.getloadavg()[0]:.1f}")
                with running(replicas, PROTOCOL, folder, APPLICATION) as group:
                    sweep = _Sweep(group, number, zaps)
                    offered += sweep.offer_all(plan)
                    saturated += sweep.saturate_all(plan)
                    seen.append(sweep.counted())
    results = Results(
        machine=description(),
        load_before=load_before,
        rounds=plan.rounds,
        seconds=plan.seconds,
        protocol=PROTOCOL,
        events=plan.events,
        offered=offered,
        saturated=saturated,
    )
    return Campaign(results=results, viewership=agreed(seen), load_after=os.getloadavg()[0])


def agreed(seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What all groups say. RuntimeError if one of them counts other viewers, or could not read a line."""
    if any(one != seen[0] for one in seen):
        raise RuntimeError(f"groups have counted other viewers of the same publications: {seen}")
    if seen[0]["malformed"]:
        raise RuntimeError(f"lines were malformed: {seen[0]['malformed']}")
    return seen[0]


def _each(job: Job) -> int:
    """How many publications a publisher has at most."""
    return -(-(job.events or job.publications) // job.publishers)


class _Sweep:
    """A group that was just started, and what its publishers have left to say."""

    def __init__(self, group: Running, number: int, zaps: str) -> None:
        self._base = Job(group.url, 1, 0.0, 0.0, zaps=zaps, follow=FOLLOW)
        self._pids = group.pids
        self._round = number
        self._published = 0

    def offer_all(self, plan: Plan) -> list[Offered]:
        self._offer(WARM_UP.publishers, WARM_UP.rate, WARM_UP.seconds)
        return [self._offer(count, OFFERED[count], plan.seconds) for count in plan.publishers]

    def _offer(self, publishers: int, rate: float, seconds: float) -> Offered:
        job = self._next(publishers=publishers, rate=rate, seconds=seconds)
        return offer(job, len(self._pids), self._round)

    def saturate_all(self, plan: Plan) -> list[Saturated]:
        jobs = (self._next(publishers=count, events=plan.events) for count in plan.publishers)
        protocol = PROTOCOL if len(self._pids) > 1 else ""
        return [saturate(job, self._pids, protocol, self._round) for job in jobs]

    def _next(self, **changes: float) -> Job:
        """The next job, whose publications go on where those before it ended."""
        job = msgspec.structs.replace(self._base, **changes)
        self._base = msgspec.structs.replace(self._base, first=self._base.first + _each(job))
        self._published += job.events or job.publications
        return job

    def counted(self) -> dict[str, Any]:
        """The viewership, without what depends on the time. RuntimeError if a publication is missing in it."""
        counts, top = loop.run(_ask(self._base.url))
        if counts["events"] != self._published:
            raise RuntimeError(f"{self._published} publications were made, and {counts['events']} counted")
        return {**{name: counts[name] for name in COUNTED}, "top": top["top"]}


async def _ask(url: str) -> list[dict[str, Any]]:
    questions = ({"ask": "counts"}, {"ask": "top_list", "n": CHANNELS_ASKED})
    async with holdfast.connect(url, timeout_s=30.0) as bus:
        return [json.loads(await bus.ask(json.dumps(question).encode())) for question in questions]
