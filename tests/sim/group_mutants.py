"""Brokers of a group with one mistake each."""

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import msgspec

from holdfast.broker.kit import BrokerKit
from holdfast.broker.scheme import Told
from holdfast.kernel.application import Hosted
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.sequencing import CommandsApplied, Deposed, Elected
from holdfast.kernel.storage import StoredStreams
from holdfast.model.event import count_events
from holdfast.protocols.core import core as core_module
from holdfast.protocols.core.commands import OpenSession, Publish
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.judgement import Known
from holdfast.protocols.core.outputs import Opened, Output
from holdfast.protocols.core.register import SessionRegister
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.messages import Accepted
from holdfast.schemes.paxos.catching_up import CatchingUp
from holdfast.schemes.paxos.decided import DecidedLog
from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.parts import PaxosKit, make_replica
from holdfast.schemes.paxos.proposer import Proposer
from holdfast.schemes.paxos.replica import Replica
from holdfast.schemes.paxos.scheme import group_of
from holdfast.sim.run import Factories, run_scenario

SHAPE = group_shape()

_STATE = msgspec.msgpack.Decoder(core_module._State)


@dataclass(frozen=True)
class GroupMutant:
    mistake: str
    factories: Factories
    swarm: ClassVar[str] = "groups"

    def seen(self, seed: int) -> str:
        return run_scenario(SHAPE.draw(seed), self.factories).problem

    def sound(self, seed: int) -> str:
        return run_scenario(SHAPE.draw(seed)).problem


# --------------------------------------------------------------------------------------------------------- replicas
class ServesBeforeItCaughtUp(Proposer):
    """Lets clients in as soon as it leads, while it executes what others executed long ago."""

    def let_in(self, executed: int) -> bool:
        self._serves_after = 0
        return super().let_in(executed)


class AppliedEarly(BrokerCore):
    """Does not apply a command again, when it is decided, that was applied when it was proposed."""

    early = 0  # commands that were applied, and are not decided yet

    def apply_early(self, wall: int, command: Any) -> list[Output]:
        self.early += 1
        return super().apply(self.number + 1, wall, command)

    def apply(self, number: int, wall: int, command: Any, known: Known | None = None) -> list[Output]:
        if self.early:
            self.early -= 1
            return []
        return super().apply(self.number + 1, wall, command)


def applies_its_own_proposals(told: Told, rng: Random, streams: StoredStreams, application: Hosted | None) -> Assembly:
    """A broker that applies a command when it proposes it."""
    cores: list[AppliedEarly] = []

    class Core(AppliedEarly):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            cores.append(self)

    class Proposing(Replica):
        def submit(self, command: Any, out: Outbox, known: object = None) -> None:
            super().submit(command, out)
            if self._proposer.is_leading:
                out.tell(CommandsApplied(cores[0].apply_early(out.wall, command)))

    return make_replica(
        told.broker, group_of(told), rng, streams, application, BrokerKit(core=Core, scheme=PaxosKit(replica=Proposing))
    )


class TellsClientsOfAnyone(Replica):
    """Lets clients in whether it leads or not; what they ask is dropped, unless it does."""

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        return ()

    @property
    def is_serving(self) -> bool:
        return True


class UsesItsOwnClock(Learner):
    """Applies commands at its own time, and not at the one that was decided with them."""

    def execute(self, out: Outbox) -> None:
        apply = self._application.apply
        self._application.apply = lambda number, wall, command: apply(number, out.wall, command)  # type: ignore[method-assign]
        super().execute(out)
        self._application.apply = apply  # type: ignore[method-assign]


class NeverAsks(CatchingUp):
    """Does not ask for what it missed …"""

    def ask(self, out: Outbox) -> None:
        pass


class SkipsWhatItMissed(DecidedLog):
    """… and takes the next decided slot for the next to execute."""

    def _look_ahead(self) -> None:
        if self.is_behind:
            self.executed = min(slot for slot in self._values if slot > self.executed) - 1
        super()._look_ahead()


# ------------------------------------------------------------------------------------------------------------ hosts
class AcknowledgesWhatItProposes(SessionDesk):
    """Says that events are accepted when they are proposed."""

    def on_publish(self, peer: str, message: Any, out: Outbox) -> None:
        super().on_publish(peer, message, out)
        session = self.session(peer)
        if session is not None:
            last = self._admission._submitted.get(peer, 0)
            if last > session.accepted:
                out.send(peer, Accepted(last, ()))


class KeepsItsClients(SessionDesk):
    """Keeps its clients when it leads no more, and answers what they say as if it were accepted."""

    def on_deposed(self, deposed: Deposed, out: Outbox) -> None:
        pass

    def on_publish(self, peer: str, message: Any, out: Outbox) -> None:
        super().on_publish(peer, message, out)
        if not self._sequencer.is_serving:
            session = self.session(peer)
            if session is not None:
                count = count_events(message.events)
                out.send(peer, Accepted(message.first + count - 1, ()))


