"""A group of three goes on with one replica down, though one of the others took a snapshot and lacks its events."""

from __future__ import annotations

import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.protocols.desks import refill
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.sim.latency import Constant
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Broker, Client, Cut, Kill, Network, Publish, Scenario, ScenarioEvent
from holdfast.trace.schema import Acknowledged, Row

NAMES = ("b1", "b2", "b3")
GONE_MS, HEALED_MS = 5_450, 25_450


class VouchesForWhatItCannotGive(Learner):
    """For all that it has executed, though it lacks the events and gives its state to nobody."""

    def vouched(self) -> int:
        return self._decided.executed


def answered_meanwhile(learner: type[Learner]) -> list[int]:
    """When publications were answered while b1 was down, in milliseconds.

    b1 leads; b3 was away while 5 MB were published. When it is back, b1 and b2 have just voted for some slots, of which
    b2 does not hear that they are decided, since what b1 says does not get to it. b1 gives b3 a snapshot behind those
    slots, and is gone before b3 has fetched the events.
    """

    def publish(at_ms: int, number: int, size: int = 0) -> Publish:
        return Publish(
            at_ms=at_ms, client="p", events=[ScenarioEvent(attributes={"n": number}, topic="t", payload_bytes=size)]
        )

    answered: list[int] = []

    class Sink:
        def see(self, row: Row) -> None:
            if isinstance(row, Acknowledged) and GONE_MS < row.t / 1e6 < HEALED_MS:
                answered.append(int(row.t / 1e6))

    scenario = Scenario(
        name="lacking-events",
        seed=7,
        system="paxos",
        settings={"trim_every": 6, "trim_keep": 0, "trim_ratio": 0},
        brokers=[
            Broker(id=name, durable=True, sync_us=(20_000, 20_000) if name == "b1" else (100, 300)) for name in NAMES
        ],
        clients=[Client(id="p", brokers=NAMES, batch_events=1)],
        network=Network(latency=Constant(delay_us=500), bytes_per_second=5_000_000),
        actions=[
            *(publish(1_500 + 30 * n, n, 50_000) for n in range(100)),
            publish(4_700, 1_000),
            *(publish(5_000 + n // 3, 2_000 + n) for n in range(9)),
            publish(15_000, -1),
        ],
        faults=[
            Kill(at_ms=1_000, for_ms=4_010, host="b3"),
            Cut(at_ms=5_006, for_ms=HEALED_MS - 5_006, source="b1", target="b2", both=False),
            Kill(at_ms=GONE_MS, for_ms=HEALED_MS - GONE_MS, host="b1"),
        ],
        safety_ms=HEALED_MS,
        liveness_ms=10_000,
        checkers=["liveness"],
    )
    outcome = run_scenario(scenario, Factories(kit=BrokerKit(scheme=PaxosKit(learner=learner))), [Sink()])
    assert outcome.problem == "", "when all are back, all is well in any case"
    return answered


@pytest.mark.parametrize("first", [True, False], ids=["events come first", "the state comes first"])
def test_two_replicas_elect_a_leader_though_one_lacks_events(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """D4-D1, D4-B10"""
    if not first:
        monkeypatch.setattr(refill, "FETCHED_FIRST_BYTES", -1)
    answered = answered_meanwhile(Learner)
    assert 15_000 < answered[-1] < 15_100, "what is published while b1 is down is accepted at once"


def test_a_replica_that_vouches_for_what_it_cannot_give_leaves_the_group_without_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refill, "FETCHED_FIRST_BYTES", -1)
    assert answered_meanwhile(VouchesForWhatItCannotGive) == []
