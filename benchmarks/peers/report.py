"""From outcomes to a report: medians over rounds, ratios inside rounds, and whether the targets are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import msgspec

from benchmarks.peers.loads import CLIENTS, FANS, FILTER_COUNTS, SIZES, Load
from benchmarks.peers.measure import Outcome

# (load, system) → one outcome a round; None where the run failed
Results = dict[tuple[str, str], list[Outcome | None]]
Figure = Callable[[Outcome], float | None]

OWN = "holdfast"
NATS_FORMS = {
    "": "publish() as fast as it goes, nothing confirmed",
    "flush": "publish(), and flush() after every 1,000: at most so many unconfirmed",
    "jetstream": "JetStream in memory, publish_async() with 1,000 acknowledgements outstanding",
}


def throughput_name(size: int, fan: int) -> str:
    return f"{'1 KB' if size == 1_024 else f'{size} B'}, 1→{fan}"


def in_flight_name(form: str) -> str:
    return f"1,000 in flight{f' ({form})' if form else ''}"


def filters_name(count: int, one_key: bool = False) -> str:
    return f"{count:,} filters{', all events for one' if one_key else ''}"


LATENCY = "latency"
TOGETHER = f"{CLIENTS:,} clients, one event for all"
IN_TURN = f"{CLIENTS:,} clients, each event for another"


def all_loads() -> list[tuple[Load, str]]:
    """Every load, and for which system it is; "" is for all that run its kind."""
    loads = [(Load(throughput_name(size, fan), "throughput", size, fan), "") for size in SIZES for fan in FANS]
    loads += [(Load(in_flight_name(""), "in-flight"), OWN)]
    loads += [(Load(in_flight_name(form), "in-flight", form=form), "nats") for form in NATS_FORMS]
    loads += [(Load(LATENCY, "latency"), "")]
    loads += [(Load(TOGETHER, "clients", subscriptions=CLIENTS), "")]
    loads += [(Load(IN_TURN, "clients", subscriptions=CLIENTS, in_turn=True), "")]
    loads += [(Load(filters_name(count), "filters", subscriptions=count), OWN) for count in FILTER_COUNTS]
    most = FILTER_COUNTS[-1]
    return [*loads, (Load(filters_name(most, True), "filters", subscriptions=most, one_key=True), OWN)]


def rate(outcome: Outcome) -> float:
    return outcome.rate


def server_us(outcome: Outcome) -> float:
    return outcome.server_us


def publisher_us(outcome: Outcome) -> float:
    return outcome.publisher_us


def subscriber_us(outcome: Outcome) -> float:
    return outcome.subscriber_us


def p50(outcome: Outcome) -> float | None:
    return outcome.p50_us


def p99(outcome: Outcome) -> float | None:
    return outcome.p99_us


def figures(results: Results, load: str, system: str, figure: Figure = rate) -> list[float | None]:
    """One figure of every round."""
    return [None if outcome is None else figure(outcome) for outcome in results.get((load, system), [])]


def median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def ratio(ours: list[float | None], theirs: list[float | None]) -> float | None:
    """The median of the rounds' ratios: what disturbs a round disturbs both."""
    pairs = zip(ours, theirs, strict=False)
    return median([mine / other for mine, other in pairs if mine is not None and other])


class Target(msgspec.Struct, frozen=True):
    """A wish: a ratio of two figures, at least or at most so large; or a figure itself, for so many `parts`."""

    text: str
    wanted: float
    ours: tuple[str, str]  # load and system
    theirs: tuple[str, str] | None
    figure: Figure = rate
    at_most: bool = False
    parts: int = 1

    def measured(self, results: Results) -> float | None:
        ours = figures(results, *self.ours, self.figure)
        if self.theirs is not None:
            return ratio(ours, figures(results, *self.theirs, self.figure))
        figure = median(ours)
        return None if figure is None else figure / self.parts

    def is_met(self, measured: float) -> bool:
        return measured <= self.wanted if self.at_most else measured >= self.wanted


