"""The part of a broker that operators talk to. It looks at the other parts, and changes nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

from holdfast.kernel.inputs import LinkDown, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.operating.changes import Changes
from holdfast.protocols.operating.messages import (
    Change,
    ChangeBegun,
    Inspect,
    Inspected,
    LeadershipMoved,
    LinkReport,
    MoveLeadership,
    NameReport,
    SubscriptionReport,
)

OPERATORS: Final = frozenset({Role.OPERATOR})
NO_GROUP: Final = "this broker is no member of a group"
LINKS_MAX: Final = 1_000  # in one answer, whatever is asked for
SUBSCRIPTIONS_MAX: Final = 1_000


class Census(Protocol):
    def subscriptions(self, count: int) -> tuple[SubscriptionReport, ...]:
        """So many, the least on time first."""
        ...

    def application_facts(self) -> dict[str, str]:
        """What the hosted application says of itself."""
        ...


class Names(Protocol):
    def furthest_behind(self, count: int, out: Outbox) -> tuple[NameReport, ...]:
        """So many named subscriptions, those first that hold the oldest events."""
        ...


class Facts(Protocol):
    def facts(self) -> dict[str, str]:
        """What there is to say in words."""
        ...


class Group(Protocol):
    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        """Lets another replica lead; gives its name, and what is against it."""
        ...


class NoGroup:
    """Of a broker that is no replica."""

    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        return to, NO_GROUP


class OperatorDesk(Part):
    """`parts` are those that are measured, `facts` is what is said in words."""

    name: ClassVar[str] = "desk"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Inspect, MoveLeadership, Change), OPERATORS
    )

    def __init__(
        self,
        broker: str,
        parts: Sequence[Part],
        census: Census,
        names: Names,
        facts: Sequence[Facts],
        changes: Changes,
        group: Group | None = None,
    ) -> None:
        self._broker = broker
        self._parts = tuple(parts)
        self._census = census
        self._names = names
        self._facts = tuple(facts)
        self._changes = changes
        self._group = group or NoGroup()
        self._incarnation = 0
        self._started_at = 0
        self._links: dict[int, tuple[str, Role, int]] = {}

    def on_started(self, started: Started, out: Outbox) -> None:
        self._incarnation, self._started_at = started.incarnation, out.now

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        self._links[up.link] = (up.peer, up.role, out.now)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        _, role, _ = self._links.pop(down.link)
        if role is Role.OPERATOR:
            out.drop_queue(down.peer)

    def on_inspect(self, peer: str, inspect: Inspect, out: Outbox) -> None:
        reports = []
        for name, role, since in self._links.values():
            queue = out.queues.get(name)
            waiting = (0, 0) if queue is None else (len(queue), queue.bytes)
            reports.append(LinkReport(name, role.value, out.now - since, *waiting))
        reports.sort(key=lambda report: -report.waiting_bytes)
        facts = {name: text for source in self._facts for name, text in source.facts().items()}
        if inspect.application:
            facts |= self._census.application_facts()
        shown = tuple(reports[: max(0, min(inspect.links, LINKS_MAX))])
        wanted = max(0, min(inspect.subscriptions, SUBSCRIPTIONS_MAX))
        answer = Inspected(
            inspect.request,
            self._broker,
            self._incarnation,
            out.now - self._started_at,
            {name: value for part in self._parts for name, value in part.measure().items()},
            facts,
            len(reports),
            shown,
            self._census.subscriptions(wanted),
            self._names.furthest_behind(wanted, out),
        )
        out.send(peer, answer, after=NOW)

    def on_move_leadership(self, peer: str, move: MoveLeadership, out: Outbox) -> None:
        to, problem = self._group.transfer(move.to, out)
        out.send(peer, LeadershipMoved(move.request, to, problem), after=NOW)

    def on_change(self, peer: str, change: Change, out: Outbox) -> None:
        problem = self._changes.change(change.action, change.told, out)
        # What has begun is on the disk first: nothing would come of it else, if it were lost.
        out.send(peer, ChangeBegun(change.request, problem), after=NOW if problem else LATEST)
