"""Many seeds, in several processes. What fails is shrunk, saved, and comes with the command that replays it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.sim.run import Factories, Outcome, run_scenario
from holdfast.sim.scenario import Scenario
from holdfast.sim.swarm import Shape

SEEDS_AT_A_TIME = 10

# What a process draws for a seed: from a shape, or one scenario again and again under other seeds.
Source = Shape | Scenario


class Campaign(msgspec.Struct):
    """What came of many runs."""

    runs: int = 0
    steps: int = 0
    events_published: int = 0
    events_delivered: int = 0
    faults: int = 0
    interrupted: bool = False
    failed: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.steps += outcome.steps
        self.events_published += outcome.events_published
        self.events_delivered += outcome.events_delivered
        self.faults += outcome.faults
        if not outcome.clean:
            self.failed.append(outcome)

    def interrupt(self) -> None:
        """No more comes; what was found so far is worth having."""
        self.interrupted = True

    @property
    def clean(self) -> bool:
        return not self.failed


def scenario_for(source: Source, seed: int) -> Scenario:
    """The scenario of a seed."""
    return msgspec.structs.replace(source, seed=seed) if isinstance(source, Scenario) else source.draw(seed)


def run_campaign(
    source: Source,
    seeds: Sequence[int],
    jobs: int = 1,
    progress: Callable[[Campaign], None] | None = None,
    factories: Factories | None = None,
    failures_max: int = 20,
) -> Campaign:
    """Runs every seed, or stops after `failures_max` failures. The result does not depend on `jobs`."""
    campaign = Campaign(failed=[])
    try:
        for outcomes in _all_outcomes(source, seeds, jobs, factories):
            for outcome in outcomes:
                campaign.add(outcome)
            if progress is not None:
                progress(campaign)
            if len(campaign.failed) >= failures_max:
                break
    except KeyboardInterrupt:
        campaign.interrupt()
    campaign.failed.sort(key=lambda outcome: outcome.seed)
    return campaign


def _all_outcomes(
    source: Source, seeds: Sequence[int], jobs: int, factories: Factories | None
) -> Iterator[list[Outcome]]:
    chunks = (seeds[start : start + SEEDS_AT_A_TIME] for start in range(0, len(seeds), SEEDS_AT_A_TIME))
    if jobs == 1 or len(seeds) <= SEEDS_AT_A_TIME:
        for chunk in chunks:
            yield _run_chunk(source, chunk, factories)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare, initargs=(SCHEMES.packages,)) as pool:
        waiting: set[Future[list[Outcome]]] = set()
        try:
            for chunk in chunks:
                waiting.add(pool.submit(_run_chunk, source, chunk, factories))
                if len(waiting) >= 2 * jobs:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            yield from (future.result() for future in waiting)
        finally:
            # Whoever stops early, or is interrupted, does not wait for what was only planned.
            pool.shutdown(wait=True, cancel_futures=True)


def _prepare(packages: dict[str, str]) -> None:
    """A process of the pool knows the schemes that its parent knows; the keyboard's interrupt is for that one, which
    collects the results."""
    for kind, package in packages.items():
        SCHEMES.add(kind, package)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_chunk(source: Source, seeds: Sequence[int], factories: Factories | None) -> list[Outcome]:
    return [run_scenario(scenario_for(source, seed), factories) for seed in seeds]
