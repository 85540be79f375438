"""Hands errands to the program beside the broker, if there is one, and tells what came of them."""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.schemes.tree.standin.cycle.errands import EndErrand, Errand, Given, TakeErrand
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded

ERRANDS_MAX: Final = 256  # that wait; of more, the oldest are forgotten: each may be wanted again


class ErrandDesk(Part):
    name: ClassVar[str] = "errands"
    asked: ClassVar[tuple[type, ...]] = (TakeErrand, EndErrand)
    due = False

    def __init__(self) -> None:
        self.is_served = False  # whether there is a program
        self._last = 0
        self._errands: deque[Given] = deque(maxlen=ERRANDS_MAX)
        self._waiting: deque[int] = deque()  # requests

    def give(self, errand: Errand, out: Outbox) -> int:
        """Its number, under which it ends."""
        self._last += 1
        self._errands.append(Given(self._last, errand))
        self._hand_out(out)
        return self._last

    def on_take_errand(self, request: int, command: TakeErrand, out: Outbox) -> None:
        self.is_served = True
        self._waiting.append(request)
        self._hand_out(out)

    def on_end_errand(self, request: int, command: EndErrand, out: Outbox) -> None:
        out.complete(request, None)
        out.tell(ErrandEnded(command.number, command.outcome))

    def _hand_out(self, out: Outbox) -> None:
        while self._waiting and self._errands:
            out.complete(self._waiting.popleft(), self._errands.popleft())
