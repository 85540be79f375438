"""What operators and brokers say to each other. Operators have a role of their own: nothing here is for clients."""

from __future__ import annotations

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message


class Inspect(Message, frozen=True):
    """How are you? `links` is how many links at most are to be told of, those with the most waiting first."""

    request: int
    links: int = 100


class LinkReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One link: who is there, for how long (nanoseconds), and what waits to be sent."""

    peer: str
    role: str
    age: int
    waiting_messages: int
    waiting_bytes: int


class Inspected(Message, frozen=True):
    """`measures` are numbers by name (docs/operations.md); `facts` are texts by name. Times are nanoseconds."""

    request: int
    broker: str
    incarnation: int
    uptime: int
    measures: dict[str, int]
    facts: dict[str, str]
    links_total: int
    links: tuple[LinkReport, ...] = ()

    def weight(self) -> int:
        return NOMINAL_WEIGHT * (1 + len(self.measures) + len(self.links))


OPERATING_MESSAGES: dict[int, type[Message]] = {40: Inspect, 41: Inspected}
