"""A node that has errands for the program beside it, and nothing else: what that program sees of a broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.runtime.beside import Asker
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.standin.cycle.errands import EndErrand, Errand, Given, Outcome, TakeErrand

CATALOGUE: Catalogue = CLIENT_CATALOGUE


class ErrandDesk(Part):
    """Gives errands in their order; `asked` as the real one has it."""

    name: ClassVar[str] = "errands"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {}
    asked: ClassVar[tuple[type, ...]] = (TakeErrand, EndErrand)

    def __init__(self, errands: list[Errand]) -> None:
        self._waiting = list(enumerate(errands, 1))
        self.outcomes: dict[int, Outcome] = {}
        self.changed = asyncio.Event()

    def on_take_errand(self, request: int, asked: TakeErrand, out: Outbox) -> None:
        if self._waiting:
            out.complete(request, Given(*self._waiting.pop(0)))

    def on_end_errand(self, request: int, asked: EndErrand, out: Outbox) -> None:
        self.outcomes[asked.number] = asked.outcome
        out.complete(request, None)
        self.changed.set()


class ErrandNode:
    """Runs it; `ask` is what the program beside it is given."""

    def __init__(self, *errands: Errand) -> None:
        self.desk = ErrandDesk(list(errands))
        self._count = len(errands)
        self._asker = Asker()
        self.runner = NodeRunner("b1", Role.BROKER, lambda rng, streams: Assembly([self.desk]), CATALOGUE, self._asker)

    async def __aenter__(self) -> ErrandNode:
        self.runner.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.stop()

    async def ask(self, command: Any) -> Any:
        return await self._asker.ask(self.runner, command)

    async def outcomes(self, within_s: float = 60.0) -> list[Outcome]:
        """Of all errands, in their order, when all are there."""
        async with asyncio.timeout(within_s):
            while len(self.desk.outcomes) < self._count:
                self.desk.changed.clear()
                await self.desk.changed.wait()
        return [self.desk.outcomes[number] for number in range(1, self._count + 1)]
