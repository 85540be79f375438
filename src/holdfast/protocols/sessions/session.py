"""What the core knows of one life of a client."""

from __future__ import annotations

import msgspec

from holdfast.errors import FilterError
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.sessions.messages import Advertised, AdvertiseRefused, Refusal
from holdfast.protocols.sessions.subscriptions import Subscription


class Session:
    """Its subscriptions are restored by the core, which knows their order."""

    __slots__ = ("accepted", "advertised", "client", "ended", "epoch", "instance", "refused", "subscriptions")

    def __init__(self, client: str, instance: int, epoch: int) -> None:
        self.client = client
        self.instance = instance
        self.epoch = epoch
        self.accepted = 0  # events of this session up to here are answered
        # Those of them that were refused, until the client has seen it.
        self.refused: dict[int, tuple[Refusal, str]] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self.ended: dict[int, str] = {}  # by us, until the client has seen it
        self.advertised: FilterIndex[int] | None = None  # what it publishes, by number; None: it has not said

    def advertise(self, number: int, text: str, limit: int) -> Advertised | AdvertiseRefused:
        offered = FilterIndex[int]() if self.advertised is None else self.advertised
        if number in offered:
            if str(offered.filter(number)) != text:
                problem = f"advertisement {number} exists already, with another filter"
                return AdvertiseRefused(number, Refusal.CONFLICT, problem)
            return Advertised(number)
        if len(offered) >= limit:
            return AdvertiseRefused(number, Refusal.LIMIT, f"a session has at most {limit} advertisements")
        try:
            offered.add(number, Filter(text))
        except FilterError as error:
            return AdvertiseRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
        self.advertised = offered
        return Advertised(number)

    def unadvertise(self, number: int) -> None:
        if self.advertised is not None and number in self.advertised:
            self.advertised.remove(number)
            if not len(self.advertised):
                self.advertised = None


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    client: str
    instance: int
    epoch: int
    accepted: int
    refused: dict[int, tuple[Refusal, str]]
    ended: dict[int, str]
    advertised: dict[int, str] = {}


def session_state(session: Session) -> SessionState:
    offers = {} if session.advertised is None else {n: str(offer) for n, offer in session.advertised.items()}
    return SessionState(
        session.client, session.instance, session.epoch, session.accepted, session.refused, session.ended, offers
    )


def session_from(state: SessionState) -> Session:
    session = Session(state.client, state.instance, state.epoch)
    session.accepted, session.refused, session.ended = state.accepted, state.refused, state.ended
    if state.advertised:
        session.advertised = FilterIndex()
        for number, text in state.advertised.items():
            session.advertised.add(number, Filter(text))
    return session
