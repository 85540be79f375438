"""What the core knows of one life of a client."""

from __future__ import annotations

import msgspec

from holdfast.errors import FilterError
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.core.commands import Execute
from holdfast.protocols.core.hosting import Answer, Hosting
from holdfast.protocols.core.judgement import Refused
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.subscriptions import Ledger, Subscription
from holdfast.protocols.sessions.messages import Advertised, AdvertiseRefused, Refusal


def too_many_filter_bytes(allowed: int) -> str:
    return f"the filters of a session have at most {allowed} bytes"


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    """A session as snapshots hold it: with what answers a request that comes again, at any replica (D4-B6.4)."""

    client: str
    instance: int
    epoch: int
    accepted: int
    refused: dict[int, tuple[Refusal, str]]
    ended: dict[int, str]
    advertised: dict[int, str] = {}
    confirmed: int = 0
    answers: dict[int, Answer] = {}
    incarnation: int = 0


class Session:
    """Its subscriptions are restored by the core, which knows their order."""

    __slots__ = (
        "accepted", "advertised", "answers", "client", "confirmed", "ended", "epoch", "filter_bytes",
        "incarnation", "instance", "ledger", "refused", "subscriptions",
    )  # fmt: skip

    def __init__(self, client: str, instance: int, epoch: int, backlog_bytes_max: int) -> None:
        self.ledger = Ledger(backlog_bytes_max)
        self.client = client
        self.instance = instance
        self.epoch = epoch
        self.incarnation = 0  # of the client, as far as it was told
        self.accepted = 0  # events of this session up to here are answered
        # Those of them that were refused, until the client has seen it.
        self.refused: dict[int, tuple[Refusal, str]] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.ended: dict[int, str] = {}  # by us, until the client has seen it
        # Of requests to the application: those that the client has confirmed, and what came of those executed since.
        self.confirmed = 0
        self.answers: dict[int, Answer] = {}
        self.advertised: FilterIndex[int] | None = None  # what it publishes, by number; None: it has not said
        self.filter_bytes = 0  # of all that the client subscribes to and advertises

    def came_to_want(self, filter: Filter) -> None:
        self.filter_bytes += len(str(filter))

    def wants_no_longer(self, filter: Filter) -> None:
        self.filter_bytes -= len(str(filter))

    def advertise(self, number: int, text: str, limits: CoreLimits) -> Advertised | AdvertiseRefused:
        index = FilterIndex[int]() if self.advertised is None else self.advertised
        if number in index:
            if str(index.filter(number)) != text:
                problem = f"advertisement {number} exists already, with another filter"
                return AdvertiseRefused(number, Refusal.CONFLICT, problem)
            return Advertised(number)
        allowed, limit = limits.advertisements_per_session, "advertisements_per_session"
        if len(index) >= allowed:
            problem = f"a session has at most {allowed} advertisements"
            return AdvertiseRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        allowed, limit = limits.filter_bytes_per_session, "filter_bytes_per_session"
        if self.filter_bytes + len(text) > allowed:
            problem = too_many_filter_bytes(allowed)
            return AdvertiseRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        try:
            index.add(number, Filter(text))
        except FilterError as error:
            return AdvertiseRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
        self.advertised = index
        self.filter_bytes += len(text)
        return Advertised(number)

    def execute(self, command: Execute, hosting: Hosting) -> Answer | None:
        """The answer to a request, which is executed if it was not before; None if it is not to be answered."""
        if command.confirmed > self.confirmed:
            self.confirmed = command.confirmed
            self.answers = {n: answer for n, answer in self.answers.items() if n > command.confirmed}
        number, limits = command.number, hosting.limits
        if not self.confirmed < number <= self.confirmed + limits.requests_in_flight:
            return None  # the client has its answer already; or the node would have refused it
        if number not in self.answers:
            if len(command.data) > limits.request_bytes:
                return None  # as the node does
            self.answers[number] = hosting.execute(command.data)
        return self.answers[number]

    def unadvertise(self, number: int) -> None:
        if self.advertised is not None and number in self.advertised:
            self.filter_bytes -= len(str(self.advertised.filter(number)))
            self.advertised.remove(number)
            if not len(self.advertised):
                self.advertised = None

    def came(self, incarnation: int) -> None:
        """Its client is there, in this start of it."""
        self.incarnation = incarnation

    def want_nothing(self) -> None:
        """What the client wanted and advertised is gone, as far as the session knows."""
        self.subscriptions, self.ended, self.advertised, self.filter_bytes = {}, {}, None, 0

    def confirm(self, number: int) -> None:
        """The client has seen what was refused up to a number."""
        if self.refused:
            self.refused = {n: why for n, why in self.refused.items() if n > number}

    def skip_to(self, number: int) -> None:
        self.accepted = max(self.accepted, number)

    def accept(self, count: int, refused: Refused) -> None:
        """So many events that follow are answered; those of these rows are refused."""
        if refused:
            self.refused |= {self.accepted + 1 + row: why for row, why in refused.items()}
        self.accepted += count

    def get_state(self) -> SessionState:
        return SessionState(
            self.client,
            self.instance,
            self.epoch,
            self.accepted,
            self.refused,
            self.ended,
            {} if self.advertised is None else {number: str(filter) for number, filter in self.advertised.items()},
            self.confirmed,
            self.answers,
            self.incarnation,
        )

    @classmethod
    def from_state(cls, state: SessionState, backlog_bytes_max: int) -> Session:
        session = cls(state.client, state.instance, state.epoch, backlog_bytes_max)
        session._restore(state)
        return session

    def _restore(self, state: SessionState) -> None:
        self.accepted, self.refused, self.ended = state.accepted, state.refused, state.ended
        self.confirmed, self.answers = state.confirmed, state.answers
        self.incarnation = state.incarnation
        if state.advertised:
            self.advertised = FilterIndex()
            for number, text in state.advertised.items():
                self.advertised.add(number, Filter(text))
                self.filter_bytes += len(text)
