"""What a sequencer, which decides the order of commands for an application, tells the parts around it."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.notices import Notice


class CommandsApplied(Notice, frozen=True):
    """Commands have been applied, and this came of them."""

    outputs: list[Any]


class Elected(Notice, frozen=True):
    """This replica leads, and has executed all that earlier leaders may have told of."""


class Deposed(Notice, frozen=True):
    """It leads no more."""


class LeaderKnown(Notice, frozen=True):
    """Another one leads, and it is known which."""


class StateReplaced(Notice, frozen=True):
    """The application's state is another replica's now."""


class HoldingsFetched(Notice, frozen=True):
    """What another replica's state speaks of, and is no part of it, is here; or nobody gave it."""

    whole: bool
