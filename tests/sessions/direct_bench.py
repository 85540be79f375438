"""A replica on the bench, with a sequencer that writes down what it is given: commands of both kinds, as bytes."""

from typing import Any

import msgspec

from holdfast.kernel.inputs import Started
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.direct_desk import DirectDesk
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.messages import OpenDirect
from tests.sessions.bench import EPOCH, Bench, BrokerBench

OTHERS = ("b2:1", "b3:1")
INSTANCE = 77


class FakeSequencer:
    """Applies what is submitted at once, though it does not promise that; what is submitted directly is decided when a
    test says so."""

    applies_at_once = False
    applied_is_safe = True
    shares_log = True

    def __init__(self, core: BrokerCore, leads: bool) -> None:
        self.is_serving = leads
        self.leader_addresses: tuple[str, ...] = () if leads else ("b1:1",)
        self.takes_direct = True
        self.direct_addresses: tuple[str, ...] = OTHERS
        self.submitted: list[Command] = []
        self.direct: list[Command] = []
        self.is_slow = False  # nothing is applied by itself
        self._core = core

    def submit(self, command: Command, out: Outbox, known: object = None) -> None:
        self.submitted.append(command)
        if not self.is_slow:
            self.decide(command, out)

    def submit_direct(self, command: Command, out: Outbox) -> None:
        self.direct.append(command)

    def decide(self, command: Command, out: Outbox) -> None:
        out.tell(CommandsApplied(self._core.apply(self._core.number + 1, out.wall, command)))

    def take_direct(self) -> list[bytes]:
        taken, self.direct = self.direct, []
        return [msgspec.msgpack.encode(command) for command in taken]

    def take_submitted(self) -> list[Command]:
        taken, self.submitted = self.submitted, []
        return taken


class ReplicaBench(BrokerBench):
    """The parts of a replica that face clients."""

    def __init__(self, leads: bool, limits: CoreLimits | None = None, **settings: Any) -> None:
        hosting = DeskSettings(**{"publish_window": 20, **settings})
        self.core = BrokerCore(limits or CoreLimits(), log=True)
        self.sequencer = FakeSequencer(self.core, leads)
        host = SessionDesk("b1", self.core, self.sequencer, hosting)
        self.direct = DirectDesk(self.core, self.sequencer, host, hosting)
        Bench.__init__(self, Assembly([host, self.direct]))
        self.links = {}
        self._last_link = 0
        self.handle(Started(1))

    def know(self, client: str = "p", instance: int = INSTANCE) -> None:
        """The replica hears that the client has a session, of epoch `EPOCH` if it is the first."""
        self.sequencer.decide(commands.OpenSession(f"client:{client}", instance, 0), self.out)
        self.handle()
        self.out.take_effects()

    def open_direct(self, client: str = "p", epoch: int = EPOCH, instance: int = INSTANCE, *said: Message) -> list[Any]:
        self.handle(self.up(client))
        return self.say(client, OpenDirect(epoch, instance), *said)


def follower(**settings: Any) -> ReplicaBench:
    """A replica that knows a session of `p`, which has a direct link to it."""
    bench = ReplicaBench(leads=False, **settings)
    bench.know()
    assert bench.open_direct() == []
    return bench


def leader(**settings: Any) -> ReplicaBench:
    """The replica that leads, with the session of `p`."""
    bench = ReplicaBench(leads=True, **settings)
    bench.open("p", instance=INSTANCE)
    bench.sequencer.take_submitted()
    return bench
