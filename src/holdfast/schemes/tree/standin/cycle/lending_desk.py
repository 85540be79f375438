"""The part of a broker that other sites ask for spares: hands their requests to the program beside the broker."""

from __future__ import annotations

from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Failed
from holdfast.schemes.tree.standin.cycle.lending import ACTIONS, Asked, Lending
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded
from holdfast.schemes.tree.standin.cycle.spares import taken_names

PATIENCE: Final = 300 * SECOND  # with the program; then it may be asked for something else


class LendingDesk(Part):
    name: ClassVar[str] = "lending"
    notices: ClassVar[tuple[type[Notice], ...]] = (ErrandEnded,)
    due = False

    def __init__(self, roster: Roster, errands: ErrandDesk) -> None:
        self._roster = roster
        self._errands = errands
        self._lending = Lending()
        self._given: dict[int, tuple[Asked, int]] = {}  # errand → what it is, and since when it is under way

    def takes(self, action: str) -> bool:
        return action in ACTIONS

    def change(self, action: str, told: Fields[str, str], out: Outbox) -> str:
        """Begins it; gives what is against it. What came of it is among the facts."""
        for number, (asked, since) in list(self._given.items()):
            if out.now - since >= PATIENCE:
                self._end(number, asked, ErrandEnded(number, Failed("the program beside the broker says nothing")))
        if not self._errands.is_served:
            return f"{self._roster.name} can't lend: no program is there to do it"
        asked_for = self._lending.begin(action, told, taken_names(self._roster.map))
        if isinstance(asked_for, str):
            return asked_for
        self._given[self._errands.give(asked_for, out)] = asked_for, out.now
        return ""

    def on_errand_ended(self, ended: ErrandEnded, out: Outbox) -> None:
        if ended.number in self._given:
            self._end(ended.number, self._given[ended.number][0], ended)

    def _end(self, number: int, asked: Asked, ended: ErrandEnded) -> None:
        del self._given[number]
        self._lending.ended(asked, ended.outcome)

    def facts(self) -> dict[str, str]:
        return self._lending.facts()
