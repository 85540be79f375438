"""Table 1 of the first paper, as runs have it, beside the paper's own (D0-C6 to C14, D0-C14.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from experiments.standin.protocols import CASES, COMPLETE, ORDERED, TABLE_1, Case, promised
from experiments.standin.runs import HAPPENS, HAPPENS_SHARED, Result, play_all
from experiments.standin.schedules import (
    FAULTY,
    a_subscription_comes_late,
    one_event_waits_in_the_slow_broker,
    one_neighbour_is_late,
    one_neighbour_says_nothing,
    ready_queues_are_served_in_turn,
)
from experiments.standin.watched import Watched
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.sim.scenario import Scenario

Schedule = Callable[[Case], Scenario]

_BASIC, _INCREM = (Case(protocol, StandInMode.FAILOVER) for protocol in (StandInProtocol.BASIC, StandInProtocol.INCREM))
# What is made to violate what a protocol does not promise.
MADE: Final[dict[tuple[Case, str], tuple[Schedule, ...]]] = {
    (_BASIC, COMPLETE): (one_neighbour_is_late,),
    (_INCREM, ORDERED): (ready_queues_are_served_in_turn, a_subscription_comes_late),
    **{
        (Case(StandInProtocol.BASIC, mode), COMPLETE): (one_neighbour_says_nothing,)
        for mode in (StandInMode.SHARE, StandInMode.ORDERED)
    },
    **{
        (Case(protocol, StandInMode.SHARE), ORDERED): (one_event_waits_in_the_slow_broker,)
        for protocol in StandInProtocol
    },
}
HEADINGS: Final = ("protocol", "", "complete", "paper", "violated", "by a schedule", "ordered", "paper", "violated",
                   "by a schedule", "runs", "lost beside")  # fmt: skip
NOT_MEASURED: Final = "not measured"


class Line(msgspec.Struct, frozen=True):
    """Of one protocol: how many runs violated which property, and which schedules did that were made for it."""

    case: Case
    results: tuple[Result, ...]
    made: Mapping[str, tuple[str, ...]]

    def violated(self, name: str) -> int:
        return sum(name in result.violated for result in self.results)

    @property
    def wrong(self) -> list[str]:
        """What does not agree with the paper, or was never tried."""
        case = self.case
        found = [f"{case}, seed {result.seed}: {result.problem}" for result in self.results if result.problem]
        for name in (COMPLETE, ORDERED):
            if name not in promised(case) and not self.made.get(name):
                found.append(f"{case} is {case.strength} {name}: no schedule shows that it is not")
        return [*found, *(f"{case}: too little happened: {what}" for what in scarce(self.results))]

    @property
    def cells(self) -> tuple[str, ...]:
        runs = len(self.results)
        cells = [str(self.case), self.case.strength]
        for name, says in zip((COMPLETE, ORDERED), TABLE_1[self.case], strict=True):
            violated = self.violated(name)
            holds = not violated and not self.made.get(name)
            cells += [_word(holds), _word(says), f"{violated} of {runs}", ", ".join(self.made.get(name, ())) or "-"]
        return (*cells, str(runs), str(sum(result.lost for result in self.results)))


def _word(holds: bool) -> str:
    return "yes" if holds else "NO"


def scarce(results: Sequence[Result]) -> dict[str, float]:
    """What happened too rarely in these runs, on average, to prove anything."""
    happened: Counter[str] = Counter()
    for result in results:
        happened.update(result.happened)
    floors = HAPPENS if not results or results[0].case.is_permanent else HAPPENS_SHARED
    mean = {what: happened[what] / max(1, len(results)) for what in floors}
    return {what: mean[what] for what, least in floors.items() if mean[what] < least}


def violated_by_hand(case: Case) -> dict[str, tuple[str, ...]]:
    """By property: the schedules made for it that violate it, and nothing else."""
    found: dict[str, tuple[str, ...]] = {}
    for name, checker in case.checkers(FAULTY).items():
        shown = []
        for schedule in MADE.get((case, name), ()):
            outcome = Watched().play(schedule(case))
            violated = {violation.checker for violation in outcome.violations}
            # A protocol that promises neither may lose both by one schedule.
            allowed = {checker, *(each for each in case.checkers(FAULTY).values() if not promised(case))}
            if not outcome.broken and checker in violated <= allowed:
                shown.append(schedule.__name__.replace("_", " "))
        found[name] = tuple(shown)
    return found


def measure(case: Case, seeds: Sequence[int], jobs: int = 1) -> Line:
    return Line(case, tuple(play_all(case, seeds, jobs)), violated_by_hand(case))


def printed(lines: Sequence[Line]) -> str:
    """The table, what happened in its runs, and what is wrong."""
    measured = {line.case: line for line in lines}
    rows: list[tuple[str, ...]] = [HEADINGS]
    for case in CASES:
        if case in measured:
            rows.append(measured[case].cells)
        else:
            complete, ordered = (_word(says) for says in TABLE_1[case])
            rows.append(
                (str(case), case.strength, NOT_MEASURED, complete, "", "", NOT_MEASURED, ordered, "", "", "0", "")
            )
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    table = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    happened = [_happened(line) for line in lines]
    return "\n".join([*table, "", *happened, *(f"WRONG: {each}" for line in lines for each in line.wrong)])


def _happened(line: Line) -> str:
    total: Counter[str] = Counter()
    for result in line.results:
        total.update(result.happened)
    brokers = sorted(result.brokers for result in line.results)
    told = ", ".join(f"{count:,} {what}" for what, count in sorted(total.items()))
    return f"{line.case}: {brokers[0]} to {brokers[-1]} brokers; {told}"
