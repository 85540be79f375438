"""What the paper says of its figures (D0-E6 to E12), as assertions: each has a value that is computed from what was
measured, and bounds. One that does not hold here is reported with its reason, which was looked for, and is tried again
in each run: a claim that begins to hold, or ceases to, is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import correlation, median
from typing import Final, NamedTuple, TypeAlias

from experiments.standin.campaign import ALONE, BASIC, BATCHED, INCREM, ONE_BY_ONE, PROCESSES, SYNCH
from experiments.standin.reasons import (
    ALIKE,
    AT_ONCE,
    BATCHES,
    BY_CHANCE,
    DIVIDED,
    ELSEWHERE,
    FEW_WANTED,
    GENERAL,
    LEARNING,
    LOADED,
    MATCHING,
    OTHER_LINKS,
    STAYS,
    TOO_LATE,
    TURNS,
)
from experiments.standin.recorded import Metric, Series, Table

Value: TypeAlias = float | None
Compute: TypeAlias = Callable[["Of"], Value]


class Of:
    """One figure's lines, as they were run in one way."""

    def __init__(self, table: Table, figure: str, how: str) -> None:
        self._table = table
        self._figure = figure
        self._how = how

    def line(self, name: object, figure: str = "") -> Series:
        return self._table.series(figure or self._figure, self._how, str(name))

    @property
    def synch(self) -> Series:
        return self.line(SYNCH)

    @property
    def increm(self) -> Series:
        return self.line(INCREM)

    @property
    def basic(self) -> Series:
        return self.line(BASIC)


class Claim(NamedTuple):
    """`low` and `high` are the bounds within which it holds. `why`: by how it was run, why it does not hold there."""

    figure: str
    text: str
    printed: str
    compute: Compute
    low: float
    high: float
    form: str = "{:.2f}"
    why: Mapping[str, str] = {}


class Verdict(NamedTuple):
    claim: Claim
    how: str
    value: Value

    @property
    def holds(self) -> bool | None:
        """None: it was not measured."""
        return None if self.value is None else self.claim.low <= self.value <= self.claim.high

    @property
    def said(self) -> str:
        if self.value is None:
            return "not measured"
        if self.holds:
            return "holds"
        return f"does not hold here: {self.claim.why.get(self.how, 'for a reason that was not looked for yet')}"

    @property
    def ours(self) -> str:
        return "–" if self.value is None else self.claim.form.format(self.value)

    @property
    def is_expected(self) -> bool:
        """A claim that does not hold has a reason, and one that has a reason does not hold."""
        return self.holds is None or self.holds == (self.how not in self.claim.why)


# -------------------------------------------------------------------------------------------------------- computations
def _last(series: Series, metric: Metric) -> Value:
    values = series.values(metric)
    return values[-1] if values else None


def _less(one: Value, other: Value) -> Value:
    """By which share one is less than the other."""
    return None if one is None or not other else 1 - one / other


def _less_at_all(one: Series, other: Series, metric: Metric) -> Value:
    """The same, in the middle of all points."""
    ours, theirs = one.middles(metric), other.middles(metric)
    shares = [1 - ours[x] / theirs[x] for x in ours if theirs.get(x)]
    return median(shares) if shares else None


def _growth(series: Series, metric: Metric) -> Value:
    """From the first point to the last, so many times."""
    values = series.values(metric)
    return values[-1] / values[0] if len(values) > 1 and values[0] else None


def _range(values: Sequence[float]) -> Value:
    """The largest, by the smallest."""
    return max(values) / min(values) if len(values) > 1 and min(values) > 0 else None


def _exponent(series: Series, metric: Metric) -> Value:
    """Of x in the power law that fits best: 1 is proportional."""
    middles = series.middles(metric)
    if len(middles) < 2 or min(middles.values()) <= 0:
        return None
    xs, ys = [math.log(x) for x in middles], [math.log(y) for y in middles.values()]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread if spread else None


def _straight(series: Series, metric: Metric) -> Value:
    """How well a straight line upwards fits: 1 is perfectly."""
    middles = series.middles(metric)
    if len(middles) < 3 or len(set(middles.values())) < 2:
        return None
    return correlation(list(middles), list(middles.values()))


def _gap_widens(of: Of) -> Value:
    """The last gap in milliseconds between the two, by the first."""
    synch, increm = of.synch.middles("pdrd_ms"), of.increm.middles("pdrd_ms")
    gaps = [synch[x] - increm[x] for x in synch if x in increm]
    if len(gaps) < 2:
        return None
    return gaps[-1] / gaps[0] if gaps[0] > 0 and gaps[-1] > 0 else 0.0


def _spread(series: Series, metric: Metric) -> Value:
    values = series.values(metric)
    return max(values) - min(values) if len(values) > 1 else None


def _least(series: Series, metric: Metric) -> Value:
    values = series.values(metric)
    return min(values) if values else None


def _middle(series: Series, metric: Metric) -> Value:
    values = series.values(metric)
    return median(values) if values else None


def _by(one: Value, other: Value) -> Value:
    return None if one is None or not other else one / other


