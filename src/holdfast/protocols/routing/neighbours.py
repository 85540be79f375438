"""The other brokers: links to them, and what each is told of what is advertised and wanted on this side.

A link begins with an introduction on both sides; brokers of other networks are refused. Then each tells the other in
full what its tables hold, and from then on what changes (D0-B1). How much survives is a matter of the level:

- `none`: who was restarted is told nothing again, and so knows nothing (D1-C1);
- `periodic`, `bypass`: everything is told again every `refresh`, and at once to who was restarted unless the setting
  says otherwise; what was not told again within `expire` is forgotten (D1-B3);
- levels that buffer keep what they were told on the disk.

A broker that was restarted does not know at first what is beyond its other neighbours. Until it does, its word is not
complete: nobody forgets what it told before for that. In a tree that comes to an end: what it tells one neighbour
depends only on the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import LATEST, NOW, After, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.model import Filter
from holdfast.protocols.failure.notices import NeighbourSuspected
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.covered import Changes
from holdfast.protocols.routing.local import LocalInterests, broker_of
from holdfast.protocols.routing.messages import Introduction, Routes, Settled, Told, checked_entry
from holdfast.protocols.routing.notices import (
    BecameReady,
    BecomingReady,
    Detoured,
    NeighbourAccepted,
    NeighbourAnswered,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
    TicketsSettled,
    ViewChanged,
)
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.settling import Asked, Settling
from holdfast.protocols.routing.table_store import TableStore, apply_routes
from holdfast.protocols.routing.tellings import changes, in_parts, parse
from holdfast.protocols.routing.ways import Acquaintances, Ways

BROKERS: Final = frozenset({Role.BROKER})
ENTRIES_MAX: Final = 1_000_000  # that one neighbour may tell

_Parsed = tuple[dict[str, Filter], dict[str, Filter]]  # advertisements, subscriptions


class _Neighbour:
    """What is known of one neighbour."""

    __slots__ = ("link", "met", "parts", "refreshed_at", "synced", "told_completely", "told_life")

    def __init__(self) -> None:
        self.link: int | None = None
        self.met = 0  # which life of it the link is to
        self.told_life = 0  # which life was greeted last
        self.synced = False  # it was told everything on this link, and is told what changes
        self.told_completely = False  # what it was told on this link is all that there is
        self.refreshed_at = 0
        self.parts: _Parsed = ({}, {})  # of a full telling that is not at its end


class Neighbours(Part):
    """Tells of links, of tickets of our own, of being ready, and of neighbours that have answered everything."""

    name: ClassVar[str] = "neighbours"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {
        Introduction: BROKERS,
        Routes: BROKERS,
        Settled: BROKERS,
    }
    notices: ClassVar[tuple[type[Notice], ...]] = (NeighbourSuspected, ViewChanged, Detoured)

    def __init__(
        self,
        settings: RoutingSettings,
        router: Router,
        local: LocalInterests,
        store: TableStore,
        acquaintances: Acquaintances,
        ways: Ways,
        answers: Answers | None,
    ) -> None:
        """`answers`: of a level that buffers."""
        self.router = router
        self._acquaintances = acquaintances
        self._ways = ways
        self.settling = Settling()
        self._settings = settings
        self._level = settings.reliability
        self._answers = answers
        self._local = local
        self._store = store
        tree = settings.overlay.spanning_tree()
        self.tree = tree.neighbours(settings.name)
        others = [broker for broker in settings.overlay.brokers if broker != settings.name]
        self._sides = {broker: tree.next_hop(settings.name, broker) for broker in others}
        self._neighbours = {peer: _Neighbour() for peer in settings.overlay.neighbours(settings.name)}
        self._awaited: dict[str, None] = {}  # neighbours of whose side we do not know everything yet
        self._waited_enough = False
        self._network = settings.network_id
        self._detoured: dict[str, tuple[str, ...]] = {}  # neighbour → those who were told in its place
        self._lacking: dict[str, None] = {}  # neighbours that may lack what was told around their links
        self._view_changed = False
        self._done: list[Asked] = []  # those who asked and need not wait any more

    # ------------------------------------------------------------------------------------------------------- links
    @property
    def is_ready(self) -> bool:
        """Whether everything is known that neighbours can tell, or was waited for long enough."""
        return not self._awaited or self._waited_enough

    def is_linked(self, peer: str) -> bool:
        return peer in self._acquaintances

    def owes_answers(self, peer: str) -> bool:
        """Whether, at a level that buffers, the neighbour has not answered all advertisements that it was told."""
        return self._answers is not None and peer in self.tree and self._answers.are_due(peer)

    def on_started(self, started: Started, out: Outbox) -> None:
        self._local.incarnation = started.incarnation
        if self._answers is not None:
            self._answers.begin(self.router, self._store.answered, self._store.complete)
        if self._level.refreshes:
            self._awaited = {peer: None for peer in self.tree if peer not in self._store.complete}
        if self._awaited:
            restore = self._settings.restore
            if not self._settings.ask_neighbours:
                restore = max(restore, 2 * self._settings.refresh)
            out.set_timer((self.name, "restore"), restore)
        else:
            out.tell(BecameReady())
        if self._expires:
            out.set_timer((self.name, "refresh"), self._settings.refresh)
        for peer in self._neighbours:
            self._dial(peer, out)

    @property
    def _expires(self) -> bool:
        return self._level.refreshes and not self._level.buffers

    def _dials(self, peer: str) -> bool:
        """Of two neighbours the one that stands first in the site file dials."""
        places = self._settings.overlay.brokers
        return places.index(self._settings.name) < places.index(peer)

    def _dial(self, peer: str, out: Outbox) -> None:
        if self._dials(peer):
            out.connect(peer, self._settings.addresses.get(peer, peer))

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        neighbour = self._neighbours.get(up.peer)
        if neighbour is None:
            out.disconnect(up.link, f"{up.peer} is no neighbour of {self._settings.name}")
            return
        if neighbour.link is not None:
            self._drop(up.peer, neighbour, out)
        neighbour.link, neighbour.met = up.link, up.incarnation
        out.tell(NeighbourConnected(up.peer))

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        neighbour = self._neighbours.get(down.peer)
        if neighbour is None or neighbour.link != down.link:
            return  # no neighbour, or a newer link has taken its place
        self._drop(down.peer, neighbour, out)
        if self._dials(down.peer):
            out.set_timer((self.name, "dial", down.peer), self._settings.dial_every)

    def _drop(self, peer: str, neighbour: _Neighbour, out: Outbox) -> None:
        neighbour.link, neighbour.synced = None, False
        neighbour.told_completely = False
        self._view_changed = True
        neighbour.parts = ({}, {})
        out.drop_queue(peer)
        if self._acquaintances.forget(peer):
            out.tell(NeighbourUnlinked(peer))
        if self._answers is not None:
            self._answers.unlinked(peer)
        # What it asked on a link that is gone is not answered on the next one, which may be to its next life.
        self._done = [asked for asked in self._done if asked[0] != peer] + self.settling.lost(peer)
        self._await_no_longer(peer, out)

    def on_neighbour_suspected(self, suspected: NeighbourSuspected, out: Outbox) -> None:
        """Nobody waits for what this neighbour could tell."""
        self._await_no_longer(suspected.peer, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self._neighbours:
            self._await_no_longer(failed.peer, out)
            out.set_timer((self.name, "dial", failed.peer), self._settings.dial_every)

    def disconnect(self, peer: str, reason: str, out: Outbox) -> None:
        neighbour = self._neighbours.get(peer)
        if neighbour is not None and neighbour.link is not None:
            out.disconnect(neighbour.link, reason)

    def on_introduction(self, peer: str, introduction: Introduction, out: Outbox) -> None:
        neighbour = self._neighbours.get(peer)
        if neighbour is None or neighbour.link is None or self.is_linked(peer):
            raise ProtocolError("an introduction is the first message of a neighbour, and comes once")
        if introduction.network != self._network:
            out.report("other-network", Level.WARNING, peer=peer)
            out.disconnect(neighbour.link, f"{peer} belongs to another network, or has another site file")
            return
        self._acquaintances.add(peer)
        self._view_changed = True
        out.tell(NeighbourLinked(peer, introduction))
        out.tell(NeighbourAccepted(peer))
        if peer in self.tree:
            self._greet(peer, neighbour, out)

    def _greet(self, peer: str, neighbour: _Neighbour, out: Outbox) -> None:
        """Tells a neighbour whose link is new what is on this side, if its level and its past say so."""
        restarted = neighbour.told_life not in (0, neighbour.met)
        neighbour.told_life = neighbour.met
        if restarted and not self._level.refreshes:
            neighbour.synced = True  # it hears of what changes, and of nothing else
            self.router.take(peer)
        elif restarted and self._expires and not self._settings.ask_neighbours:
            pass  # the next refresh tells it
        else:
            self._tell_all(peer, neighbour, out)

    # ------------------------------------------------------------------------------------------------------ telling
    def _knows_beside(self, peer: str) -> bool:
        """Whether everything is known that this neighbour can be told: what is beyond the others."""
        return not self._awaited or (len(self._awaited) == 1 and peer in self._awaited)

    def _tell_all(self, peer: str, neighbour: _Neighbour, out: Outbox) -> None:
        complete = self._knows_beside(peer)
        messages = self._everything(peer, complete, out, asks=True)
        for message in messages:
            out.send(peer, message, after=self._after)
        neighbour.synced, neighbour.told_completely = True, complete
        self._lacking.pop(peer, None)

    def lacks_news(self, peer: str) -> bool:
        """Whether something was told around the neighbour's link that it may not have heard: what goes over the link
        now could be ahead of it."""
        return peer in self._lacking

    def _ticket(self, peer: str, advertisements: Collection[str] | None) -> int:
        """The ticket for a telling of these advertisements, or of everything; 0 if nobody waits for an answer. What was
        asked about in this turn may be a part of it."""
        due = (
            (advertisements is None or bool(advertisements))
            and self._answers is not None
            and self._answers.are_due(peer)
        )
        ticket = self.settling.tell(peer, due)
        if ticket and self._answers is not None:
            self._answers.ask(peer, ticket, advertisements)
        return ticket

    def _take(self, peer: str, out: Outbox, everything: bool = False) -> tuple[Changes, Changes]:
        """What a neighbour is to be told of what has changed. At the levels that buffer the disk knows first that
        something is taken back."""
        advertisements, subscriptions = self.router.take(peer)
        if self._answers is not None and (everything or advertisements.taken_back):
            self._answers.told(peer, advertisements.taken_back, everything)
            self._store.keep_answers(self._answers.take_changed(), out)
        return advertisements, subscriptions

    def _everything(self, peer: str, complete: bool, out: Outbox, asks: bool = False) -> list[Routes]:
        self._take(peer, out, everything=True)  # what has changed is a part of it
        ticket = self._ticket(peer, advertisements=None) if asks else 0
        advertisements = [
            (entry, str(filter)) for entry, filter in self.router.advertisement_outlets[peer].told().items()
        ]
        subscriptions = [
            (entry, str(filter)) for entry, filter in self.router.subscription_outlets[peer].told().items()
        ]
        return in_parts(advertisements, subscriptions, complete, ticket=ticket)

    # ------------------------------------------------------------------------------------------------------ detours
    def on_view_changed(self, changed: ViewChanged, out: Outbox) -> None:
        self._view_changed = True

    def _tell_around(self, out: Outbox) -> None:
        """Whoever stands in for a neighbour without a link is told what the neighbour should know (D1-B5)."""
        self._view_changed = False
        for peer in self.tree:
            told, neighbour = self._detoured.get(peer, ()), self._neighbours[peer]
            targets = () if self._is_direct(peer) else self._ways.around(peer)
            if any(target not in told for target in targets):
                self._tell_everything_around(peer, out)
                self._lacking[peer] = None
            elif peer in self._lacking and neighbour.synced and self._is_direct(peer):
                self._tell_all(peer, neighbour, out)  # the link is good again, and lacks what went around it
            self._detoured[peer] = targets

    def _is_direct(self, peer: str) -> bool:
        return self.is_linked(peer) and self._ways.is_good(peer)

    def _tell_everything_around(self, peer: str, out: Outbox) -> None:
        """In one part if it fits; else in several that say less: nothing is forgotten on their word either."""
        messages = self._everything(peer, self._knows_beside(peer), out)
        for message in messages:
            if len(messages) > 1:
                message = Routes(message.advertisements, message.subscriptions, full=True, complete=False)
            self._ways.tell_around(peer, message, out)

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        """What the neighbour itself told around a broken link; or what others told in the place of one that failed.

        Those know only their own side of it, and what they take back may hide what someone else on that side wants:
        nothing is forgotten on their word.
        """
        source, routes = detoured.source, detoured.message
        if not isinstance(routes, Routes):
            return  # events, which are not this part's affair
        advertisements, subscriptions = (
            self._parse(source, routes.advertisements),
            self._parse(source, routes.subscriptions),
        )
        if routes.full and not routes.last:
            raise ProtocolError("what is told by a detour comes in one part")
        if source != detoured.sender:
            routes = Routes(routes.advertisements, routes.subscriptions, full=True, complete=False)
        if not self._is_direct(source):
            self._apply(source, routes, advertisements, subscriptions, out)

    @property
    def _after(self) -> After:
        return LATEST if self._level.buffers else NOW

    def _await_no_longer(self, peer: str, out: Outbox) -> None:
        if peer in self._awaited and not self._level.buffers:
            self._learned(peer, out)

    def _learned(self, peer: str, out: Outbox) -> None:
        """Everything is known that a neighbour can tell now. Others may be told more completely by that."""
        if self._awaited.pop(peer, peer) is not None:
            return
        if not self._awaited:
            out.tell(BecomingReady())
        for other, neighbour in self._neighbours.items():
            if neighbour.synced and not neighbour.told_completely and self._knows_beside(other):
                self._tell_all(other, neighbour, out)
        if not self._awaited:
            out.cancel_timer((self.name, "restore"))
            out.tell(BecameReady())

    # -------------------------------------------------------------------------------------------------- being told
    def on_routes(self, peer: str, routes: Routes, out: Outbox) -> None:
        neighbour = self._neighbours.get(peer)
        if peer not in self.tree or neighbour is None or not self.is_linked(peer):
            raise ProtocolError("routes are told by neighbours in the tree, behind an introduction")
        advertisements, subscriptions = (
            self._parse(peer, routes.advertisements),
            self._parse(peer, routes.subscriptions),
        )
        told = len(self.router.subscriptions.by_source[peer]) + len(self.router.advertisements.by_source[peer])
        if told + len(advertisements) + len(subscriptions) + sum(map(len, neighbour.parts)) > 2 * ENTRIES_MAX:
            raise ProtocolError(f"{peer} tells more than {ENTRIES_MAX} entries, twice over")
        if not routes.full:
            self._apply(peer, routes, advertisements, subscriptions, out)
        else:
            neighbour.parts[0].update(advertisements)
            neighbour.parts[1].update(subscriptions)
            if routes.last:
                (advertisements, subscriptions), neighbour.parts = neighbour.parts, ({}, {})
                self._apply(peer, routes, advertisements, subscriptions, out)
        if routes.ticket:
            self.settling.ask(peer, routes.ticket)

    def _parse(self, source: str, told: list[Told]) -> dict[str, Filter]:
        """What is told from the side of a neighbour. Entries are told apart by ids all over the network: one may only
        be told by the side that its broker is on, or the neighbours' entries would get in each other's way."""
        for entry, _ in told:
            if not checked_entry(entry) and self._sides.get(broker_of(entry)) != source:
                raise ProtocolError(f"in Routes, {entry[:64]!r} is of no broker on the side of {source}")
        return parse(told)

    def _apply(
        self,
        peer: str,
        routes: Routes,
        advertisements: dict[str, Filter],
        subscriptions: dict[str, Filter],
        out: Outbox,
    ) -> None:
        apply_routes(self.router, peer, routes, advertisements, subscriptions)
        if self._level.buffers:
            self._store.told(peer, routes, advertisements, subscriptions, out)
        self._neighbours[peer].refreshed_at = out.now
        if routes.full and routes.complete:
            self._learned(peer, out)
            if self._answers is not None:
                self._answers.known(self.router, peer)
                self._look_at_answers(peer, out)

    def on_settled(self, peer: str, settled: Settled, out: Outbox) -> None:
        self._done += self.settling.answered(peer, settled.ticket)
        if self._answers is not None and peer in self.tree:
            self._answers.answered(self.router, peer, settled.ticket)
            self._look_at_answers(peer, out)

    def _look_at_answers(self, peer: str, out: Outbox) -> None:
        if not self.owes_answers(peer):
            out.tell(NeighbourAnswered(peer))

    def _say_settled(self, out: Outbox) -> None:
        """At the turn's end, behind what the same turn told: who hears that all is told has heard all of it."""
        done, self._done = self._done + self.settling.finish(), []
        own = []
        for source, ticket in done:
            if source == LOCAL:
                own.append(ticket)
            elif self.is_linked(source):
                out.send(source, Settled(ticket), after=self._after)
        if own:
            out.tell(TicketsSettled(own))

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "dial":
                if self._neighbours[key[2]].link is None:
                    self._dial(key[2], out)
            case "restore":
                self._stop_waiting(out)
            case "refresh":
                self._refresh(out)
                out.set_timer((self.name, "refresh"), self._settings.refresh)
            case _:
                broken("a timer of the neighbours has a known name", key=key)

    def _stop_waiting(self, out: Outbox) -> None:
        """Goes on with what is known. Where events are stored, what is not known stays so (D1-B4.1): our word is not
        complete before we know, and what may be for those neighbours waits for them."""
        if self._level.buffers:
            self._waited_enough = True
            out.tell(BecomingReady())
            out.tell(BecameReady())
        for peer in [] if self._level.buffers else list(self._awaited):
            self._learned(peer, out)

    def _refresh(self, out: Outbox) -> None:
        """Tells everyone everything again, and forgets what was not told again (D1-B3)."""
        for peer in self.tree:
            neighbour = self._neighbours[peer]
            if self._detoured.get(peer):
                self._tell_everything_around(peer, out)
            elif self.is_linked(peer):
                self._tell_all(peer, neighbour, out)
            if out.now - neighbour.refreshed_at > self._settings.expire:
                self.router.replace(peer, {}, {})

    def finish(self, out: Outbox) -> None:
        """Tells neighbours what has changed in this turn."""
        router = self.router
        if router.postponed:
            router.release()
        if self._view_changed:
            self._tell_around(out)
        if router.changed:
            self._tell_changes(out)
        if self._answers is not None and self._answers.changed:
            self._store.keep_answers(self._answers.take_changed(), out)
        if self._done or self.settling.asked:
            self._say_settled(out)
        if router.changed:
            self._note(out)

    def _tell_changes(self, out: Outbox) -> None:
        for peer in self.tree:
            if self._neighbours[peer].synced and not self._detoured.get(peer):
                advertisements, subscriptions = self._take(peer, out)
                if advertisements or subscriptions:
                    for message in changes(
                        advertisements, subscriptions, self._ticket(peer, advertisements.told.keys())
                    ):
                        out.send(peer, message, after=self._after)
            elif self._detoured.get(peer):
                advertisements, subscriptions = self._take(peer, out)
                if advertisements or subscriptions:
                    self._lacking[peer] = None
                    for message in changes(advertisements, subscriptions, 0):
                        self._ways.tell_around(peer, message, out)

    def _note(self, out: Outbox) -> None:
        changed = self.router.take_changed()
        if not out.tracing:
            return
        node = self._settings.name
        for table, entry, source, filter, present in changed:
            owner = self._local.owners.get(entry, "")
            out.note(
                "routed",
                node=node,
                table=table,
                entry=entry,
                source=source,
                filter=str(filter),
                owner=owner,
                present=present,
            )
        out.note("table_size", node=node, table="routes", entries=len(self.router.subscriptions))
        out.note("table_size", node=node, table="advertisements", entries=len(self.router.advertisements))

    def measure(self) -> dict[str, int]:
        told = sum(len(outlet) for outlet in self.router.subscription_outlets.values())
        hidden = sum(outlet.hidden for outlet in self.router.subscription_outlets.values())
        return {
            "neighbours_linked": len(self._acquaintances),
            "routes": len(self.router.subscriptions),
            "routes_advertised": len(self.router.advertisements),
            "routes_told": told,
            "routes_hidden": hidden,
            "routes_awaited": len(self._awaited),
            "routes_expected": len(self.router.expected),
            "advertisements_postponed": len(self.router.postponed),
        }

    def check_invariants(self) -> None:
        self.router.check_invariants()
