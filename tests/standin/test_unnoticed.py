"""What nobody can keep: events that are sent to a broker that has failed, before its neighbours notice (D0-C22)."""

from __future__ import annotations

from experiments.standin import simulated
from experiments.standin.campaign import SYNCH
from experiments.standin.metrics import Seen
from experiments.standin.paced import Fixed
from experiments.standin.setting import ADVERTISING, FAULTY, PUBLISHER, Setting
from experiments.standin.simulated import FAILS_MS, REPLACED_MS
from experiments.standin.workload import ATTRIBUTE, TOPIC, VALUES, Workload
from holdfast.sim.scenario import Action, PowerCut, Publish, ScenarioEvent
from holdfast.trace import schema
from holdfast.trace.schema import Row

EVERY_MS = 10


class Noticing(Seen):
    """And when `n1` noticed."""

    def __init__(self, brokers: list[str]) -> None:
        super().__init__(brokers)
        self.noticed = 0
        self.published: dict[str, int] = {}

    def see(self, row: Row) -> None:
        super().see(row)
        match row:
            case schema.Published():
                self.published[row.event] = row.t
            case schema.Control(node="n1", what="neighbour-suspected"):
                self.noticed = self.noticed or row.t
            case _:
                pass


def test_at_least_the_rate_times_the_time_until_it_is_noticed_is_lost_and_nothing_that_is_published_later() -> None:
    """D0-C22: a machine is gone, and tells nobody. Its link stays until the stand-in has its place, and what is for it
    is kept from when it is suspected."""
    event = ScenarioEvent(topic=TOPIC, attributes={ATTRIBUTE: VALUES})
    moments = range(FAILS_MS - 500, REPLACED_MS + 1_000, EVERY_MS)
    published: list[Action] = [Publish(at_ms=at, client=PUBLISHER, events=[event]) for at in moments]
    setting = Setting(SYNCH, Workload(20, 1))
    seen = Noticing([ADVERTISING, FAULTY, "n2", "r"])
    faults = [PowerCut(at_ms=FAILS_MS, for_ms=0, host=FAULTY, for_ever=True)]
    simulated.run(setting, published, faults, Fixed(), FAILS_MS - 1_000, seen=seen)
    came = {came.event for came in seen.came["n2"]}
    lost = [event for event in seen.published if event not in came]
    unnoticed_ms = (seen.noticed / 1e6) - FAILS_MS
    assert unnoticed_ms > 100
    assert len(lost) >= int(unnoticed_ms / EVERY_MS)
    under_way = range((FAILS_MS - EVERY_MS) * 1_000_000, seen.noticed)
    assert [event for event in lost if seen.published[event] not in under_way] == []
