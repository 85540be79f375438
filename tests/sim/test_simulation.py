"""Virtual time, and whole runs: one seed is one run, whatever the machine does."""

import os
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.broker.client_assembly import make_client
from holdfast.errors import ScenarioError
from holdfast.kernel.node import InvariantBroken, Node
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.latency import Constant
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import (
    Broker,
    Client,
    ClockJump,
    Cut,
    DiskFull,
    Fault,
    Kill,
    Network,
    Pause,
    PowerCut,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.sim.simulation import Simulation
from holdfast.trace import schema
from tests.repository import ROOT
from tests.sim.scripted import Rows, World

CHECKERS = ["only-matching", "at-most-once", "publisher-order", "total-order", "no-loss", "complete", "liveness"]


def _scenario(*faults: Fault, publishes: int = 20, safety_ms: int = 10_000, durable: bool = True) -> Scenario:
    """A broker, a publisher that publishes twice a second, and two subscribers."""
    return Scenario(
        name="test",
        seed=1,
        brokers=[Broker(id="b1", durable=durable)],
        clients=[Client(id=name, brokers=("b1",)) for name in ("p", "s", "t")],
        network=Network(latency=Constant(delay_us=1_000)),
        actions=[
            Subscribe(at_ms=0, client="s", name="all", filter=""),
            Subscribe(at_ms=0, client="t", name="some", filter="n > 5"),
            *(
                Publish(at_ms=100 + 500 * n, client="p", events=[ScenarioEvent(attributes={"n": n})])
                for n in range(publishes)
            ),
        ],
        faults=list(faults),
        safety_ms=safety_ms,
        liveness_ms=60_000,
        checkers=CHECKERS,
    )


def _run(scenario: Scenario) -> Rows:
    """Runs a scenario that must come out clean."""
    rows = Rows()
    outcome = run_scenario(scenario, sinks=[rows])
    assert (outcome.violations, outcome.broken) == ([], "")
    return rows


# --------------------------------------------------------------------------------------------------------------- time
def test_things_happen_in_the_order_of_their_times_and_then_of_planning() -> None:
    simulation = Simulation(MESSAGES, 0, _NoDelay())
    seen: list[tuple[int, str]] = []

    def happen(what: str) -> None:
        seen.append((simulation.now, what))
        if what == "b":
            simulation.after(0, happen, "after b")

    for time, what in [(5, "b"), (3, "a"), (5, "c"), (9, "late")]:
        simulation.at(time, happen, what)
    simulation.run(5)
    assert seen == [(3, "a"), (5, "b"), (5, "c"), (5, "after b")]
    assert simulation.now == 5
    simulation.run(8)
    assert simulation.now == 8
    simulation.run(20, stop=lambda: True)
    assert (simulation.now, len(seen)) == (9, 5)


def test_nothing_is_planned_for_the_past() -> None:
    simulation = Simulation(MESSAGES, 0, _NoDelay())
    simulation.run(5)
    with pytest.raises(InvariantBroken, match="past"):
        simulation.at(4, print, None)
    with pytest.raises(InvariantBroken, match="past"):
        simulation.after(-1, print, None)


class _NoDelay:
    def delay(self, source: str, target: str) -> int:
        return 0


def test_what_one_generator_draws_does_not_change_another() -> None:
    simulation = Simulation(MESSAGES, 7, _NoDelay())
    first = simulation.rng_for("a", 1)
    first.random()
    assert simulation.rng_for("b", 1).random() == Simulation(MESSAGES, 7, _NoDelay()).rng_for("b", 1).random()
    streams = {simulation.rng_for(name, life).random() for name in ("a", "b", "network") for life in range(3)}
    assert len(streams) == 9


def test_notes_become_rows_of_their_time() -> None:
    world = World(tracing=True)
    a = world.add("a")
    world.run_for(SECOND)

    def note(out: Outbox) -> None:
        out.note("control", what="w", detail={"x": 1})
        out.note("table_size", node="z", table="t", entries=3)

    a.do(note)
    assert world.rows.rows == [
        schema.Control(t=SECOND, node="a", what="w", detail={"x": 1}),
        schema.TableSize(t=SECOND, node="z", table="t", entries=3),
    ]


# --------------------------------------------------------------------------------------------------------- determinism
def test_a_seed_gives_the_same_trace_again_and_other_seeds_give_others() -> None:
    digests = [run_scenario(OneBrokerShape().draw(seed)).digest for seed in range(15)]
    assert [run_scenario(OneBrokerShape().draw(seed)).digest for seed in range(15)] == digests
    assert len(set(digests)) == 15


_DIGESTS = """
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.run import run_scenario
for seed in range(100, 115):
    print(run_scenario(OneBrokerShape().draw(seed)).digest)
"""


def test_the_trace_of_a_seed_does_not_depend_on_how_strings_are_hashed() -> None:
    digests = []
    for hash_seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        result = subprocess.run(
            [sys.executable, "-c", _DIGESTS], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        digests.append(result.stdout.split())
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 15


def test_checkers_see_rows_in_the_order_of_time() -> None:
    for seed in range(30):
        rows = Rows()
        run_scenario(OneBrokerShape().draw(seed), sinks=[rows])
        times = [row.t for row in rows.rows]
        assert times == sorted(times)


def test_a_run_ends_at_the_first_violation_unless_told_otherwise() -> None:
    scenario = _scenario()
    mutant = Factories(client=_stuttering)
    first = run_scenario(scenario, mutant)
    assert [violation.checker for violation in first.violations] == ["at-most-once"]
    everything = run_scenario(scenario, mutant, stop_at_violation=False)
    assert len(everything.violations) == 34
    assert everything.steps > first.steps


def _stuttering(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Node:
    """A mutant: a client that hands over every event twice."""
    client = make_client(settings, rng, streams)
    subscriber = next(part for part in client.parts if part.name == "subscriber")
    note = subscriber._note_delivered

    def note_twice(*arguments: object) -> None:
        note(*arguments)
        note(*arguments)

    subscriber._note_delivered = note_twice
    return client


# -------------------------------------------------------------------------------------------------------------- faults
def _states(rows: Rows, component: str) -> list[tuple[int, str]]:
    return [(row.t // MILLISECOND, row.state) for row in rows.of(schema.Fault) if row.component == component]


def test_a_killed_host_is_started_again_when_the_fault_ends() -> None:
    rows = _run(_scenario(Kill(at_ms=1_000, for_ms=2_000, host="b1")))
    assert _states(rows, "b1") == [(1_000, "crashed"), (3_000, "up")]
    assert len({row.event for row in rows.of(schema.Delivered)}) == 20


def test_a_host_that_is_down_when_faults_end_is_started_then() -> None:
    rows = _run(_scenario(Kill(at_ms=1_000, for_ms=99_000, host="b1"), safety_ms=5_000))
    assert _states(rows, "b1") == [(1_000, "crashed"), (5_000, "up")]


def test_a_fault_after_the_faults_have_ended_is_refused() -> None:
    with pytest.raises(ScenarioError, match="a fault begins at 10000 ms, when all is healed; begin before 10000 ms"):
        _run(_scenario(Kill(at_ms=10_000, for_ms=1, host="b1")))


def test_a_fault_of_a_host_that_is_down_does_not_happen() -> None:
    rows = _run(
        _scenario(
            Kill(at_ms=1_000, for_ms=4_000, host="b1"),
            PowerCut(at_ms=2_000, for_ms=1_000, host="b1", wipe=True),
            Pause(at_ms=2_500, for_ms=500, host="b1"),
        )
    )
    assert _states(rows, "b1") == [(1_000, "crashed"), (5_000, "up")]


def test_a_host_is_paused_until_the_last_of_its_pauses_ends() -> None:
    rows = _run(_scenario(Pause(at_ms=1_000, for_ms=1_000, host="b1"), Pause(at_ms=1_500, for_ms=3_000, host="b1")))
    assert _states(rows, "b1") == [(1_000, "paused"), (1_500, "paused"), (4_500, "healed")]
    assert [row for row in rows.of(schema.Hop) if row.source == "b1" and 1_000 < row.t // MILLISECOND < 4_500] == []


def test_a_way_is_reported_as_healed_when_no_cut_lies_on_it() -> None:
    rows = _run(
        _scenario(
            Cut(at_ms=1_000, for_ms=1_000, source="p", target="b1", both=False),
            Cut(at_ms=1_500, for_ms=2_000, source="p", target="b1"),
        )
    )
    assert _states(rows, "p>b1") == [(1_000, "cut"), (1_500, "cut"), (3_500, "healed")]
    assert _states(rows, "b1>p") == [(1_500, "cut"), (3_500, "healed")]


def test_a_clock_is_right_again_after_its_jump() -> None:
    rows = _run(_scenario(ClockJump(at_ms=1_000, for_ms=1_000, host="p", by_ms=-50)))
    assert _states(rows, "p") == [(1_000, "clock -50 ms"), (2_000, "healed")]


def test_a_wiped_disk_makes_the_broker_forget_and_its_clients_are_told() -> None:
    scenario = _scenario(PowerCut(at_ms=3_000, for_ms=500, host="b1", wipe=True))
    rows = Rows()
    outcome = run_scenario(scenario, sinks=[rows])
    assert outcome.clean
    assert _states(rows, "b1") == [(3_000, "crashed"), (3_000, "wiped"), (3_500, "up")]
    assert {row.subscriber for row in rows.of(schema.Missed)} == {"s", "t"}


def test_a_broker_whose_disk_is_full_stops_and_serves_again_when_there_is_room() -> None:
    rows = _run(_scenario(DiskFull(at_ms=2_000, for_ms=3_000, host="b1")))
    states = _states(rows, "b1")
    assert [state for _, state in states] == ["disk full", "crashed", "up"]
    assert states[1][0] < 2_200  # at the next event
    assert 5_000 <= states[2][0] <= 6_100
    assert [row.detail for row in rows.of(schema.Control) if row.what == "stopped"] == [
        {"reason": "the storage failed: no space left on the disk"}
    ]
    # No one was told anything in between, and afterwards nothing is missing.
    stopped, up = states[1][0] * MILLISECOND, states[2][0] * MILLISECOND
    assert [row for row in rows.of(schema.Acknowledged) if stopped + 10 * MILLISECOND < row.t < up] == []
    assert len(rows.of(schema.Acknowledged)) == 20
    assert len([row for row in rows.of(schema.Delivered) if row.subscriber == "s"]) == 20
    assert rows.of(schema.Missed) == []


def test_a_broker_that_stopped_by_itself_does_not_wait_for_the_end_of_all_faults() -> None:
    # The broker is busy while the disk is full, and hears of it only when there is room again.
    rows = _run(
        _scenario(
            DiskFull(at_ms=2_050, for_ms=100, host="b1"),
            Pause(at_ms=2_102, for_ms=1_000, host="b1"),
        )
    )
    assert [state for _, state in _states(rows, "b1")][-1] == "up"
    assert _states(rows, "b1")[-1][0] < 5_000


def test_a_host_that_was_killed_is_not_started_because_its_disk_has_room() -> None:
    rows = _run(_scenario(Kill(at_ms=1_000, for_ms=5_000, host="b1"), DiskFull(at_ms=1_500, for_ms=500, host="b1")))
    assert _states(rows, "b1") == [(1_000, "crashed"), (1_500, "disk full"), (6_000, "up")]


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_drawn_scenarios_come_out_clean(seed: int) -> None:
    outcome = run_scenario(OneBrokerShape().draw(seed))
    assert outcome.clean, (seed, outcome.violations, outcome.broken)
