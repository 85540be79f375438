"""What people are told of a core: counts, the subscriptions that fare worst, and for a trace what expired."""

from __future__ import annotations

import heapq
from typing import Final

from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.interests import SUBSCRIPTION
from holdfast.protocols.core.outputs import Expired
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.desks.overlay import Overlay, SubscriptionState
from holdfast.protocols.operating.messages import SubscriptionReport

FILTER_MAX: Final = 200  # characters of a filter that operators are told
CLIENT: Final = f"{Role.CLIENT.value}:"  # what the kernel puts before a client's name


def _subscriptions(core: BrokerCore) -> list[Subscription]:
    return [s for session in core.sessions.values() for s in session.subscriptions.values()]


def census(core: BrokerCore) -> dict[str, int]:
    """Measures, by name."""
    subscriptions, outcomes = _subscriptions(core), core.register.outcomes()
    return {
        "sessions": len(core.sessions),
        "subscriptions": len(subscriptions),
        "advertisements": sum(len(s.advertised) for s in core.sessions.values() if s.advertised is not None),
        "backlog_events": sum(map(len, subscriptions)),
        "backlog_bytes": sum(subscription.bytes for subscription in subscriptions),
        "backlog_events_longest": max(map(len, subscriptions), default=0),
        "events_accepted_total": core.events,
        "events_on_time_total": outcomes.on_time,
        "events_expired_total": outcomes.expired,
        "events_dropped_total": outcomes.dropped,
        "on_time_of_arrived_per_mille": outcomes.on_time_per_mille,
    }


class CoreCensus:
    """What operators may ask of a core."""

    def __init__(self, core: BrokerCore, overlay: Overlay) -> None:
        self._core = core
        self._overlay = overlay

    def subscriptions(self, count: int) -> tuple[SubscriptionReport, ...]:
        """So many, those first that get the least on time."""
        if not count:
            return ()
        all_of_them = _subscriptions(self._core)
        found = heapq.nsmallest(count, all_of_them, key=lambda subscription: subscription.outcomes.on_time_per_mille)
        return tuple(
            SubscriptionReport(
                subscription.client.removeprefix(CLIENT),
                subscription.number,
                str(subscription.filter)[:FILTER_MAX],
                len(subscription),
                subscription.outcomes.on_time,
                subscription.outcomes.expired,
                subscription.outcomes.dropped,
                self._state(subscription).value,
            )
            for subscription in found
        )

    def _state(self, subscription: Subscription) -> SubscriptionState:
        return self._overlay.subscription_state((SUBSCRIPTION, subscription.client, str(subscription.number)))

    def application_facts(self) -> dict[str, str]:
        return self._core.hosting.facts()


def note_expired(node: str, core: BrokerCore, expired: Expired, out: Outbox) -> None:
    subscription = expired.subscription
    session = core.sessions.get(subscription.client)
    if session is not None:
        name = subscription.client.removeprefix(CLIENT)
        text = f"{name}/{session.incarnation}/{subscription.number}"
        for event in expired.batch.ids:
            out.note("expired", event=event, subscription=text, subscriber=name, node=node)
