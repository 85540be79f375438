"""What operators and brokers say to each other. Operators have a role of their own: nothing here is for clients."""

from __future__ import annotations

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message


class Inspect(Message, frozen=True):
    """How are you? `links` is how many links at most are to be told of, those with the most waiting first.
    `application`: what state is the hosted application in? That takes as long as a snapshot of it. `subscriptions` is
    how many of those are to be told of, the least on time first, and how many names, the furthest behind first."""

    request: int
    links: int = 100
    application: bool = False
    subscriptions: int = 0


class LinkReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One link: who is there, for how long (nanoseconds), and what waits to be sent."""

    peer: str
    role: str
    age: int
    waiting_messages: int
    waiting_bytes: int


class SubscriptionReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One subscription: what waits for it, what became of its events so far, and how far it has come in a network."""

    client: str
    number: int
    filter: str
    waiting: int
    on_time: int
    expired: int
    dropped: int
    state: str = ""


class NameReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One named subscription. `owner` is the client that has it, if one does, and `connected` whether it has a link
    here. Events behind the head that it has not acknowledged, and about how many bytes of those are kept; `lost` of
    them are not kept any more. For how long (nanoseconds) it exists, and is not opened, acknowledged or left; -1 is not
    known."""

    name: str
    owner: str
    connected: bool
    acknowledged: int
    behind: int
    bytes: int
    lost: int
    age: int
    unused: int
    filter: str


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
    subscriptions: tuple[SubscriptionReport, ...] = ()
    names: tuple[NameReport, ...] = ()

    def weight(self) -> int:
        reports = len(self.links) + len(self.subscriptions) + len(self.names)
        return NOMINAL_WEIGHT * (1 + len(self.measures) + reports)


class MoveLeadership(Message, frozen=True):
    """To the leader of a group: let another replica lead; empty: whichever is furthest."""

    request: int
    to: str = ""


class LeadershipMoved(Message, frozen=True):
    """The replica `to` was asked to lead; or why it was not."""

    request: int
    to: str
    problem: str = ""


class Change(Message, frozen=True):
    """To whoever orders changes among brokers that work together: `action` is one that their scheme knows, `told` is
    what there is to say of it, by name."""

    request: int
    action: str
    told: dict[str, str]


class ChangeBegun(Message, frozen=True):
    """The change is under way, as `facts` tell; or why it is not."""

    request: int
    problem: str = ""


class ListNames(Message, frozen=True):
    """Which named subscriptions are there? In the order of their names, so many behind `after`."""

    request: int
    after: str = ""
    count: int = 500


class NamesListed(Message, frozen=True):
    """`total` is how many there are, `more` whether some follow; or why there can't be any."""

    request: int
    broker: str
    names: tuple[NameReport, ...]
    total: int
    more: bool
    problem: str = ""

    def weight(self) -> int:
        return NOMINAL_WEIGHT * (1 + len(self.names))


class RemoveName(Message, frozen=True):
    """Give a named subscription up. `force`: also if a client has it, which is told."""

    request: int
    name: str
    force: bool = False


class NameRemoved(Message, frozen=True):
    """`owner` is the client that has it, or had it until now; `behind` is how many events it had not acknowledged, -1
    if there is no such name. Or the problem."""

    request: int
    removed: bool
    owner: str = ""
    behind: int = -1
    problem: str = ""


class HistoryEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that happened, at this time (nanoseconds since 1970), when the map or the group had this number."""

    wall: int
    number: int
    text: str


class TellHistory(Message, frozen=True):
    """What has happened among brokers that work together, as far as this one saw to it?"""

    request: int


class HistoryTold(Message, frozen=True):
    """In the order in which it happened, or the problem."""

    request: int
    broker: str
    entries: tuple[HistoryEntry, ...] = ()
    problem: str = ""

    def weight(self) -> int:
        return NOMINAL_WEIGHT * (1 + len(self.entries))


# 44 and 45 were changes of groups only.
OPERATING_MESSAGES: dict[int, type[Message]] = {
    38: Change,
    39: ChangeBegun,
    40: Inspect,
    41: Inspected,
    42: MoveLeadership,
    43: LeadershipMoved,
    46: ListNames,
    47: NamesListed,
    48: RemoveName,
    49: NameRemoved,
    74: TellHistory,
    75: HistoryTold,
}
