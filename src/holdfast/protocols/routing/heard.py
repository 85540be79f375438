"""What neighbours have told, as it gets into the tables, on the disk, and to those who wait for it."""

from __future__ import annotations

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.awaited import Awaited
from holdfast.protocols.routing.local import broker_of
from holdfast.protocols.routing.messages import Routes
from holdfast.protocols.routing.network_map import Move
from holdfast.protocols.routing.notices import BecameReady, BecomingReady, NeighbourAnswered
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.table_store import TableStore, apply_routes
from holdfast.protocols.routing.teller import Teller
from holdfast.protocols.routing.tellings import Telling
from holdfast.protocols.routing.words import check_room, read


class Heard:
    """`answers`: of a level that buffers. `restore`: the name of the timer that ends the waiting for neighbours."""

    def __init__(
        self,
        roster: Roster,
        router: Router,
        store: TableStore,
        awaited: Awaited,
        teller: Teller,
        answers: Answers | None,
        restore: tuple[str, ...],
    ) -> None:
        self._roster = roster
        self._router = router
        self._store = store
        self._awaited = awaited
        self._teller = teller
        self._answers = answers
        self._restore = restore
        self._refreshed_at = dict.fromkeys(router.neighbours, 0)
        self._told_by_new = -1  # the number of the map by which our link moves to who has told everything last

    def hear(self, peer: str, routes: Routes, out: Outbox) -> None:
        """What a neighbour tells of its side in other words than `Routes`."""
        telling = read(self._roster, peer, routes)
        check_room(peer, self.told_by(peer), telling)
        self.apply(peer, routes, telling, out)

    def told_by(self, peer: str) -> Telling:
        """What a neighbour has told so far."""
        return Telling(self._router.advertisements.by_source[peer], self._router.subscriptions.by_source[peer])

    def has_told_since_it_moved(self) -> bool:
        """Whether the broker that our link moves to has told everything."""
        return self._told_by_new == self._roster.map.number

    def apply(self, peer: str, routes: Routes, telling: Telling, out: Outbox) -> None:
        """Puts what a neighbour told where it belongs."""
        apply_routes(self._router, peer, routes, telling)
        if self._answers is not None:
            self._store.told(peer, routes, telling, out)
        self.refresh(peer, out)
        if routes.full and routes.complete:
            match self._roster.map.step:
                case Move(broker, _, new) if (broker, new) == (self._roster.name, peer):
                    self._told_by_new = self._roster.map.number
                case _:
                    pass
            self.knows_all(peer, out)

    def forget_elsewhere(self, peer: str, out: Outbox) -> None:
        """A neighbour took a place over in the middle of a move: what was told there ahead of that, of brokers that are
        on other sides as it turned out, is not of its side."""
        told = self.told_by(peer)
        gone = [[entry for entry in table if self._is_elsewhere(entry, peer)] for table in told]
        if any(gone):
            self.apply(peer, Routes(unadvertised=gone[0], unsubscribed=gone[1]), Telling({}, {}), out)

    def _is_elsewhere(self, entry: str, peer: str) -> bool:
        broker = broker_of(entry)
        return broker == self._roster.name or self._roster.side_of(broker) not in ("", peer)

    def refresh(self, peer: str, out: Outbox) -> None:
        """A neighbour has told something, or counts as having done so."""
        self._refreshed_at[peer] = out.now

    def silence(self, peer: str, out: Outbox) -> int:
        """How long ago that was."""
        return out.now - self._refreshed_at.setdefault(peer, out.now)

    def knows_all(self, peer: str, out: Outbox) -> None:
        """A neighbour has told all that is on its side."""
        self.learned(peer, out)
        if self._answers is not None:
            self._answers.known(self._router, peer)
            self.look_at_answers(peer, out)

    def look_at_answers(self, peer: str, out: Outbox) -> None:
        """A neighbour may have answered everything that it was told, at a level that buffers."""
        if self._answers is not None and not self._teller.owes_answers(peer):
            out.tell(NeighbourAnswered(peer))

    def learned(self, peer: str, out: Outbox) -> None:
        """Everything is known that a neighbour can tell now. Others may be told more completely by that."""
        if not self._awaited.learn(peer):
            return
        if not self._awaited.peers:
            out.tell(BecomingReady())
        self._teller.tell_more_completely(out)
        if not self._awaited.peers:
            out.cancel_timer(self._restore)
            out.tell(BecameReady())