def _re_ordering_adds(of: Of) -> Value:
    """To the time of the last message, in the middle of protocols and of what is congested."""
    added = []
    for protocol in ("basic", "synch", "increm"):
        without, with_it = (of.line(f"{protocol}-{mode}").middles("lmpt_ms") for mode in ("ms", "ms-ro"))
        added += [with_it[x] / without[x] - 1 for x in without if x > 1 and with_it.get(x) and without[x]]
    return median(added) if added else None


def _throughput_grows(of: Of) -> Value:
    """With twice as much as one way takes, or more."""
    alone = of.line(ALONE).middles("per_s")
    grown = []
    for protocol in ("basic", "synch", "increm"):
        shared = of.line(f"{protocol}-ms").middles("per_s")
        grown += [shared[x] / alone[x] for x in shared if x >= 2 and alone.get(x)]
    return median(grown) if grown else None


def _order_follows_content(of: Of) -> Value:
    """How far the ordering degree spreads over fanouts, by how far it does over numbers of subscriptions and events."""
    fanout, others = _spread(of.line(INCREM, "fig8"), "rank"), [
        _spread(of.line(INCREM, figure), "rank") for figure in ("fig7", "fig9")
    ]  # fmt: skip
    widest = max((each for each in others if each is not None), default=None)
    return _by(fanout, widest)


def _delay_follows_population(of: Of) -> Value:
    """How much the delay of the synchronous protocol grows with subscriptions, by how much with fanout or events."""
    population = _range(of.line(SYNCH, "fig7").values("pdrd_ms"))
    others = [_range(of.line(SYNCH, figure).values("pdrd_ms")) for figure in ("fig8", "fig9")]
    widest = max((each for each in others if each is not None), default=None)
    return _by(population, widest)


PERCENT: Final = "{:.0%}"
TIMES: Final = "× {:.2f}"
ANY: Final = math.inf

