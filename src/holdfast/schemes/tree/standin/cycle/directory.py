"""Whether a map may follow another: asked when a broker is replaced, and never else (D0-A10).

There are two: all members agree among themselves (`agreement`), or a group keeps it, which the program beside the
broker asks. Both hold nothing but who is next to whom.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, Protocol

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.network_map import NetworkMap, RemoveBroker, ReplaceBroker
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Accepted, Failed, Propose
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded

ANSWERED_WITHIN: Final = 15 * SECOND


class Answer(NamedTuple):
    """The map that follows, or what is against it; neither as long as that is not known."""

    map: NetworkMap | None = None
    problem: str = ""


class Directory(Protocol):
    """Asked for one thing at a time."""

    @property
    def is_asking(self) -> bool: ...

    def obstacle(self, before: NetworkMap, faulty: str, out: Outbox) -> str | None:
        """Why it would be of no use to ask, before a spare is kept for it; empty if it would, and None as long as that
        is not known. So who is cut off keeps no spare from those who could replace it."""
        ...

    def begin(self, before: NetworkMap, change: ReplaceBroker | RemoveBroker, after: NetworkMap, out: Outbox) -> str:
        """Asks; gives what is against it at once."""
        ...

    def look(self, out: Outbox) -> Answer:
        """What came of it; then it is asked no more."""
        ...

    def give_up(self, out: Outbox) -> None:
        """Nothing is to come of it. It may have been agreed to all the same."""
        ...


class GroupDirectory(Part):
    """A group that hosts the directory. What it has accepted, it will say again to whoever asks, so that a map which
    was accepted and never made is taken up by the next one."""

    name: ClassVar[str] = "directory"
    notices: ClassVar[tuple[type[Notice], ...]] = (ErrandEnded,)
    due = False

    def __init__(self, errands: ErrandDesk) -> None:
        self._errands = errands
        self._number = 0
        self._since = 0
        self._answer = Answer()

    @property
    def is_asking(self) -> bool:
        return self._number != 0

    def obstacle(self, before: NetworkMap, faulty: str, out: Outbox) -> str | None:
        return "" if self._errands.is_served else "the directory can't be asked: no program is there to do it"

    def begin(self, before: NetworkMap, change: ReplaceBroker | RemoveBroker, after: NetworkMap, out: Outbox) -> str:
        if problem := self.obstacle(before, change.name, out):
            return problem
        self._number, self._since, self._answer = self._errands.give(Propose(before, after), out), out.now, Answer()
        return ""

    def on_errand_ended(self, ended: ErrandEnded, out: Outbox) -> None:
        if ended.number != self._number:
            return
        match ended.outcome:
            case Accepted(accepted):
                self._answer = Answer(accepted)
            case Failed(problem):
                self._answer = Answer(problem=f"the directory: {problem}")
            case _:
                self._answer = Answer(problem="the directory answers something else")

    def look(self, out: Outbox) -> Answer:
        answer = self._answer
        if answer == Answer() and out.now - self._since >= ANSWERED_WITHIN:
            answer = Answer(problem="the directory does not answer in time")
        if answer != Answer():
            self._number = 0
        return answer

    def give_up(self, out: Outbox) -> None:
        self._number = 0
