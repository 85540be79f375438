"""How far a reader walks who follows one event through the code: files, functions, and switches between files.

    .venv/bin/python -m benchmarks.walk

An event is published, delivered, and confirmed by its subscriber, in the simulator, with the clients of a real run: at
one durable broker, over a chain of three, in a group of three. Counted are calls of functions of the package from the
publication on until the subscriber's broker has taken the confirmation; the simulator's own do not count, since
they are no part of the way. A *switch* is a call into another file than that of the function which called.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import msgspec

import holdfast
from holdfast.sim import scenario
from holdfast.sim.run import Factories, Run
from holdfast.sim.simulation import Simulation

PACKAGE = str(Path(holdfast.__file__).parent)
SIMULATOR = str(Path(PACKAGE) / "sim")
PUBLISHED_MS = 3_013  # between two beats of everything that ticks
LAST = "on_progress"  # takes the confirmation


class Walk(msgspec.Struct, frozen=True):
    files: int
    functions: int
    switches: int


class Walker:
    """Sees every call while it is on."""

    def __init__(self) -> None:
        self._functions: set[CodeType] = set()
        self._switches = 0
        self.has_arrived = False

    def see(self, frame: FrameType, kind: str, argument: Any) -> None:
        code = frame.f_code
        if kind != "call" or not _counts(code):
            return
        self._functions.add(code)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            self._switches += 1
        self.has_arrived = self.has_arrived or code.co_name == LAST

    @property
    def walk(self) -> Walk:
        files = {code.co_filename for code in self._functions}
        return Walk(len(files), len(self._functions), self._switches)


def _counts(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(SIMULATOR)


def world(brokers: int, system: str) -> scenario.Scenario:
    names = [f"b{number}" for number in range(1, brokers + 1)]
    links = list(pairwise(names))
    is_network = system == "tree" and brokers > 1
    homes = {"p": names[0], "s": names[-1]}
    return scenario.Scenario(
        name="walk",
        seed=1,
        system=system,
        brokers=[scenario.Broker(id=name, durable=True, sync_us=(100, 100)) for name in names],
        links=links if is_network else [],
        settings={"reliability": "buffered"} if is_network else {},
        clients=[
            scenario.Client(id=client, brokers=tuple(names) if system == "paxos" else (home,), report_ms=1)
            for client, home in homes.items()
        ],
        actions=[
            scenario.Subscribe(at_ms=1_000, client="s", name="all", filter="n > 0"),
            # The first event of a client is advertised to everyone, and the second takes the usual way.
            *(
                scenario.Publish(at_ms=at_ms, client="p", events=[scenario.ScenarioEvent(attributes={"n": 1})])
                for at_ms in (2_000, PUBLISHED_MS)
            ),
        ],
        faults=[],
        safety_ms=2 * PUBLISHED_MS,
        liveness_ms=0,
        checkers=["no-loss"],
    )


def follow(wanted: scenario.Scenario) -> Walk:
    walker = Walker()

    class Watched(Simulation):
        def run(self, until: int, stop: Any = None) -> None:
            super().run(PUBLISHED_MS * 1_000_000 - 1, stop)
            sys.setprofile(walker.see)
            try:
                super().run(until, lambda: walker.has_arrived)
            finally:
                sys.setprofile(None)

    run = Run(wanted, Factories(simulation=Watched), (), checking=False)
    run.play(lambda: walker.has_arrived)
    if not walker.has_arrived:
        raise RuntimeError(f"{wanted.system}: nothing was confirmed")
    return walker.walk


WAYS: Final = [
    ("one durable broker", 1, "tree"),
    ("a chain of three", 3, "tree"),
    ("a group of three", 3, "paxos"),
]


def main() -> None:
    for name, brokers, system in WAYS:
        print(json.dumps({"way": name, **msgspec.structs.asdict(follow(world(brokers, system)))}))


if __name__ == "__main__":
    main()
