"""The core's register of sessions: who has one, what it wants and what it advertises.

A session is (client, epoch). The epoch is granted here, larger than any that the client had, when a client comes with a
new instance or one that is not known any more; so a client that was started again is not taken for its earlier self and
its new first event not for a repetition of its old first event. Of a client that stayed away for too long it is known
how far it was with publishing, while there is room: it is *dormant*.
"""

from __future__ import annotations

from holdfast.errors import FilterError
from holdfast.kernel.node import require
from holdfast.kernel.time import MILLISECOND
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.core import commands
from holdfast.protocols.core.crowding import Crowding
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.expiry import expire
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.lifetimes import Outcomes
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.outputs import Freed, NotOpened, Opened, Output, Removed, Reply, Woken
from holdfast.protocols.core.session import Session, SessionState, too_many_filter_bytes
from holdfast.protocols.core.subscriptions import Subscription, SubscriptionState
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.messages import Overflow, Refusal

# A client says which epoch it had. Larger ones were never granted, and would leave no room for the next.
EPOCH_MAX = 2**62


class SessionRegister:
    """Sessions by client, and their subscriptions by filter. `interests` is what other brokers are told of them."""

    def __init__(self, limits: CoreLimits, crowding: Crowding, cursors: CursorTable, interests: Interests) -> None:
        self.sessions: dict[str, Session] = {}
        self.dormant: dict[str, None] = {}  # clients that stayed away, oldest first; kept while there is room
        self.index: FilterIndex[Subscription] = FilterIndex()
        self.perishing: dict[Subscription, None] = {}  # those that know of deadlines
        self._settled = Outcomes()  # what became of events of subscriptions that are over
        self._limits = limits
        self._crowding = crowding
        self._cursors = cursors
        self._interests = interests

    def session(self, client: str, epoch: int) -> Session | None:
        """The session, if it is this one that the client has."""
        session = self.sessions.get(client)
        return session if session is not None and session.epoch == epoch else None

    # ----------------------------------------------------------------------------------------------------- sessions
    def open(self, command: commands.OpenSession, wall: int, outputs: list[Output]) -> None:
        known = self.sessions.get(command.client)
        if known is not None and known.instance == command.instance and known.epoch < command.epoch:
            # It has had a session at another broker since, and counts anew: what is known here is of before.
            self.forget(known, wall, outputs)
            known = None
        if known is not None and known.instance != command.instance:
            if 0 < command.epoch < known.epoch:
                problem = f"another client has opened a session under the name {command.client!r}"
                refusal = messages.SessionRefused(Refusal.SUPERSEDED, problem)
                outputs.append(NotOpened(command.client, command.instance, refusal))
                return
            self.forget(known, wall, outputs)
        if known is None or known.instance != command.instance:
            if len(self.sessions) >= self._limits.sessions and not self._forget_oldest(wall, outputs):
                problem = f"the broker has {self._limits.sessions} sessions, and takes no more"
                refusal = messages.SessionRefused(Refusal.LIMIT, problem, "sessions", self._limits.sessions)
                outputs.append(NotOpened(command.client, command.instance, refusal))
                return
            # The clock keeps the epochs of different brokers apart, and those of a broker that forgot.
            last = max(min(command.epoch, EPOCH_MAX), 0 if known is None else known.epoch)
            epoch = max(wall // MILLISECOND, last + 1)
            known = Session(command.client, command.instance, epoch, self._limits.backlog_bytes_per_session)
            self.sessions[command.client] = known
        known.came(command.incarnation)
        self.dormant.pop(command.client, None)
        outputs.append(Opened(command.client, command.instance, known.epoch))

    def end(self, command: commands.EndSession, wall: int, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            self.forget(session, wall, outputs)
            outputs.append(Reply(command.client, command.epoch, messages.SessionClosed()))

    def drop_subscriptions(self, command: commands.DropSubscriptions, wall: int, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            for subscription in session.subscriptions.values():
                self._remove(subscription, outputs)
            session.want_nothing()
            self._interests.left(session.client)
            self._cursors.leave(session.client, session.epoch, wall, outputs)
            self.dormant[session.client] = None

    def forget(self, session: Session, wall: int, outputs: list[Output]) -> None:
        for subscription in session.subscriptions.values():
            self._remove(subscription, outputs)
        self._cursors.leave(session.client, session.epoch, wall, outputs)
        self._interests.left(session.client)
        del self.sessions[session.client]
        self.dormant.pop(session.client, None)

    def _forget_oldest(self, wall: int, outputs: list[Output]) -> bool:
        """Makes room for a session. A client that comes back later is told that nothing is known of it any more."""
        oldest = next(iter(self.dormant), None)
        if oldest is not None:
            self.forget(self.sessions[oldest], wall, outputs)
        return oldest is not None

    # ------------------------------------------------------------------------------------------------ subscriptions
    def subscribe(self, command: commands.Subscribe, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        self.dormant.pop(session.client, None)
        number = command.subscription
        known = session.subscriptions.get(number)
        refusal: messages.SubscribeRefused | None = None
        if known is not None:
            if str(known.filter) != command.filter or known.overflow is not command.overflow:
                problem = f"subscription {number} exists already, with another filter"
                refusal = messages.SubscribeRefused(number, Refusal.CONFLICT, problem)
        elif number in session.ended:
            return  # it ended; the client will hear of that, if it has not yet
        elif len(session.subscriptions) + len(session.ended) >= self._limits.subscriptions_per_session:
            # One that ended counts until its client has said that it knows, or there would be no end to them.
            problem = f"a session has at most {self._limits.subscriptions_per_session} subscriptions"
            allowed = self._limits.subscriptions_per_session
            limit = "subscriptions_per_session"
            refusal = messages.SubscribeRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        elif session.filter_bytes + len(command.filter) > self._limits.filter_bytes_per_session:
            allowed = self._limits.filter_bytes_per_session
            limit, problem = "filter_bytes_per_session", too_many_filter_bytes(allowed)
            refusal = messages.SubscribeRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        else:
            try:
                wanted = Filter(command.filter)
            except FilterError as error:
                refusal = messages.SubscribeRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
            else:
                self._add(Subscription(session.client, number, wanted, command.overflow, command.window))
        outputs.append(Reply(session.client, session.epoch, refusal or messages.Subscribed(number)))

    def _add(self, subscription: Subscription) -> None:
        session = self.sessions[subscription.client]
        session.subscriptions[subscription.number] = subscription
        session.came_to_want(subscription.filter)
        subscription.join(session.ledger)
        self.index.add(subscription, subscription.filter)
        self._interests.subscribed(session.client, subscription.number, subscription.filter)
        if subscription.deadlines is not None:
            self.perishing[subscription] = None
        self._crowding.add(subscription)

    def _remove(self, subscription: Subscription, outputs: list[Output]) -> None:
        self.index.remove(subscription)
        self.sessions[subscription.client].wants_no_longer(subscription.filter)
        self._interests.unsubscribed(subscription.client, subscription.number)
        # A crowded session has room for others, which share it.
        freed = subscription.ledger.makes_wait or subscription.overflow is Overflow.BLOCK
        subscription.leave()
        self._settled.add(subscription.outcomes)
        self.perishing.pop(subscription, None)
        outputs.append(Removed(subscription))
        self._crowding.remove(subscription)
        if freed:
            outputs.append(Freed())

    def unsubscribe(self, command: commands.Unsubscribe, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        session.ended.pop(command.subscription, None)
        subscription = session.subscriptions.pop(command.subscription, None)
        if subscription is not None:
            self._remove(subscription, outputs)
        outputs.append(Reply(session.client, session.epoch, messages.Unsubscribed(command.subscription)))

    def end_subscription(self, command: commands.EndSubscription, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None and command.subscription in session.subscriptions:
            self.end_for(session.subscriptions[command.subscription], command.reason, outputs)

    def end_for(self, subscription: Subscription, reason: str, outputs: list[Output]) -> None:
        """Ends a subscription that is there; its client is told why."""
        session, number = self.sessions[subscription.client], subscription.number
        del session.subscriptions[number]
        session.ended[number] = reason
        self._remove(subscription, outputs)
        outputs.append(Reply(session.client, session.epoch, messages.SubscriptionEnded(number, reason)))

    def receive(self, command: commands.Receive, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        # A session that kept much may have made a blocking subscription's publishers wait for any of its others.
        freed = bool(session.ledger.blocking) and session.ledger.makes_wait
        late = command.late or (0,) * len(command.numbers)
        for number, received, expired in zip(command.subscriptions, command.numbers, late, strict=False):
            subscription = session.subscriptions.get(number)
            if subscription is not None:
                subscription.receive(received, expired)
                if subscription.deadlines is None:
                    self.perishing.pop(subscription, None)
                if session.ledger.blocking:
                    self._crowding.look(subscription)
                    freed = freed or subscription.overflow is Overflow.BLOCK
        if freed:
            outputs.append(Freed())

    def expire(self, command: commands.ExpireEvents, outputs: list[Output]) -> None:
        """Gives up what waited for too long. Clients are told which numbers they need not wait for."""
        # As with what is received: room in a crowded session is room for any of its subscriptions.
        crowded = {subscription: None for subscription in self.perishing if subscription.ledger.makes_wait}
        lost = expire(self.perishing, command.before, outputs)
        for subscription in lost:
            self._crowding.look(subscription)
        if lost:
            outputs.append(Woken(lost))
        if any(subscription.overflow is Overflow.BLOCK or subscription in crowded for subscription in lost):
            outputs.append(Freed())

    def outcomes(self) -> Outcomes:
        """What became of all events that anyone wanted."""
        total = Outcomes()
        total.add(self._settled)
        for session in self.sessions.values():
            for subscription in session.subscriptions.values():
                total.add(subscription.outcomes)
        return total

    # ----------------------------------------------------------------------------------------------- advertisements
    def advertise(self, command: commands.Advertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            self.dormant.pop(session.client, None)
            answer = session.advertise(command.advertisement, command.filter, self._limits)
            if isinstance(answer, messages.Advertised):
                self._interests.advertised(session.client, command.advertisement, command.filter)
            outputs.append(Reply(session.client, session.epoch, answer))

    def unadvertise(self, command: commands.Unadvertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            session.unadvertise(command.advertisement)
            self._interests.unadvertised(session.client, command.advertisement)
            outputs.append(Reply(session.client, session.epoch, messages.Unadvertised(command.advertisement)))

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> tuple[list[SessionState], list[str], list[SubscriptionState], Outcomes]:
        """Sessions, the dormant ones, subscriptions in the order in which they were made, and what became of others."""
        sessions = [session.get_state() for session in self.sessions.values()]
        subscriptions = [subscription.get_state() for subscription, _ in self.index.items()]
        return sessions, list(self.dormant), subscriptions, self._settled

    def set_state(
        self,
        sessions: list[SessionState],
        dormant: list[str],
        subscriptions: list[SubscriptionState],
        settled: Outcomes,
    ) -> None:
        self.sessions.clear()
        self._crowding.clear()
        self.dormant, self.perishing, self.index = dict.fromkeys(dormant), {}, FilterIndex()
        self._settled = settled
        for stored in sessions:
            self.sessions[stored.client] = Session.from_state(stored, self._limits.backlog_bytes_per_session)
        for kept in subscriptions:
            self._add(Subscription.from_state(kept))

    def tell_advertisements(self) -> None:
        """Those that were restored. Subscriptions are told as they are added."""
        for session in self.sessions.values():
            for number, filter in () if session.advertised is None else session.advertised.items():
                self._interests.advertised(session.client, number, str(filter))

    def check_invariants(self, answers_max: int) -> None:
        """`answers_max`: to requests of one session, that are kept."""
        count = 0
        for client, session in self.sessions.items():
            require(client == session.client, "a session is found under its client's name", client=client)
            for number, subscription in session.subscriptions.items():
                count += 1
                subscription.check_invariants(self._limits.backlog_events)
                require(subscription in self.index, "a subscription is in the index", client=client, number=number)
                require(number not in session.ended, "a subscription that lives has not ended", number=number)
                knows = subscription.deadlines is not None
                require((subscription in self.perishing) == knows, "who knows of deadlines is listed", number=number)
            advertised = () if session.advertised is None else session.advertised.items()
            filters = [*(one.filter for one in session.subscriptions.values()), *(filter for _, filter in advertised)]
            require(session.filter_bytes == sum(len(str(one)) for one in filters), "filters are counted", client=client)
            self._crowding.check_invariants(client, session.ledger, session.subscriptions.values())
            require(session.advertised is None or len(session.advertised), "no advertisements are none", client=client)
            dormant = client in self.dormant
            wants = session.subscriptions or session.advertised is not None
            require(not (dormant and wants), "a dormant session wants and advertises nothing", client=client)
            require(all(n <= session.accepted for n in session.refused), "what is refused was answered", client=client)
            require(len(session.answers) <= answers_max, "answers are bounded", client=client)
        require(self.dormant.keys() <= self.sessions.keys(), "who is dormant has a session")
        require(count == len(self.index), "the index holds the sessions' subscriptions and no others", count=count)
