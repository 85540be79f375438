"""How messages reach a neighbour in the tree: over the link to it, or, at some levels, around what failed."""

from __future__ import annotations

from typing import Protocol

from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox


class Ways(Protocol):
    def is_good(self, neighbour: str) -> bool:
        """Whether the link to a neighbour can be used."""
        ...

    def carries_events(self, neighbour: str) -> bool:
        """Whether it can be used for events: the neighbour knows where they go on."""
        ...

    def sends(self, neighbour: str) -> bool:
        """Whether events that are to go over the link are sent now, and not kept until it is known to be good."""
        ...

    def around(self, neighbour: str) -> tuple[str, ...]:
        """The brokers that a message for a neighbour reaches now, if not over its link."""
        ...

    def tell_around(self, neighbour: str, message: Message, out: Outbox) -> None:
        """Sends word of tables around; to nobody, if nobody can be reached: whoever comes back is told everything."""
        ...

    def send_around(self, neighbour: str, message: Message, out: Outbox) -> bool:
        """Sends events around; whether there is a way."""
        ...


class NoDetours:
    """The ways of levels that know none but the links."""

    def is_good(self, neighbour: str) -> bool:
        return True

    def carries_events(self, neighbour: str) -> bool:
        return True

    def sends(self, neighbour: str) -> bool:
        return True

    def around(self, neighbour: str) -> tuple[str, ...]:
        return ()

    def tell_around(self, neighbour: str, message: Message, out: Outbox) -> None:
        pass

    def send_around(self, neighbour: str, message: Message, out: Outbox) -> bool:
        return False