class NeverRepeats(SessionDesk):
    """Sends nothing again: neither what was lost, nor what a client had not got when it came to this leader."""

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._deliveries._unconfirmed.clear()
        super().on_timer(key, out)

    def _opened(self, opened: Opened, out: Outbox) -> None:
        super()._opened(opened, out)
        for cursor in self._deliveries._cursors.get(opened.client, {}).values():
            cursor.sent = cursor.subscription.last
        self._deliveries.batches.pop(opened.client, None)


class OpensSessionsWithoutLeading(SessionDesk):
    """Tells a client that waits to hear who leads that its session is open, when it was opened elsewhere."""

    def _opened(self, opened: Opened, out: Outbox) -> None:
        sequencer, self._sequencer = self._sequencer, _Serving(self._sequencer)
        super()._opened(opened, out)
        self._sequencer = sequencer


class _Serving:
    def __init__(self, sequencer: Any) -> None:
        self.is_serving = True
        self.applies_at_once, self.applied_is_safe, self.shares_log = False, True, True
        self.leader_addresses = ()
        self.takes_direct = False
        self.direct_addresses = ()
        self.submit = self.submit_direct = sequencer.submit


class ForgetsWhoIsAway(SessionDesk):
    """Drops the subscriptions of everyone who is not there when it begins to lead."""

    def on_elected(self, elected: Elected, out: Outbox) -> None:
        super().on_elected(elected, out)
        self._clients.away = dict.fromkeys(self._clients.away, out.now - 10**12)
        self._upkeep.drop_those_away(out)


# ------------------------------------------------------------------------------------------------------------ cores
class Snapshots(BrokerCore):
    """Leaves something out of its snapshots."""

    def lose(self, state: Any) -> Any:
        raise NotImplementedError

    def get_state(self) -> bytes:
        return msgspec.msgpack.encode(self.lose(_STATE.decode(super().get_state())))


class ForgetsWhatIsAccepted(Snapshots):
    """Snapshots lack how far each session has published: what is sent again is taken again."""

    def lose(self, state: Any) -> Any:
        sessions = [msgspec.structs.replace(session, accepted=0) for session in state.sessions]
        return msgspec.structs.replace(state, sessions=sessions)


class ForgetsSubscriptions(Snapshots):
    def lose(self, state: Any) -> Any:
        return msgspec.structs.replace(state, subscriptions=[])


class ForgetsSessions(Snapshots):
    def lose(self, state: Any) -> Any:
        return msgspec.structs.replace(state, sessions=[], subscriptions=[], dormant=[])


class TakesRepetitionsForNew(BrokerCore):
    """Tells repetitions when they are proposed, by what is applied then; and not when they are applied."""

    def _publish(self, command: Publish, *rest: Any) -> None:
        session = self.register.session(command.client, command.epoch)
        if session is not None and command.first <= session.accepted:
            accepted, session.accepted = session.accepted, command.first - 1
            super()._publish(command, *rest)
            session.accepted = max(accepted, session.accepted)
        else:
            super()._publish(command, *rest)


class _GrantingAnew(SessionRegister):
    def open(self, command: OpenSession, wall: int, outputs: list[Output]) -> None:
        known = self.sessions.get(command.client)
        if known is not None and command.epoch:
            self.forget(known, wall, outputs)
        super().open(command, wall, outputs)


class GrantsAnewToEveryone(BrokerCore):
    """Does not know a client again that comes from another leader."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.register.__class__ = _GrantingAnew


def _group(
    paxos: PaxosKit | None = None,
    sessions: type[SessionDesk] = SessionDesk,
    core: type[BrokerCore] = BrokerCore,
) -> Factories:
    return Factories(kit=BrokerKit(core=core, sessions=sessions, scheme=paxos or PaxosKit()))


MUTANTS = [
    GroupMutant("applies what it proposes", Factories(node=applies_its_own_proposals)),
    GroupMutant("serves without leading", _group(PaxosKit(replica=TellsClientsOfAnyone))),
    GroupMutant("applies at its own time", _group(PaxosKit(learner=UsesItsOwnClock))),
    GroupMutant("skips slots that it missed", _group(PaxosKit(catching_up=NeverAsks, decided=SkipsWhatItMissed))),
    GroupMutant("acknowledges what is only proposed", _group(sessions=AcknowledgesWhatItProposes)),
    GroupMutant("answers clients after it was deposed", _group(sessions=KeepsItsClients)),
    GroupMutant("sends nothing again after a failover", _group(sessions=NeverRepeats)),
    GroupMutant("drops who is not there when it begins to lead", _group(sessions=ForgetsWhoIsAway)),
    GroupMutant("snapshots lack what was accepted", _group(core=ForgetsWhatIsAccepted)),
    GroupMutant("snapshots lack subscriptions", _group(core=ForgetsSubscriptions)),
    GroupMutant("snapshots lack sessions", _group(core=ForgetsSessions)),
    GroupMutant("takes a repeated publish for a new one", _group(core=TakesRepetitionsForNew)),
    GroupMutant("knows no session again", _group(core=GrantsAnewToEveryone)),
    GroupMutant("lets clients in before it has caught up", _group(PaxosKit(proposer=ServesBeforeItCaughtUp))),
    GroupMutant("opens sessions where it does not lead", _group(sessions=OpensSessionsWithoutLeading)),
]
