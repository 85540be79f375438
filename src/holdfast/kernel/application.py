"""What a replicated or journalled application is: the broker's core is one, and may itself host one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

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


class Derived(msgspec.Struct, frozen=True):
    """An event that a hosted application makes of what it has seen."""

    topic: str
    attributes: dict[str, int | float | str | bool]
    payload: bytes


class Hosted(Protocol):
    """An application that a broker's core hosts: it sees events as they are accepted, and executes clients' requests
    (D4-A9).

    It must be deterministic: equal calls in equal order give equal results and equal states, at every replica and after
    every restart. So it reads no clock, no file and no random source, and never lets the order of a set decide. What
    it raises counts as a result too, and stops nothing; but a state that can't be given or taken stops the node.
    """

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the events that it wants to see; the same at all times."""
        ...

    def execute(self, request: bytes) -> bytes:
        """The answer to a client's request."""
        ...

    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, int | float | str | bool], payload: bytes
    ) -> Sequence[Derived]:
        """Sees an event: its position in the log, or its running number without one. Gives what is to be published
        right behind; it does not see that again."""
        ...

    def get_state(self) -> bytes:
        """The whole state; equal bytes mean equal futures."""
        ...

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state."""
        ...
