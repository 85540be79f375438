"""A stand-in that shared a broker's work goes: when its neighbours have said that it may, and nothing waits here."""

from __future__ import annotations

from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.network_map import Withdraw, done
from holdfast.protocols.routing.notices import FeedsRecovered, MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import StandInSettings
from holdfast.schemes.tree.mapping import Mapping
from holdfast.schemes.tree.standin.messages import StandInLeft

BROKERS: Final = frozenset({Role.BROKER})


class Withdrawing(Part):
    """Behind `Forwarding`. A neighbour that says nothing for `patience` is left out, and reported."""

    name: ClassVar[str] = "withdrawing"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {StandInLeft: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (FeedsRecovered, MapChanged)

    def __init__(
        self,
        settings: StandInSettings,
        roster: Roster,
        acquaintances: Acquaintances,
        mapping: Mapping,
        forwarding: Forwarding,
    ) -> None:
        self._settings = settings
        self._roster = roster
        self._acquaintances = acquaintances
        self._mapping = mapping
        self._forwarding = forwarding
        self._number = 0  # of the map whose step this is; 0: it stays
        self._staying: dict[str, None] = {}  # neighbours that have not said that it may go
        self.due = False

    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        self._look_at_map(out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._look_at_map(out)

    def _look_at_map(self, out: Outbox) -> None:
        match self._roster.map.step:
            case Withdraw(broker) if broker == self._roster.name:
                if self._number != self._roster.map.number:
                    self._number = self._roster.map.number
                    self._staying = dict.fromkeys(self._roster.near)
                    out.set_timer((self.name, "patience"), self._settings.patience)
            case _:
                self._number = 0
        self.due = self._number > 0

    def on_stand_in_left(self, peer: str, left: StandInLeft, out: Outbox) -> None:
        hears = self._acquaintances.hears(peer, "who goes is told so behind an introduction")
        if hears and left.number == self._number:
            self._staying.pop(peer, None)
            out.set_timer((self.name, "patience"), self._settings.patience)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        for peer in self._staying if self._number else ():
            out.report("stand-in-without", Level.WARNING, neighbour=peer)
        self._staying = {}

    def finish(self, out: Outbox) -> None:
        feeds = self._forwarding.feeds
        if not self._staying and all(feeds[peer].is_idle for peer in self._roster.near if peer in self._acquaintances):
            out.report("stand-in-goes", Level.INFO)
            self._number, self.due = 0, False
            self._mapping.make(done(self._roster.map), out)
