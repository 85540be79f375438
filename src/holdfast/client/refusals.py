"""What was refused, as the exception that its caller gets: for each kind of request, from the answer of the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holdfast.errors import (
    ApplicationFailed,
    BusClosed,
    EpochCommitted,
    EventError,
    FilterError,
    HoldfastError,
    LimitReached,
    NoApplication,
    NoLog,
    NotAdvertised,
    NotConnected,
    OutcomeUnknown,
    PositionAhead,
    PositionGone,
    StageLost,
    SubscriptionEnded,
    Superseded,
)
from holdfast.model.event import Event, check_event, check_topic, encode_event
from holdfast.model.values import INTEGER_MAX, check_attributes
from holdfast.protocols.cursors.requests import CursorLost, RefusedByLog
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.messages import Refusal

if TYPE_CHECKING:
    from holdfast.client.connection import Connection

_OF_LOG: Final[Mapping[Refusal | None, type[HoldfastError]]] = {
    Refusal.NO_LOG: NoLog,
    Refusal.POSITION_AHEAD: PositionAhead,
    Refusal.SUPERSEDED: Superseded,
    Refusal.LIMIT: LimitReached,
    Refusal.EVENT: EventError,
    Refusal.NOT_ADVERTISED: NotAdvertised,
    Refusal.UNKNOWN: StageLost,
    Refusal.CONFLICT: EpochCommitted,
}


def of_filter(result: requests.SubscriptionRefused | requests.AdvertisementRefused, text: str) -> HoldfastError:
    """For a subscription or an advertisement."""
    match result.reason:
        case Refusal.FILTER:
            return FilterError(result.problem, text, result.offset, result.expected)
        case Refusal.LIMIT:
            return LimitReached(result.problem, result.limit, result.allowed)
        case _ if isinstance(result, requests.SubscriptionRefused):
            return SubscriptionEnded(result.problem, text)
        case _:
            return BusClosed(result.problem)


def of_log(result: RefusedByLog | CursorLost, text: str = "") -> HoldfastError:
    """For what was asked of the log, also a named subscription; with the text of its filter."""
    match result.reason:
        case Refusal.POSITION_GONE:
            return PositionGone(result.problem, result.tail)
        case Refusal.FILTER if isinstance(result, RefusedByLog):
            return FilterError(result.problem, text, result.offset, result.expected)
        case reason:
            return _OF_LOG.get(reason, BusClosed)(result.problem)


def of_question(result: requests.NotAnswered | requests.AnswerLost) -> HoldfastError:
    """For what was asked of the application that a broker hosts."""
    if isinstance(result, requests.AnswerLost):
        return OutcomeUnknown(result.problem)
    match result.reason:
        case Refusal.NO_APPLICATION:
            return NoApplication(result.problem)
        case Refusal.APPLICATION_FAILED:
            return ApplicationFailed(result.problem)
        case Refusal.LIMIT:
            return LimitReached(result.problem, result.limit, result.allowed)
        case _:
            return BusClosed(result.problem)


def of_event(connection: Connection, event: requests.NewEvent, reason: Refusal | None, problem: str) -> HoldfastError:
    """For an event that was not accepted, or of which nobody knows."""
    match reason:
        case Refusal.EVENT:
            return _event_problem(connection.name, event, problem)
        case Refusal.NOT_ADVERTISED:
            return NotAdvertised(problem)
        case Refusal.SUPERSEDED:
            return Superseded(problem)
        case _ if problem == requests.NOT_CONNECTED:
            text = "there is no connection, and the event was not to be kept for one"
            return NotConnected(text, connection.reason, connection.refusal)
        case _:
            return OutcomeUnknown(problem)


def _event_problem(publisher: str, new: requests.NewEvent, problem: str) -> EventError:
    """With all that is known of it. A refusal is a text; the same look gives the fields."""
    try:
        check_topic(new.topic)
        check_attributes(new.attributes)
        # With numbers as large as can be: how large they were is not known any more, and it was refused.
        most = INTEGER_MAX
        event = Event(publisher, most, most, new.topic, dict(new.attributes), new.payload, most, most)
        check_event(event, len(encode_event(event)))
    except EventError as error:
        return error
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return EventError(problem)
