"""A broker that is in need of a stand-in, and how far it is with that: D0-B2."""

from __future__ import annotations

import enum

from holdfast.protocols.routing.network_map import (
    NetworkMember,
    RemoveBroker,
    ReplaceBroker,
    StandInMode,
    StandInProtocol,
)
from holdfast.schemes.tree.standin.cycle.levels import Cause


class Stage(enum.Enum):
    """What is done now."""

    CHECKING = "calling it"
    SEEKING = "looking for a spare"
    PROVIDING = "waiting for a broker that is provided"
    RESERVING = "asking the spare"
    AGREEING = "asking all whether they agree"
    LEARNING = "the stand-in learns"


class Case:
    """Held by the member that sees to it."""

    def __init__(self, faulty: str, cause: Cause, reason: str, how: ReplaceBroker, now: int) -> None:
        self.faulty = faulty
        self.cause = cause
        self.reason = reason
        self.how = how  # but for the spare
        self.removes = False  # it shares another's work itself: nobody stands in for it
        self.begun = now
        self.stage = Stage.CHECKING
        self.since = now  # the stage
        self.tried: dict[str, str] = {}  # spares, and why not
        self.absent: set[str] = set()  # those of them that do not run, and may be started
        self.spare: NetworkMember | None = None
        self.provided = ""  # how it was got, if it had to be provided
        self.problem = ""

    @property
    def is_asked(self) -> bool:
        """Whether an operator wants it, and not a complaint."""
        return self.how.asked

    def go_to(self, stage: Stage, now: int) -> None:
        self.stage, self.since, self.problem = stage, now, ""

    def wait_for(self, problem: str) -> None:
        self.problem = problem

    def try_spare(self, spare: NetworkMember | None, provided: str, now: int) -> None:
        self.spare, self.provided = spare, provided
        self.go_to(Stage.RESERVING, now)

    def refuse_spare(self, name: str, why: str, now: int) -> None:
        self.tried[name] = why
        self.spare, self.provided = None, ""
        self.go_to(Stage.SEEKING, now)

    def remove(self) -> None:
        self.removes = True

    def forget_spare(self) -> str:
        """The name of the one that was provided, if one was."""
        provided = self.spare.name if self.spare is not None and self.provided else ""
        self.spare, self.provided = None, ""
        return provided

    @property
    def change(self) -> ReplaceBroker | RemoveBroker | None:
        """What is to be made; None as long as there is no spare."""
        spare, how = self.spare, self.how
        if self.removes:
            return RemoveBroker(self.faulty, lost=True)
        if spare is None:
            return None
        places = (spare.client_address, spare.peer_address)
        return ReplaceBroker(self.faulty, spare.name, *places, how.protocol, how.mode, how.asked)

    def __str__(self) -> str:
        by = "" if self.spare is None else f" by {self.spare.name}"
        problem = f"; {self.problem}" if self.problem else ""
        return f"{self.faulty}{by} ({self.cause.value}: {self.reason}): {self.stage.value}{problem}"


def wanted(faulty: str, mode: StandInMode, protocol: StandInProtocol, asked: bool = False) -> ReplaceBroker:
    """How a broker is to be replaced, by whom is not known yet."""
    return ReplaceBroker(faulty, "", "", "", protocol, mode, asked)
