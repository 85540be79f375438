"""What neighbours say so that each knows of the other."""

from __future__ import annotations

from holdfast.kernel.messages import Message


class Alive(Message, frozen=True):
    """The sender is there. Whatever else it says tells that too; this is for when it has nothing to say."""


FAILURE_MESSAGES: dict[int, type[Message]] = {220: Alive}
