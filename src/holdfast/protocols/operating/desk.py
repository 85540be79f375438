"""The part of a broker that operators talk to. It looks at the other parts, and changes nothing by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from holdfast.kernel.inputs import LinkDown, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.operating.messages import (
    ChangeGroup,
    GroupChangeBegun,
    Inspect,
    Inspected,
    LeadershipMoved,
    LinkReport,
    MoveLeadership,
    SubscriptionReport,
)

OPERATORS: Final = frozenset({Role.OPERATOR})
NO_GROUP: Final = "this broker is no member of a group"
LINKS_MAX: Final = 1_000  # in one answer, whatever is asked for
SUBSCRIPTIONS_MAX: Final = 1_000


class OperatorDesk:
    """`measure_node` gives the node's measures, `subscriptions` so many of them, the least reliable first, `facts` and
    `more_facts` what there is to say in words, and `application_facts` what is said of the hosted one if someone asks.
    `transfer` lets another replica lead, and gives its name, or what is against it; `change` begins a change of
    the group, likewise."""

    name: ClassVar[str] = "desk"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Inspect, MoveLeadership, ChangeGroup), OPERATORS
    )

    def __init__(self, broker: str, facts: Mapping[str, str]) -> None:
        self.measure_node: Callable[[], dict[str, int]] = dict
        self.subscriptions: Callable[[int], tuple[SubscriptionReport, ...]] = lambda count: ()
        self.more_facts: Callable[[], dict[str, str]] = dict
        self.application_facts: Callable[[], dict[str, str]] = dict
        self.transfer: Callable[[str, Outbox], tuple[str, str]] = lambda to, out: (to, NO_GROUP)
        self.change: Callable[[ChangeGroup, Outbox], str] = lambda change, out: NO_GROUP
        self._broker = broker
        self._facts = dict(facts)
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
        shown = tuple(reports[: max(0, min(inspect.links, LINKS_MAX))])
        answer = Inspected(
            inspect.request,
            self._broker,
            self._incarnation,
            out.now - self._started_at,
            self.measure_node(),
            self._facts | self.more_facts() | (self.application_facts() if inspect.application else {}),
            len(reports),
            shown,
            self.subscriptions(max(0, min(inspect.subscriptions, SUBSCRIPTIONS_MAX))),
        )
        out.send(peer, answer, after=NOW)

    def on_move_leadership(self, peer: str, move: MoveLeadership, out: Outbox) -> None:
        to, problem = self.transfer(move.to, out)
        out.send(peer, LeadershipMoved(move.request, to, problem), after=NOW)

    def on_change_group(self, peer: str, change: ChangeGroup, out: Outbox) -> None:
        out.send(peer, GroupChangeBegun(change.request, self.change(change, out)), after=NOW)