_SMALL, _LARGE = throughput_name(60, 1), throughput_name(1_024, 1)
_MOST, _ONE = filters_name(FILTER_COUNTS[-1]), filters_name(1)
TARGETS = (
    Target("1→1 at 60 bytes, against nats", 3.5, (_SMALL, OWN), (_SMALL, "nats")),
    Target("1→1 at 1 KB, against nats", 2.5, (_LARGE, OWN), (_LARGE, "nats")),
    Target("1→1 at 60 bytes, against redis", 10.0, (_SMALL, OWN), (_SMALL, "redis")),
    Target(
        "publish, 1,000 in flight, against nats with flush() every 1,000",
        1.6, (in_flight_name(""), OWN), (in_flight_name("flush"), "nats"),
    ),
    Target("median latency at 1,000/s, against nats", 1.3, (LATENCY, OWN), (LATENCY, "nats"), p50, True),
    Target("10,000 content filters, against one", 0.5, (_MOST, OWN), (_ONE, OWN)),
    Target(f"{TOGETHER}, against nats", 1.0, (TOGETHER, OWN), (TOGETHER, "nats")),
    Target(f"{IN_TURN}, against nats", 0.7, (IN_TURN, OWN), (IN_TURN, "nats")),
    Target("a delivery that comes alone: the broker's µs", 20.0, (TOGETHER, OWN), None, server_us, True, CLIENTS),
    Target("a delivery that comes alone: its client's µs", 50.0, (TOGETHER, OWN), None, subscriber_us, True, CLIENTS),
    Target("an event 1→1 at 60 bytes: the broker's µs", 1.0, (_SMALL, OWN), None, server_us, True),
    Target("an event 1→1 at 60 bytes: its publisher's µs", 1.6, (_SMALL, OWN), None, publisher_us, True),
    Target("an event 1→1 at 60 bytes: its subscriber's µs", 1.6, (_SMALL, OWN), None, subscriber_us, True),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- text
def lines(results: Results, systems: list[str]) -> Iterator[str]:
    yield from _throughput(results, systems)
    yield from _in_flight(results)
    yield from _latency(results, systems)
    yield from _clients(results, systems)
    yield from _filters(results)
    yield from _processor_time(results, systems)
    yield from _losses(results)
    yield from _targets(results)


def _throughput(results: Results, systems: list[str]) -> Iterator[str]:
    yield "\nevents a second, median (smallest to largest); how many times as many Holdfast does"
    for load in [throughput_name(size, fan) for size in SIZES for fan in FANS]:
        for system in systems:
            yield _row(load, system, figures(results, load, system), figures(results, load, OWN))


def _row(load: str, system: str, values: list[float | None], ours: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return f"  {load:38} {system:10} no figures"
    times = "" if system == OWN else f"{ratio(ours, values) or 0:7.1f} ×"
    return (
        f"  {load:38} {system:10} {median(values):10,.0f}  ({min(known):,.0f} to {max(known):,.0f})".ljust(88) + times
    )


def _in_flight(results: Results) -> Iterator[str]:
    yield "\npublish with 1,000 in flight, 60 bytes, events a second; each of Holdfast waits for its acknowledgement"
    ours = figures(results, in_flight_name(""), OWN)
    yield _row(in_flight_name(""), OWN, ours, ours)
    for form, text in NATS_FORMS.items():
        if (in_flight_name(form), "nats") in results:
            yield _row(in_flight_name(form), "nats", figures(results, in_flight_name(form), "nats"), ours)
            yield f"      {text}"


def _latency(results: Results, systems: list[str]) -> Iterator[str]:
    yield "\nlatency at 1,000 events/s, 60 bytes, µs: median of the rounds' medians, and of their 99th percentiles"
    for system in systems:
        half, most = (figures(results, LATENCY, system, figure) for figure in (p50, p99))
        if median(half) is not None:
            against = ratio(figures(results, LATENCY, OWN, p50), half)
            times = "" if system == OWN else f"   Holdfast's median is {against or 0:.2f} × that"
            yield f"  {system:10} p50 {median(half):8,.0f}   p99 {median(most):8,.0f}{times}"


def _clients(results: Results, systems: list[str]) -> Iterator[str]:
    yield f"\n{CLIENTS:,} clients in one process, deliveries a second that come alone"
    for load, deliveries in ((TOGETHER, CLIENTS), (IN_TURN, 1)):

        def delivered(outcome: Outcome, times: int = deliveries) -> float:
            return outcome.rate * times

        ours = figures(results, load, OWN, delivered)
        for system in systems:
            if (load, system) in results:
                yield _row(load, system, figures(results, load, system, delivered), ours)
    yield "\nprocessor time for one of them, µs: server, subscriber"
    for system in systems:
        spent = [median(figures(results, TOGETHER, system, figure)) for figure in (server_us, subscriber_us)]
        if all(value is not None for value in spent):
            yield f"  {system:10} " + " ".join(f"{value / CLIENTS:8.2f}" for value in spent if value is not None)


def _filters(results: Results) -> Iterator[str]:
    yield "\ncontent filters (key = '…' AND price > …), each event for exactly one; the others can't filter by content"
    one = figures(results, filters_name(1), OWN)
    names = [*map(filters_name, FILTER_COUNTS), filters_name(FILTER_COUNTS[-1], True)]
    for name in names:
        values = figures(results, name, OWN)
        if median(values) is not None:
            share = 100 * (ratio(values, one) or 0)
            yield f"  {name:36} {median(values):10,.0f} events/s  {share:4.0f}% of the rate with one"


def _processor_time(results: Results, systems: list[str]) -> Iterator[str]:
    yield f"\nprocessor time for an event, µs, at {_SMALL}: server, publisher, subscriber"
    for system in systems:
        spent = [
            median(figures(results, _SMALL, system, figure)) for figure in (server_us, publisher_us, subscriber_us)
        ]
        if all(value is not None for value in spent):
            yield f"  {system:10} " + " ".join(f"{value:8.2f}" for value in spent)


def _losses(results: Results) -> Iterator[str]:
    lost = {key: sum(o.lost for o in outcomes if o is not None) for key, outcomes in results.items()}
    failed = {key: sum(o is None for o in outcomes) for key, outcomes in results.items()}
    if not any(lost.values()) and not any(failed.values()):
        yield "\nno event was lost"
    for (load, system), count in lost.items():
        if count:
            yield f"\nLOST: {system}, {load}: {count:,} events did not arrive"
    for (load, system), count in failed.items():
        if count:
            yield f"\nFAILED: {system}, {load}: {count} of {len(results[load, system])} runs"


def _targets(results: Results) -> Iterator[str]:
    yield "\ntargets: measured, wanted"
    for target in TARGETS:
        measured = target.measured(results)
        sign = "≤" if target.at_most else "≥"
        if measured is None:
            yield f"  {target.text:66}       ?   {sign} {target.wanted:<5g} not measured"
        else:
            verdict = "met" if target.is_met(measured) else "MISSED"
            yield f"  {target.text:66} {measured:7.2f}   {sign} {target.wanted:<5g} {verdict}"
