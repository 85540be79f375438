"""How far the two ways to one side are: what those who put events in order go by (D0-A23, D0-B14.1, D0-C23).

A neighbour that shares events out between a broker and its stand-in says now and then, through both, up to which number
of each publisher it has given events to either. A signal stays behind the events before it on every link. So whoever
holds an event back knows within one period, and the time that the way takes, that nothing older comes.

The first one goes through the broker before the first event is given to the stand-in, and in front of everything that
is given to the broker afterwards: what came before it is from before the work was shared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.notices import MapChanged, NeighbourUnlinked
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import StandInSettings
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.messages import StandInSignal, Through
from holdfast.schemes.tree.standin.relieving import Relieving
from holdfast.schemes.tree.standin.sharing import Openness, Share

BROKERS: Final = frozenset({Role.BROKER})
SAID_TIMES: Final = 10  # how often it is said how far a publisher is that says nothing more


class Signals(Part):
    """Behind `Forwarding`: a signal leaves behind the events of its turn."""

    name: ClassVar[str] = "signals"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {StandInSignal: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (MapChanged, NeighbourUnlinked)

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
        self._later: dict[str, deque[tuple[int, StandInSignal]]] = {}  # behind the event with this number of the feed
        self._begun: dict[str, None] = {}  # brokers whose work is shared, and through which a signal has gone
        self._ended: dict[str, None] = {}  # … and whose stand-in is given nothing more
        self._held: dict[str, None] = {}  # … and who gets nothing before the first signal
        self._is_ticking = False
        self.due = False

    # --------------------------------------------------------------------------------------------------------- saying
    def _shares(self) -> list[Share]:
        """Those of stand-ins that share work, where order is kept."""
        return [share for share in self._relieving.shares if share.relief.mode.orders]

    def finish(self, out: Outbox) -> None:
        shares = self._shares()
        for share in shares:
            self._look(share, out)
        if shares and not self._is_ticking:
            self._is_ticking = True
            out.set_timer((self.name, "signal"), self._period)
        for peer in list(self._later):
            self._send(peer, out)
        self.due = bool(self._later or shares)

    def _look(self, share: Share, out: Outbox) -> None:
        """Whether the work has come to be shared in this turn, or is not to be shared any more."""
        faulty = share.relief.side
        if share.openness is not Openness.CLOSED and faulty not in self._begun:
            self._begun[faulty] = self._held[faulty] = None
            self._forwarding.suspend(faulty, self._forwarding.feeds[faulty].following - 1)
            self._say(share, faulty, out)
        elif share.is_over and faulty not in self._ended:
            self._ended[faulty] = None
            for way in (faulty, share.relief.name):
                self._say(share, way, out, ends=True)

    def _say(self, share: Share, way: str, out: Outbox, ends: bool = False) -> None:
        if way not in self._forwarding.feeds:
            return
        through = [Through(name, *number[:2]) for name, number in share.through.items()]
        signal = StandInSignal(share.relief.name, self._roster.name, through, ends)
        self._put(way, signal)

    def _put(self, peer: str, signal: StandInSignal) -> None:
        feed, self.due = self._forwarding.feeds[peer], True
        self._later.setdefault(peer, deque()).append((feed.following - 1, signal))

    def _send(self, peer: str, out: Outbox) -> None:
        feed, later = self._forwarding.feeds.get(peer), self._later[peer]
        while feed is not None and later and feed.heard >= later[0][0]:
            out.send(peer, later.popleft()[1], Lane.USER, NOW)
            self._let_go(peer)
        if feed is None or not later:
            del self._later[peer]

    def _let_go(self, peer: str) -> None:
        if self._held.pop(peer, peer) is None and peer in self._forwarding.feeds:
            self._forwarding.feeds[peer].go_on()
            self._forwarding.look()

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._is_ticking = False
        for share in self._shares():
            if share.relief.side in self._begun and not share.is_over:
                self._say(share, share.relief.side, out)
                if share.openness is Openness.ALL_NAMED:
                    self._say(share, share.relief.name, out)
                share.was_said(SAID_TIMES)

    # -------------------------------------------------------------------------------------------------------- hearing
    def on_stand_in_signal(self, peer: str, signal: StandInSignal, out: Outbox) -> None:
        if not self._acquaintances.hears(peer, "signals are given by neighbours, behind an introduction"):
            return
        beside = self._roster.map.shares(signal.stand_in)
        if beside is None:
            return
        if self._roster.name in (beside.name, beside.faulty):
            for other in self._roster.near if not self._learning.is_learning else ():
                if other != peer and other in self._forwarding.feeds:
                    self._put(other, signal)
        elif peer in (beside.name, beside.faulty):
            self._relieving.signalled(peer, signal, out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self.due = True
        shared = {share.relief.side for share in self._relieving.shares}
        for known in (self._begun, self._ended):
            for faulty in [faulty for faulty in known if faulty not in shared]:
                del known[faulty]
                self._let_go(faulty)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        """What was to be said on its link is said on the next one."""
        peer = unlinked.peer
        self._later.pop(peer, None)
        self._let_go(peer)
        for share in self._shares():
            if peer in (share.relief.side, share.relief.name):
                self._begun.pop(share.relief.side, None)
                self._ended.pop(share.relief.side, None)
                self.due = True
