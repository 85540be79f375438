"""Holdfast: content-based publish/subscribe that keeps its promises while brokers and links fail.

This module is the public interface, and nothing else.
"""

from holdfast.client import Bus, State, Subscription, blocking, connect
from holdfast.errors import (
    BusClosed,
    BusError,
    DuplicateId,
    EventError,
    FilterError,
    HoldfastError,
    LimitReached,
    NotAdvertised,
    NotConnected,
    OutcomeUnknown,
    SubscriptionEnded,
    Superseded,
    UnknownId,
    UrlError,
)
from holdfast.matching import Explanation, FilterIndex, Reason
from holdfast.model import DEFAULT_LIMITS, Filter, FilterLimits
from holdfast.model.event import Event
from holdfast.model.padres import attributes_from_padres

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_LIMITS",
    "Bus",
    "BusClosed",
    "BusError",
    "DuplicateId",
    "Event",
    "EventError",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterIndex",
    "FilterLimits",
    "HoldfastError",
    "LimitReached",
    "NotAdvertised",
    "NotConnected",
    "OutcomeUnknown",
    "Reason",
    "State",
    "Subscription",
    "SubscriptionEnded",
    "Superseded",
    "UnknownId",
    "UrlError",
    "attributes_from_padres",
    "blocking",
    "connect",
]
