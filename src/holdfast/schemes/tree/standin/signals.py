"""How far the two ways to one side are: what those who put events in order go by (D0-A23, D0-B14.1, D0-C23).

A neighbour that shares events out between a broker and its stand-in says now and then, through both, up to which number
of each publisher it has given events to either. A signal has its place among the events on every link. So whoever holds
an event back knows within one period, and the time that the way takes, that nothing older comes.

The first one goes through the broker before the first event is given to the stand-in, and in front of everything that
is given to the broker afterwards: what came before it is from before the work was shared.
"""

from __future__ import annotations

from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.notices import FeedsRecovered, MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import StandInSettings
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.messages import StandInSignal
from holdfast.schemes.tree.standin.relieving import Relieving
from holdfast.schemes.tree.standin.sharing import Openness, Share

BROKERS: Final = frozenset({Role.BROKER})
SAID_TIMES: Final = 10  # how often it is said how far a publisher is that says nothing more


class Signals(Part):
    """Behind `Relieving`, which says the first and the last."""

    name: ClassVar[str] = "signals"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {StandInSignal: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (FeedsRecovered, MapChanged)
    due = False

    def __init__(
        self,
        settings: StandInSettings,
        roster: Roster,
        acquaintances: Acquaintances,
        forwarding: Forwarding,
        learning: Learning,
        relieving: Relieving,
    ) -> None:
        self._period = settings.signal
        self._roster = roster
        self._acquaintances = acquaintances
        self._forwarding = forwarding
        self._learning = learning
        self._relieving = relieving

    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        self._begin(out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._begin(out)

    def _shares(self) -> list[Share]:
        """Those of stand-ins that share work, where order is kept."""
        return [share for share in self._relieving.shares if share.relief.mode.orders]

    def _begin(self, out: Outbox) -> None:
        if self._shares():
            out.set_timer((self.name, "signal"), self._period)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._begin(out)
        for share in self._shares():
            if share.openness is Openness.CLOSED or not share.through:
                continue  # the slow broker has enough to do without words that say nothing
            self._relieving.say(share, share.relief.side)
            if share.openness is Openness.ALL_NAMED:  # before, what goes by the stand-in is in no order
                self._relieving.say(share, share.relief.name)
                share.was_said(SAID_TIMES)

    def on_stand_in_signal(self, peer: str, signal: StandInSignal, out: Outbox) -> None:
        if not self._acquaintances.hears(peer, "signals are given by neighbours, behind an introduction"):
            return
        beside = self._roster.map.shares(signal.stand_in)
        if beside is None:
            return
        if self._roster.name in (beside.name, beside.faulty):
            for other in self._roster.near if not self._learning.is_learning else ():
                if other != peer and other in self._forwarding.feeds:
                    self._forwarding.feeds[other].say(signal)
            self._forwarding.look()
        elif peer in (beside.name, beside.faulty):
            self._relieving.signalled(peer, signal, out)
