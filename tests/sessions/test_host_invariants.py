"""What a broker's side of the sessions believes of its own state is looked at in simulations, and is seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.model.filter import Filter
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.desks.admission import Admission, _UnderWay
from holdfast.protocols.desks.deliveries import Deliveries, SentSoFar
from holdfast.protocols.sessions.messages import Overflow


def _deliveries() -> tuple[Deliveries, SentSoFar]:
    """One client with one subscription, of which everything was sent."""
    subscription = Subscription("c", 1, Filter("x = 1"), Overflow.BLOCK, 10)
    core: Any = SimpleNamespace(sessions={"c": SimpleNamespace(subscriptions={1: subscription})})
    nothing: Any = None
    deliveries = Deliveries("b", core, nothing)
    cursor = SentSoFar(subscription, 0, 0, 0, 1)
    deliveries._cursors["c"] = {1: cursor}
    deliveries._unconfirmed[cursor] = None
    deliveries.check_invariants()
    return deliveries, cursor


def test_what_is_on_its_way_to_nobody_is_seen() -> None:
    deliveries, _ = _deliveries()
    deliveries._core.sessions.clear()
    with pytest.raises(InvariantBroken, match="belongs to a subscription"):
        deliveries.check_invariants()


@pytest.mark.parametrize("field", ["consumed", "received", "sent"])
def test_what_is_ahead_of_what_exists_is_seen(field: str) -> None:
    deliveries, cursor = _deliveries()
    setattr(cursor, field, 1)
    with pytest.raises(InvariantBroken, match="what is received was sent"):
        deliveries.check_invariants()


def test_what_is_repeated_and_not_on_its_way_is_seen() -> None:
    deliveries, cursor = _deliveries()
    deliveries._unconfirmed[SentSoFar(cursor.subscription, 0, 0, 0, 1)] = None
    with pytest.raises(InvariantBroken, match="what is repeated is on its way"):
        deliveries.check_invariants()


@pytest.mark.parametrize(("events", "size", "claim"), [(4, 30, "events under way"), (3, 31, "bytes under way")])
def test_a_wrong_count_of_what_is_under_way_is_seen(events: int, size: int, claim: str) -> None:
    nothing: Any = None
    admission = Admission(nothing, nothing, nothing)
    admission._under_way.append(_UnderWay("c", 1, 1, 1, 10))
    admission._direct["d"] = _UnderWay("d", 1, 2, 2, 20)
    admission._under_way_events, admission._under_way_bytes = 3, 30
    admission.check_invariants()
    admission._under_way_events, admission._under_way_bytes = events, size
    with pytest.raises(InvariantBroken, match=claim):
        admission.check_invariants()
