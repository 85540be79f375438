"""A monitor that is wrong replaces nobody who answers: what it says is looked into before it is believed."""

from __future__ import annotations

import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import SECOND
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.standin.cycle.complaints import Complaints
from holdfast.schemes.tree.standin.cycle.levels import Cause, Complaint
from holdfast.schemes.tree.standin.cycle.monitor import Monitor
from holdfast.sim.run import Factories
from tests.standin.cycle.star_on_demand import play_on_demand, said, stood_in

FROM = 4 * SECOND


class AccusesAll(Monitor):
    """Each neighbour has failed, it says."""

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if out.now >= FROM:
            self.complaints = {peer: Complaint(Cause.CRASH, "gone", FROM) for peer in self._roster.linked}
        super().on_timer(key, out)

    def _look_at(self, peer: str, out: Outbox) -> None:
        if out.now < FROM:
            super()._look_at(peer, out)


class AccusesInTurn(AccusesAll):
    """… for a second, and then it has not."""

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        super().on_timer(key, out)
        if out.now // SECOND % 2:
            self.complaints = {}


class Believes(Complaints):
    """Takes what one neighbour says for what all say."""

    def failed(self) -> dict[str, str]:
        return dict.fromkeys(self.heard, "somebody says so")


@pytest.mark.parametrize("level", ["none", "buffered"])
@pytest.mark.parametrize("monitor", [AccusesAll, AccusesInTurn])
@pytest.mark.parametrize("complaints", [Complaints, Believes])
def test_a_monitor_that_is_wrong_replaces_nobody(
    level: str, monitor: type[Monitor], complaints: type[Complaints]
) -> None:
    """D0-A8: all monitors are wrong at once."""
    factories = Factories(kit=BrokerKit(scheme=NetworkKit(monitor=monitor, complaints=complaints)))
    played = play_on_demand(level=level, factories=factories, until_ms=20_000)
    assert played.wrong == []
    assert stood_in(played) == []
    assert played.missing("s2") == played.missing("s3") == []
    assert any(" answers " in text for text in said(played)) or said(played) == []
