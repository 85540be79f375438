"""A broker that lends, as others see it: its address, the desk that operators talk to, and the program beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.operating.desk import OperatorDesk
from holdfast.protocols.operating.messages import NameReport, SubscriptionReport
from holdfast.runtime.beside import Asker
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.standin.cycle.errands import EndErrand, Given, TakeErrand
from holdfast.schemes.tree.standin.cycle.lending import Asked, Lending
from holdfast.standby.beside import beside as beside_of
from holdfast.wire.addresses import split_address
from tests.standby.sites import TestSite


class Nobody:
    """No subscriptions, and no names."""

    def subscriptions(self, count: int) -> tuple[SubscriptionReport, ...]:
        return ()

    def application_facts(self) -> dict[str, str]:
        return {}

    def furthest_behind(self, count: int, out: Outbox) -> tuple[NameReport, ...]:
        return ()


class LendingDesk(Part):
    """What a broker's node does about lending: requests of operators become errands."""

    name: ClassVar[str] = "lending"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {}
    asked: ClassVar[tuple[type, ...]] = (TakeErrand, EndErrand)

    def __init__(self, taken: Sequence[str]) -> None:
        self._lending = Lending()
        self._taken = tuple(taken)
        self._errands: list[Given] = []
        self._given: dict[int, Asked] = {}
        self._takers: list[int] = []

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        begun = self._lending.begin(action, told, self._taken)
        if isinstance(begun, str):
            return begun
        number = len(self._given) + 1
        self._given[number] = begun
        self._errands.append(Given(number, begun))
        self._give(out)
        return ""

    def _give(self, out: Outbox) -> None:
        while self._errands and self._takers:
            out.complete(self._takers.pop(0), self._errands.pop(0))

    def on_take_errand(self, request: int, asked: TakeErrand, out: Outbox) -> None:
        self._takers.append(request)
        self._give(out)

    def on_end_errand(self, request: int, asked: EndErrand, out: Outbox) -> None:
        self._lending.ended(self._given[asked.number], asked.outcome)
        out.complete(request, None)

    def facts(self) -> dict[str, str]:
        return self._lending.facts()


class LenderNode:
    """Stands where the site's broker b1 would be."""

    def __init__(self, site: TestSite, taken: Sequence[str] = ()) -> None:
        self._site = site
        self._asker = Asker()
        desk = LendingDesk(taken)
        operators = OperatorDesk("b1", [], Nobody(), Nobody(), [desk], desk)
        self._runner = NodeRunner(
            "b1", Role.BROKER, lambda rng, streams: Assembly([desk, operators]), CLIENT_CATALOGUE, self._asker
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LenderNode:
        self._runner.start()
        await self._runner.listen((Role.OPERATOR,), *split_address(self._site.addresses["b1"]))
        beside = beside_of(self._site.site, self._site.site.brokers[0], str(self._site.file), "warning")
        self._task = asyncio.ensure_future(beside.run(self._ask))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._runner.stop()

    async def _ask(self, command: Any) -> Any:
        return await self._asker.ask(self._runner, command)
