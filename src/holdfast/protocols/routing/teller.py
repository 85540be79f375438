"""What neighbours in the tree are told of the tables: everything when their link is new, and then what changes (D0-B1).

Where the level detours and a link is of no use, those who stand in for its neighbour are told in its place (D1-B5).
What went around a link is told over it again when it is good: until then the neighbour may lack it.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.awaited import Awaited
from holdfast.protocols.routing.covered import Changes
from holdfast.protocols.routing.messages import Routes
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.settling import Settling
from holdfast.protocols.routing.table_store import TableStore
from holdfast.protocols.routing.tellings import changes, in_parts, texts
from holdfast.protocols.routing.ways import Ways


class _Hearer:
    """What one neighbour has heard."""

    __slots__ = ("is_paused", "is_synced", "life", "was_told_completely")

    def __init__(self) -> None:
        self.is_paused = False  # it is told nothing for now, and everything when that is over
        self.life = 0  # the one that was greeted last
        self.is_synced = False  # it was told everything on this link, and is told what changes
        self.was_told_completely = False  # what it was told on this link is all that there is

    def meet(self, life: int) -> bool:
        """Whether it was restarted since it was greeted last."""
        before, self.life = self.life, life
        return before not in (0, life)

    def sync(self, complete: bool = False) -> None:
        self.is_synced, self.was_told_completely = True, complete

    def pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        self.lose()

    def lose(self) -> None:
        self.is_synced = self.was_told_completely = False


class Teller:
    """Tells each neighbour in the tree; `answers`: of a level that buffers."""

    def __init__(
        self,
        settings: RoutingSettings,
        router: Router,
        settling: Settling,
        store: TableStore,
        acquaintances: Acquaintances,
        ways: Ways,
        awaited: Awaited,
        answers: Answers | None,
    ) -> None:
        self._settings = settings
        self._level = settings.reliability
        self._router = router
        self._settling = settling
        self._store = store
        self._acquaintances = acquaintances
        self._ways = ways
        self._awaited = awaited
        self._answers = answers
        self._hearers = {peer: _Hearer() for peer in router.neighbours}
        self._detoured: dict[str, tuple[str, ...]] = {}  # neighbour → those who were told in its place
        # Neighbours that may not have heard what was told around their links: what goes over them could be ahead of it.
        self.lacking: dict[str, None] = {}
        self.view_changed = False
        self.after = LATEST if self._level.buffers else NOW

    # ------------------------------------------------------------------------------------------------------- links
    def greet(self, peer: str, life: int, out: Outbox, is_awaited: bool = False) -> None:
        """Tells a neighbour whose link is new what is on this side, if its level and its past say so; in any case if
        our word `is_awaited`."""
        self.look_around()
        hearer = self._hearers.get(peer)
        if hearer is not None and hearer.is_paused:
            self._settling.hold(peer)  # it is about to change its place in the tree, and is told then
            return
        if hearer is None or hearer.is_synced:
            return  # it is beside the tree; or has only got another map
        restarted = hearer.meet(life)
        if restarted and not self._level.refreshes and not is_awaited:
            hearer.sync()  # it hears of what changes, and of nothing else
            self._router.take(peer)
        elif restarted and self._level.expires and not self._settings.ask_neighbours:
            pass  # the next refresh tells it
        else:
            self._tell_all(peer, hearer, out)

    def lose(self, peer: str) -> None:
        """The neighbour's link is gone."""
        self.look_around()
        if peer in self._hearers:
            self._hearers[peer].lose()
        if self._answers is not None:
            self._answers.unlinked(peer)

    def look_around(self) -> None:
        """Others may stand in for a neighbour now, or need not any more: that is seen to at the end of the turn."""
        self.view_changed = True

    def owes_answers(self, peer: str) -> bool:
        """Whether, at a level that buffers, the neighbour has not answered all advertisements that it was told."""
        return self._answers is not None and peer in self._hearers and self._answers.are_due(peer)

    def speaks_to(self, peer: str) -> bool:
        """Whether a neighbour is told all that is for it: it has our map, and keeps its place in the tree."""
        return peer in self._acquaintances.greeted and peer in self._hearers and not self._hearers[peer].is_paused

    # ----------------------------------------------------------------------------------- neighbours that change
    def add(self, peer: str, is_paused: bool = False) -> None:
        """There is another neighbour. If it has a link, it is to be told with `tell_anew`."""
        self._hearers[peer] = _Hearer()
        if is_paused:
            self.pause(peer)

    def pause(self, peer: str) -> None:
        self._hearers[peer].pause(True)
        if peer in self._acquaintances.greeted:
            self._settling.hold(peer)

    def is_paused(self, peer: str) -> bool:
        """Whether a neighbour is told nothing for now."""
        return peer in self._hearers and self._hearers[peer].is_paused

    def go_on(self, peer: str, out: Outbox) -> None:
        if self._hearers[peer].is_paused:
            self.tell_anew(peer, out)

    def tell_anew(self, peer: str, out: Outbox) -> None:
        """Tells a neighbour everything, whatever it was told before; when its link is new, if there is none now."""
        self._hearers[peer].pause(False)
        ticket = 0
        if peer in self._acquaintances.greeted:
            ticket = self._tell_all(peer, self._hearers[peer], out, always=self._settling.is_held(peer))
        self._settling.release(peer, ticket)

    def begin(self, peer: str) -> None:
        """A neighbour that was told nothing for a while is told of what changes from now on. What it asked, and what
        was asked of it, counts as answered."""
        hearer = self._hearers[peer]
        hearer.pause(False)
        hearer.sync(complete=True)
        self.lacking.pop(peer, None)
        self._settling.release(peer, 0)

    def take_place(self, old: str, new: str, out: Outbox) -> None:
        """What one neighbour was asked, another is asked now; it is told everything."""
        self.drop(old)
        if new not in self._hearers:
            self.add(new)
        self._hearers[new].pause(False)
        ticket = 0
        if new in self._acquaintances.greeted:
            ticket = self._tell_all(new, self._hearers[new], out, always=True)
        self._settling.move(old, new, ticket)
        self._settling.release(new, ticket)

    def drop(self, peer: str) -> None:
        self._hearers.pop(peer, None)
        self._detoured.pop(peer, None)
        self.lacking.pop(peer, None)

    # -------------------------------------------------------------------------------------------------- everything
    def _tell_all(self, peer: str, hearer: _Hearer, out: Outbox, always: bool = False) -> int:
        """Gives the ticket under which it is told, if there is one; there is with `always`."""
        complete = self._awaited.knows_beside(peer)
        messages = self._everything(peer, complete, out, asks=True, always=always)
        for message in messages:
            out.send(peer, message, after=self.after)
        hearer.sync(complete)
        self.lacking.pop(peer, None)
        return messages[-1].ticket

    def tell_more_completely(self, out: Outbox) -> None:
        """More is known than some neighbours were told."""
        for peer, hearer in self._hearers.items():
            if hearer.is_synced and not hearer.was_told_completely and self._awaited.knows_beside(peer):
                self._tell_all(peer, hearer, out)

    def tell_again(self, peer: str, out: Outbox) -> None:
        if self._detoured.get(peer):
            self._tell_everything_around(peer, out)
        elif peer in self._acquaintances.greeted and not self._hearers[peer].is_paused:
            self._tell_all(peer, self._hearers[peer], out)

    def _everything(
        self, peer: str, complete: bool, out: Outbox, asks: bool = False, always: bool = False
    ) -> list[Routes]:
        self.take(peer, out, everything=True)  # what has changed is a part of it
        ticket = self._ticket(peer, advertisements=None, always=always) if asks else 0
        advertisements = texts(self._router.advertisement_outlets[peer].told())
        return in_parts(advertisements, texts(self._router.subscription_outlets[peer].told()), complete, ticket=ticket)

    def take(self, peer: str, out: Outbox, everything: bool = False) -> tuple[Changes, Changes]:
        """What a neighbour is to be told of what has changed. At the levels that buffer the disk knows first that
        something is taken back."""
        advertisements, subscriptions = self._router.take(peer)
        if self._answers is not None and (everything or advertisements.taken_back):
            self._answers.told(peer, advertisements.taken_back, everything)
            self._store.keep_answers(self._answers.take_changed(), out)
        return advertisements, subscriptions

    def _ticket(self, peer: str, advertisements: Collection[str] | None, always: bool = False) -> int:
        """The ticket for a telling of these advertisements, or of everything; 0 if nobody waits for an answer. What was
        asked about in this turn may be a part of it."""
        asks = advertisements is None or bool(advertisements)
        asks = always or (asks and self._answers is not None and self._answers.are_due(peer))
        ticket = self._settling.tell(peer, asks)
        if ticket and self._answers is not None:
            self._answers.ask(peer, ticket, advertisements)
        return ticket

    # ------------------------------------------------------------------------------------------------------ changes
    def finish(self, out: Outbox) -> None:
        """Tells what this turn has changed."""
        if self.view_changed:
            self._tell_around(out)
        if self._router.changed:
            self.tell_changes(out)

    def tell_changes(self, out: Outbox) -> None:
        for peer in self._router.neighbours:
            around, hearer = bool(self._detoured.get(peer)), self._hearers[peer]
            if hearer.is_paused or (not around and not hearer.is_synced):
                continue
            advertisements, subscriptions = self.take(peer, out)
            if not advertisements and not subscriptions:
                continue
            if around:
                self.lacking[peer] = None
                for message in changes(advertisements, subscriptions, 0):
                    self._ways.tell_around(peer, message, out)
            else:
                for message in changes(advertisements, subscriptions, self._ticket(peer, advertisements.told.keys())):
                    out.send(peer, message, after=self.after)

    # ------------------------------------------------------------------------------------------------------ detours
    def is_direct(self, peer: str) -> bool:
        """Whether what is told goes over the link."""
        return peer in self._acquaintances and self._ways.is_good(peer)

    def _tell_around(self, out: Outbox) -> None:
        """Whoever stands in for a neighbour without a link is told what the neighbour should know (D1-B5)."""
        self.view_changed = False
        for peer in self._router.neighbours:
            told, hearer = self._detoured.get(peer, ()), self._hearers[peer]
            if hearer.is_paused:
                continue
            targets = () if self.is_direct(peer) else self._ways.around(peer)
            if any(target not in told for target in targets):
                self._tell_everything_around(peer, out)
                self.lacking[peer] = None
            elif peer in self.lacking and hearer.is_synced and self.is_direct(peer):
                self._tell_all(peer, hearer, out)  # the link is good again, and lacks what went around it
            self._detoured[peer] = targets

    def _tell_everything_around(self, peer: str, out: Outbox) -> None:
        """In one part if it fits; else in several that say less: nothing is forgotten on their word either."""
        messages = self._everything(peer, self._awaited.knows_beside(peer), out)
        for message in messages:
            if len(messages) > 1:
                message = Routes(message.advertisements, message.subscriptions, full=True, complete=False)
            self._ways.tell_around(peer, message, out)
