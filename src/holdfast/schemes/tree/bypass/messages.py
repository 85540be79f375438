"""What brokers tell each other about links, and the wrapper of what goes another way than the tree's (D1-A11)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message
from holdfast.model.event import EventBytes, event_ids

# Beyond is no incarnation and no count that a broker could reach; one more is still a number that can be written.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class LinkState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a broker says of itself: which of its neighbours in the graph are up for it, in the graph's order, and
    whether it is `ready`: it has its routing table, so that events may be left to it.

    The newest counts. Of one incarnation that is the highest number; number 0 is said by others, who met the
    incarnation and have not heard of it yet.
    """

    origin: str
    incarnation: Count
    number: Count
    up: tuple[str, ...] = ()
    ready: bool = False

    @property
    def version(self) -> tuple[int, int]:
        return (self.incarnation, self.number)


class LinkStates(Message, frozen=True):
    """What is new of these brokers; on a new link, all that the sender knows."""

    states: tuple[LinkState, ...]

    def weight(self) -> int:
        return NOMINAL_WEIGHT * (1 + len(self.states))


class Detour(Message, frozen=True):
    """A message that `sender` would have given to a neighbour in the tree, on its way to `target` by other links.

    `hops`: how many links it may take, with the one that it is on. `kind` and `body` are the message, as the registry
    of what may be carried has it. `is_user`: it gives way to control.
    """

    target: str
    sender: str
    hops: Annotated[int, msgspec.Meta(ge=1)]
    kind: int
    body: bytes
    is_user: bool = False

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.body)

    def event_ids(self) -> list[str]:
        return event_ids(_decode_events(self.body).events) if self.is_user else []


class _Events(msgspec.Struct, frozen=True, array_like=True):
    """A message with events, as far as traces want to know: a number, and the events."""

    first: int
    events: EventBytes


_decode_events = msgspec.msgpack.Decoder(_Events).decode


BYPASS_MESSAGES: dict[int, type[Message]] = {
    221: LinkStates,
    222: Detour,
}
LARGE_BYPASS_MESSAGES: Final = (LinkStates, Detour)