CLAIMS: Final = (
    Claim("fig7", "with the most subscriptions, delivery is resumed earlier by increm than by synch", "47%",
          lambda of: _less(_last(of.increm, "pdrd_ms"), _last(of.synch, "pdrd_ms")), 0.37, 1.0, PERCENT,
          why={PROCESSES: BATCHES, BATCHED: BATCHES}),
    Claim("fig7", "the delay grows with the subscriptions (synch)", "in proportion",
          lambda of: _exponent(of.synch, "pdrd_ms"), 0.6, 1.2, "exponent {:.2f}"),
    Claim("fig7", "… and with increm less than in proportion", "sub-linear",
          lambda of: _exponent(of.increm, "pdrd_ms"), 0.02, 0.95, "exponent {:.2f}",
          why={PROCESSES: LOADED}),
    Claim("fig7", "the gap between them widens", "it does", _gap_widens, 1.5, ANY, TIMES,
          why={PROCESSES: BATCHES, BATCHED: BATCHES}),
    Claim("fig7", "basic resumes a little earlier than increm", "slightly",
          lambda of: _less_at_all(of.basic, of.increm, "pdrd_ms"), 0.0, 0.5, PERCENT,
          why={ONE_BY_ONE: BY_CHANCE}),
    Claim("fig7", "basic drops events", "2%", lambda of: _middle(of.basic, "dropped"), 0.002, 0.04, "{:.1%}",
          why={PROCESSES: AT_ONCE, BATCHED: AT_ONCE, ONE_BY_ONE: TOO_LATE}),
    Claim("fig7", "synch keeps the order", "1.0", lambda of: _least(of.synch, "rank"), 0.9999, 1.0, "{:.3f}"),
    Claim("fig7", "increm has an ordering degree of", "about 0.8", lambda of: _middle(of.increm, "rank"), 0.7, 0.9,
          why={PROCESSES: BATCHES, BATCHED: BATCHES, ONE_BY_ONE: GENERAL}),
    Claim("fig7", "… that the number of subscriptions does not change", "not sensitive, fluctuates",
          lambda of: _spread(of.increm, "rank"), 0.0, 0.15, "spread {:.2f}"),
    Claim("fig7", "replication takes longer with more subscriptions", "it grows",
          lambda of: _growth(of.synch, "replication_ms"), 5.0, ANY, TIMES),
    Claim("fig7", "… and with synch less long than with increm", "31%",
          lambda of: _less(_last(of.synch, "replication_ms"), _last(of.increm, "replication_ms")), 0.21, 0.41, PERCENT,
          why={PROCESSES: ELSEWHERE, BATCHED: ELSEWHERE, ONE_BY_ONE: OTHER_LINKS}),
    Claim("fig8", "increm resumes earlier than synch", "62%",
          lambda of: _less_at_all(of.increm, of.synch, "pdrd_ms"), 0.52, 1.0, PERCENT,
          why={BATCHED: BATCHES}),
    Claim("fig8", "fanout does not change the delay of synch", "not sensitive",
          lambda of: _range(of.synch.values("pdrd_ms")), 1.0, 1.5, TIMES,
          why={BATCHED: MATCHING}),
    Claim("fig8", "… nor that of increm", "not sensitive",
          lambda of: _range(of.increm.values("pdrd_ms")), 1.0, 1.5, TIMES,
          why={BATCHED: MATCHING, ONE_BY_ONE: FEW_WANTED}),
    Claim("fig8", "the ordering degree of increm is as low as", "about 0.6",
          lambda of: _least(of.increm, "rank"), 0.5, 0.7,
          why={BATCHED: BATCHES, ONE_BY_ONE: GENERAL}),
    Claim("fig8", "… and with the highest fanout near that of synch", "approaches 1.0",
          lambda of: _last(of.increm, "rank"), 0.97, 1.0, "{:.3f}"),
    Claim("fig8", "replication takes increm longer with more fanout", "roughly linear",
          lambda of: _straight(of.increm, "replication_ms"), 0.9, 1.0, "r = {:.2f}",
          why={BATCHED: ELSEWHERE, ONE_BY_ONE: OTHER_LINKS}),
    Claim("fig8", "… and synch as long as before", "flat",
          lambda of: _range(of.synch.values("replication_ms")), 1.0, 1.25, TIMES),
    Claim("fig9", "pending events do not change the delay of synch", "not sensitive",
          lambda of: _range(of.synch.values("pdrd_ms")), 1.0, 1.5, TIMES,
          why={PROCESSES: LOADED, BATCHED: MATCHING}),
    Claim("fig9", "… nor that of increm", "not sensitive",
          lambda of: _range(of.increm.values("pdrd_ms")), 1.0, 1.5, TIMES,
          why={BATCHED: MATCHING}),
    Claim("fig9", "… which is shorter", "better",
          lambda of: _less_at_all(of.increm, of.synch, "pdrd_ms"), 0.05, 1.0, PERCENT,
          why={PROCESSES: BATCHES, BATCHED: BATCHES}),
    Claim("fig9", "increm has an ordering degree of", "about 0.8", lambda of: _middle(of.increm, "rank"), 0.7, 0.9,
          why={PROCESSES: BATCHES, BATCHED: BATCHES, ONE_BY_ONE: GENERAL}),
    Claim("fig9", "replication takes increm longer with more pending events", "in proportion",
          lambda of: _straight(of.increm, "replication_ms"), 0.9, 1.0, "r = {:.2f}",
          why={PROCESSES: ELSEWHERE, BATCHED: ELSEWHERE, ONE_BY_ONE: OTHER_LINKS}),
    Claim("fig9", "… and synch as long as before", "flat",
          lambda of: _range(of.synch.values("replication_ms")), 1.0, 1.25, TIMES,
          why={PROCESSES: LOADED}),
    Claim("fig10a", "with all neighbours instead of one, increm resumes later", "44% more",
          lambda of: _growth(of.increm, "pdrd_ms"), 0.0, 1.6, TIMES,
          why={BATCHED: TURNS}),
    Claim("fig10a", "… and replication is faster", "substantially",
          lambda of: _growth(of.increm, "replication_ms"), 0.0, 0.7, TIMES,
          why={BATCHED: TURNS}),
    Claim("fig10b", "with as many more subscriptions, increm resumes later", "barely × 2",
          lambda of: _growth(of.increm, "pdrd_ms"), 0.5, 2.2, TIMES,
          why={BATCHED: TURNS, ONE_BY_ONE: TURNS}),
    Claim("fig10b", "… and replication takes longer", "× 5",
          lambda of: _growth(of.increm, "replication_ms"), 3.5, 6.5, TIMES,
          why={BATCHED: TURNS}),
    Claim("fig11", "basic-ms has an ordering degree as low as", "0.77",
          lambda of: _least(of.line("basic-ms"), "rank"), 0.67, 0.87,
          why={ONE_BY_ONE: DIVIDED}),
    Claim("fig11", "increm-ms has an ordering degree as low as", "0.49",
          lambda of: _least(of.line("increm-ms"), "rank"), 0.39, 0.59,
          why={BATCHED: ALIKE, ONE_BY_ONE: DIVIDED}),
    Claim("fig11", "re-ordering keeps the order (synch-ms-ro)", "yes",
          lambda of: _least(of.line("synch-ms-ro"), "rank"), 0.9999, 1.0, "{:.3f}"),
    Claim("fig11", "re-ordering adds to the time of the last message", "5%", _re_ordering_adds, -0.05, 0.10, PERCENT),
    Claim("fig11", "sharing the work raises what is handed on each second", "doubles",
          _throughput_grows, 1.8, 2.2, TIMES,
          why={BATCHED: STAYS, ONE_BY_ONE: LEARNING}),
    Claim("fig8", "order depends on content, more than on how much there is", "yes",
          _order_follows_content, 1.2, ANY, TIMES),
    Claim("fig7", "the delay depends on the subscriptions, more than on fanout or pending events", "yes",
          _delay_follows_population, 2.0, ANY, TIMES),
)  # fmt: skip


def verdicts(table: Table) -> Iterator[Verdict]:
    for claim in CLAIMS:
        for how in table.hows(claim.figure):
            yield Verdict(claim, how, claim.compute(Of(table, claim.figure, how)))
