"""Asks brokers how they are, and groups and networks to change: `holdfast status`, `group` and `network` call it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import msgspec

from holdfast.broker.client_assembly import make_operator
from holdfast.kernel.links import Role
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.operating.messages import (
    ChangeBegun,
    HistoryTold,
    Inspected,
    LeadershipMoved,
    NameRemoved,
    NameReport,
    NamesListed,
)
from holdfast.protocols.operating.operator import (
    AskBroker,
    Asked,
    AskForHistory,
    AskForNames,
    AskToChange,
    AskToForget,
    AskToMove,
    Unreachable,
)
from holdfast.runtime.runner import NodeRunner


class BrokerDesk:
    """A link to one broker, as an operator. It is made when something is asked, and again when it was lost."""

    def __init__(self, address: str, timeout_s: float = 3.0) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._runner: NodeRunner | None = None
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last_request = 0

    async def __aenter__(self) -> BrokerDesk:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def inspect(
        self, links: int = 100, application: bool = False, subscriptions: int = 0
    ) -> Inspected | Unreachable:
        """What the broker says of itself, or why it does not. `application`: with a digest of the hosted one's state,
        which may take a while. `subscriptions`: with so many of those, the least on time first, and so many names."""
        return await self._ask(AskBroker(links, application, subscriptions))  # type: ignore[no-any-return]

    async def move_leadership(self, to: str = "") -> LeadershipMoved | Unreachable:
        """Asks the leader of a group to let another replica lead."""
        return await self._ask(AskToMove(to))  # type: ignore[no-any-return]

    async def change(self, action: str, told: Mapping[str, str]) -> ChangeBegun | Unreachable:
        """Asks the leader of a group, or the keeper of a network, to change it; it takes a while after that."""
        return await self._ask(AskToChange(action, told))  # type: ignore[no-any-return]

    async def names(self) -> NamesListed | Unreachable:
        """All named subscriptions, in the order of their names."""
        found: list[NameReport] = []
        while True:
            answer: NamesListed | Unreachable = await self._ask(AskForNames(found[-1].name if found else ""))
            if isinstance(answer, Unreachable):
                return answer
            found += answer.names
            if not answer.more:
                return msgspec.structs.replace(answer, names=tuple(found))

    async def forget_name(self, name: str, force: bool = False) -> NameRemoved | Unreachable:
        """Gives a named subscription up; one that a client has only by force."""
        return await self._ask(AskToForget(name, force))  # type: ignore[no-any-return]

    async def history(self) -> HistoryTold | Unreachable:
        """What has happened among brokers that work together, as far as this one saw to it."""
        return await self._ask(AskForHistory())  # type: ignore[no-any-return]

    async def _ask(self, command: Asked) -> Any:
        if self._runner is None:
            self._runner = NodeRunner(
                f"operator-{secrets.token_hex(4)}",
                Role.OPERATOR,
                lambda rng, streams: make_operator(self.address),
                CLIENT_CATALOGUE,
                self,
            )
            self._runner.start()
        self._last_request += 1
        future = self._futures[self._last_request] = asyncio.get_running_loop().create_future()
        self._runner.request(self._last_request, command)
        try:
            answer = await asyncio.wait_for(future, self._timeout_s)
        except TimeoutError:
            answer = Unreachable(f"no answer within {self._timeout_s:g} s")
        if isinstance(answer, Unreachable):
            await self.close()
        return answer

    async def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.stop()

    # --------------------------------------------------------------------------------------- called by the runner
    def on_deliver(self, subscription: int, events: Any) -> None:
        """Nothing is delivered to an operator."""

    def on_complete(self, request: int, result: Any) -> None:
        future = self._futures.pop(request, None)
        if future is not None and not future.done():
            future.set_result(result)
