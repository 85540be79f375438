"""The subscriptions of a bus, named or not: made, fed and ended over its connection."""

from __future__ import annotations

from typing import Any

from holdfast.client import refusals
from holdfast.client.connection import Connection
from holdfast.client.log_calls import LogCalls, Start
from holdfast.client.named import NamedSubscription
from holdfast.client.subscription import Subscription
from holdfast.errors import HoldfastError, SubscriptionEnded
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.cursors import requests as log_requests
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.messages import Overflow


class Subscriptions:
    """Under the numbers that the node gives them; named ones under theirs with the sign changed."""

    def __init__(self, connection: Connection, log: LogCalls) -> None:
        self._connection = connection
        self._log = log
        self._open: dict[int, Subscription | NamedSubscription] = {}
        self._making: dict[int, Subscription | NamedSubscription] = {}

    # -------------------------------------------------------------------------------------------- for subscriptions
    async def make(self, subscription: Subscription) -> int:
        overflow = Overflow(subscription.overflow)
        command = requests.MakeSubscription(subscription.filter, overflow, subscription.window)
        result = await self._make(command, subscription)
        if isinstance(result, requests.SubscriptionMade):
            return result.subscription
        raise refusals.of_filter(result, subscription.filter)

    async def end(self, number: int) -> None:
        self._open.pop(number, None)
        await self._connection.tell(requests.EndSubscription(number))

    def consumed(self, number: int, count: int) -> None:
        self._connection.mention(requests.Consume(number, count))

    # -------------------------------------------------------------------------------------------------- for named ones
    async def make_cursor(self, subscription: NamedSubscription, from_: Start | None) -> tuple[int, int]:
        """The cursor's number, and up to where it is acknowledged."""
        start = await self._log.start_of(from_)
        name, filter = subscription.name, subscription.filter
        command = log_requests.MakeCursor(name, filter, start, from_ is not None, subscription.window)
        result = await self._make(command, subscription)
        if isinstance(result, log_requests.CursorMade):
            return result.cursor, result.acknowledged
        raise refusals.of_log(result, filter)

    async def end_cursor(self, number: int) -> None:
        self._open.pop(-number, None)
        await self._connection.tell(log_requests.EndCursor(number))

    def consumed_cursor(self, number: int, count: int) -> None:
        self._connection.mention(log_requests.ConsumeCursor(number, count))

    def acknowledge_soon(self, number: int, position: int) -> None:
        self._connection.mention(log_requests.AcknowledgeUpTo(number, position))

    async def acknowledge(self, number: int, position: int | Position) -> None:
        """Returns when the broker has it safe."""
        await self._log.ask(log_requests.AcknowledgeUpTo(number, await self._log.plain_number(position)))

    async def _make(self, command: Any, subscription: Subscription | NamedSubscription) -> Any:
        self._connection.check_open()
        request = self._connection.next_request()
        self._making[request] = subscription
        try:
            return await self._connection.ask(command, request)
        finally:
            self._making.pop(request, None)

    # --------------------------------------------------------------------------------------------------- for the bus
    def deliver(self, number: int, events: ReceivedEvents) -> None:
        found = self._open.get(number)
        if found is not None:
            found._deliver(events)

    def answer(self, request: int, result: Any) -> None:
        """Here and not when the maker goes on: events may come with the same turn."""
        if request in self._making:
            if isinstance(result, requests.SubscriptionMade):
                self._open[result.subscription] = self._making[request]
            elif isinstance(result, log_requests.CursorMade):
                self._open[-result.cursor] = self._making[request]

    def report(self, report: Any) -> None:
        """Looks at what is about a subscription."""
        match report:
            case requests.EventsMissed() if missed := self._open.get(report.subscription):
                missed._missed(report.count)
            case requests.EventsExpired() if late := self._open.get(report.subscription):
                late._expired(report.count)
            case requests.SubscriptionLost() if lost := self._open.pop(report.subscription, None):
                lost._end(SubscriptionEnded(f"the broker ended the subscription: {report.reason}", lost.filter))
            case log_requests.CursorLost() if lost := self._open.pop(-report.cursor, None):
                lost._end(refusals.of_log(report))

    def end_all(self, problem: HoldfastError) -> None:
        for subscription in self._open.values():
            subscription._end(problem)
