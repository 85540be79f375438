"""Holdfast: content-based publish/subscribe that keeps its promises while brokers and links fail.

This module is the public interface, and nothing else.
"""

from holdfast.client import Bus, NamedSubscription, State, Subscription, blocking, connect
from holdfast.client.log_calls import CommitResult, LogRange
from holdfast.client.stages import StageReceipt
from holdfast.errors import (
    ApplicationFailed,
    BusClosed,
    BusError,
    DuplicateId,
    EpochCommitted,
    EventError,
    FilterError,
    HoldfastError,
    LimitReached,
    ListenFailed,
    NoApplication,
    NoLog,
    NotAdvertised,
    NotConnected,
    OutcomeUnknown,
    PositionAhead,
    PositionGone,
    SchemeChanged,
    StageLost,
    SubscriptionEnded,
    Superseded,
    UnknownId,
    UrlError,
)
from holdfast.matching import Explanation, FilterIndex, Reason
from holdfast.model import DEFAULT_LIMITS, Filter, FilterLimits
from holdfast.model.event import Event
from holdfast.model.padres import attributes_from_padres
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_LIMITS",
    "ApplicationFailed",
    "Bus",
    "BusClosed",
    "BusError",
    "CommitResult",
    "DuplicateId",
    "EpochCommitted",
    "Event",
    "EventError",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterIndex",
    "FilterLimits",
    "HoldfastError",
    "LimitReached",
    "ListenFailed",
    "LogRange",
    "NamedSubscription",
    "NoApplication",
    "NoLog",
    "NotAdvertised",
    "NotConnected",
    "OutcomeUnknown",
    "Position",
    "PositionAhead",
    "PositionGone",
    "Reason",
    "ReceivedEvent",
    "SchemeChanged",
    "StageLost",
    "StageReceipt",
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
