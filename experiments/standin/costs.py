"""What turns of brokers take in the simulated runs, by what came in: the costs that those runs charge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from experiments.standin.campaign import INCREM, SYNCH
from experiments.standin.paced import Work
from experiments.standin.setting import STAND_IN, Setting, Transport
from experiments.standin.simulated import play
from experiments.standin.workload import Workload

WORKLOAD: Final = Workload(1_000, 500)
SEEDS: Final = (1, 2, 3)
LEAST_NS: Final = 1_000_000  # what takes less in all is left out


def costs() -> Iterator[str]:
    """Lines of a table."""
    yield f"{WORKLOAD.subscriptions:,} subscriptions, {WORKLOAD.pending:,} events, {len(SEEDS)} runs each; CPU time"
    for transport in Transport:
        for case in (SYNCH, INCREM):
            total: dict[tuple[str, str], Work] = {}
            for seed in SEEDS:
                for key, work in play(Setting(case, WORKLOAD, 1, transport, seed=seed)).work.items():
                    total.setdefault(key, Work()).add(work)
            yield f"\n{transport.value}, {case}"
            yield f"{'broker':8}{'message':22}{'turns':>8}{'entries':>9}{'events':>8}{'ms':>10}{'µs each':>10}"
            for (broker, what), work in sorted(total.items()):
                if work.nanoseconds >= LEAST_NS:
                    yield _line("stand-in" if broker == STAND_IN else broker, what, work)


def _line(broker: str, what: str, work: Work) -> str:
    each = work.nanoseconds / 1_000 / max(1, work.entries + work.events)
    told = f"{broker:8} {what:21}{work.turns:8,}{work.entries:9,}{work.events:8,}{work.nanoseconds / 1e6:10,.1f}"
    return told + (f"{each:10,.1f}" if work.entries + work.events else "")
