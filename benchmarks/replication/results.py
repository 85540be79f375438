"""All rounds of a run, and the figures that count: the best round, or the one in the middle."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import msgspec

from benchmarks.replication.measure import Offered, Saturated
from benchmarks.replication.paper import Values

PROTOCOLS = ("batch", "multi")
ROUNDS = 5
SECONDS = 4.0  # of an offered load


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured, as it is written to a file."""

    machine: dict[str, str | int]
    load_before: float  # the machine's load average when it began: what others do there
    rounds: int
    seconds: float  # of an offered load
    protocol: str  # of the groups with offered loads
    events: int  # of a saturated run
    offered: list[Offered]
    saturated: list[Saturated]

    @property
    def replicas(self) -> list[int]:
        """The groups that were measured, by their sizes."""
        return sorted({run.replicas for run in self.offered} | {run.replicas for run in self.saturated})

    @property
    def publishers(self) -> list[int]:
        return sorted({run.publishers for run in self.offered} | {run.publishers for run in self.saturated})

    def offered_values(self, figure: Callable[[list[Offered]], float]) -> Values:
        """One figure of all rounds, for every group and number of publishers."""
        return {
            replicas: {publishers: figure(self.offered_rounds(replicas, publishers)) for publishers in self.publishers}
            for replicas in self.replicas
        }

    def offered_rounds(self, replicas: int, publishers: int) -> list[Offered]:
        return [run for run in self.offered if (run.replicas, run.publishers) == (replicas, publishers)]

    def saturated_rounds(self, replicas: int, protocol: str, publishers: int) -> list[Saturated]:
        wanted = (replicas, protocol if replicas > 1 else "", publishers)
        return [run for run in self.saturated if (run.replicas, run.protocol, run.publishers) == wanted]

    def added_ms(self, replicas: int, publishers: int) -> float:
        """What a group adds to the median latency, from the best rounds."""
        mine, base = (best_p50(self.offered_rounds(count, publishers)) for count in (replicas, 1))
        return mine - base

    def added_ms_in_rounds(self, replicas: int, publishers: int) -> float:
        """The same as the median of differences inside rounds: what disturbs a round disturbs both."""
        pairs = zip(self.offered_rounds(replicas, publishers), self.offered_rounds(1, publishers), strict=True)
        return statistics.median(mine.p50_ms - base.p50_ms for mine, base in pairs)

    def drop_percent(self, replicas: int, publishers: int) -> float:
        """How much less a group processes than the baseline."""
        mine, base = (median_per_s(self.offered_rounds(count, publishers)) for count in (replicas, 1))
        return 100 * (1 - mine / base)


def best_run(runs: list[Offered]) -> Offered:
    return min(runs, key=lambda run: run.p50_ms)


def best_p50(runs: list[Offered]) -> float:
    return best_run(runs).p50_ms


def best_mean(runs: list[Offered]) -> float:
    """The mean of the round with the best median, not of another one."""
    return best_run(runs).mean_ms


def median_p50(runs: list[Offered]) -> float:
    return statistics.median(run.p50_ms for run in runs)


def median_per_s(runs: list[Offered]) -> float:
    return statistics.median(run.per_s for run in runs)


def best_costs(runs: list[Saturated]) -> list[float]:
    """Processor time of the replicas of the round in which they took least together: what else the machine does only
    adds to it."""
    return min((run.cpu_us for run in runs), key=sum)


def best_per_s(runs: list[Saturated]) -> float:
    return max(run.per_s for run in runs)
