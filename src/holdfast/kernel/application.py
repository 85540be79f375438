"""What a replicated or journalled application is: the broker's core is one."""

from __future__ import annotations

from typing import Protocol, TypeVar

Command = TypeVar("Command", contravariant=True)
Output = TypeVar("Output")


class Application(Protocol[Command, Output]):
    """A machine that numbered commands drive. It has no links, timers, storage or randomness.

    Equal commands give equal states, at every replica and after every restart. `apply` is total: a bad command is
    answered with a typed error, never with an exception, or one poisoned command would stop every replica.
    """

    def apply(self, number: int, wall: int, command: Command) -> list[Output]:
        """Executes one command. Numbers rise by one; `wall` is the time that came with the command."""
        ...

    def get_state(self) -> bytes:
        """The whole state; equal bytes mean equal futures."""
        ...

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state."""
        ...
