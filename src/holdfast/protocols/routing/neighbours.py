"""The neighbours in the tree: what they tell of their sides, and when they are told of this one (`Teller`).

Neighbours whose link is new tell each other in full what their tables hold, and from then on what changes (D0-B1). How
much survives is a matter of the level:

- `none`: who was restarted is told nothing again, and so knows nothing (D1-C1);
- `periodic`, `bypass`: everything is told again every `refresh`, and at once to who was restarted unless the setting
  says otherwise; what was not told again within `expire` is forgotten (D1-B3);
- levels that buffer keep what they were told on the disk.

A broker that was restarted does not know at first what is beyond its other neighbours. Until it does, its word is not
complete: nobody forgets what it told before for that. In a tree that comes to an end: what it tells one neighbour
depends only on the others.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model import Filter
from holdfast.protocols.failure.notices import NeighbourSuspected
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.awaited import Awaited
from holdfast.protocols.routing.links import BROKERS
from holdfast.protocols.routing.local import EntryIds, LocalInterests, broker_of
from holdfast.protocols.routing.messages import Routes, Settled, Told, checked_entry
from holdfast.protocols.routing.notices import (
    BecameReady,
    BecomingReady,
    Detoured,
    NeighbourAccepted,
    NeighbourAnswered,
    NeighbourUnlinked,
    TicketsSettled,
    ViewChanged,
)
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.settling import Question, Settling
from holdfast.protocols.routing.table_store import TableStore, apply_routes
from holdfast.protocols.routing.teller import Teller
from holdfast.protocols.routing.tellings import Telling, parse

ENTRIES_MAX: Final = 1_000_000  # that one neighbour may tell


class Neighbours(Part):
    """Tells of tickets of our own, of being ready, and of neighbours that have answered everything."""

    name: ClassVar[str] = "neighbours"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Routes: BROKERS, Settled: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (
        NeighbourAccepted,
        NeighbourUnlinked,
        NeighbourSuspected,
        ViewChanged,
        Detoured,
    )

    def __init__(
        self,
        settings: RoutingSettings,
        router: Router,
        settling: Settling,
        ids: EntryIds,
        local: LocalInterests,
        store: TableStore,
        acquaintances: Container[str],
        awaited: Awaited,
        teller: Teller,
        answers: Answers | None,
    ) -> None:
        """`answers`: of a level that buffers."""
        self.router = router
        self.settling = settling
        self._settings = settings
        self._level = settings.reliability
        self._ids = ids
        self._local = local
        self._store = store
        self._acquaintances = acquaintances
        self._awaited = awaited
        self._teller = teller
        self._answers = answers
        self._tree = router.neighbours
        tree = settings.graph.spanning_tree()
        others = [broker for broker in settings.graph.brokers if broker != settings.name]
        self._sides = {broker: tree.next_hop(settings.name, broker) for broker in others}
        self._parts: dict[str, Telling] = {}  # of full tellings that are not at their end
        self._refreshed_at = dict.fromkeys(self._tree, 0)
        self._done: list[Question] = []  # of those who asked and need not wait any more

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._ids.begin(started.incarnation)
        if self._answers is not None:
            self._answers.begin(self.router, self._store.answered, self._store.complete)
        if self._level.refreshes:
            self._awaited.begin(peer for peer in self._tree if peer not in self._store.complete)
        if self._awaited.peers:
            restore = self._settings.restore
            if not self._settings.ask_neighbours:
                restore = max(restore, 2 * self._settings.refresh)
            out.set_timer((self.name, "restore"), restore)
        else:
            out.tell(BecameReady())
        if self._level.expires:
            out.set_timer((self.name, "refresh"), self._settings.refresh)

    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        self._teller.greet(accepted.peer, accepted.incarnation, out)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        peer = unlinked.peer
        self._parts.pop(peer, None)
        self._teller.lose(peer)
        # What it asked on a link that is gone is not answered on the next one, which may be to its next life.
        self._done = [question for question in self._done if question[0] != peer] + self.settling.lost(peer)
        self._await_no_longer(peer, out)

    def on_neighbour_suspected(self, suspected: NeighbourSuspected, out: Outbox) -> None:
        """Nobody waits for what this neighbour could tell."""
        self._await_no_longer(suspected.peer, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._await_no_longer(failed.peer, out)

    def on_view_changed(self, changed: ViewChanged, out: Outbox) -> None:
        self._teller.look_around()

    # ------------------------------------------------------------------------------------------------- being ready
    def _await_no_longer(self, peer: str, out: Outbox) -> None:
        if peer in self._awaited.peers and not self._level.buffers:
            self._learned(peer, out)

    def _learned(self, peer: str, out: Outbox) -> None:
        """Everything is known that a neighbour can tell now. Others may be told more completely by that."""
        if not self._awaited.learn(peer):
            return
        if not self._awaited.peers:
            out.tell(BecomingReady())
        self._teller.tell_more_completely(out)
        if not self._awaited.peers:
            out.cancel_timer((self.name, "restore"))
            out.tell(BecameReady())

    def _stop_waiting(self, out: Outbox) -> None:
        """Goes on with what is known. Where events are stored, what is not known stays so (D1-B4.1): our word is not
        complete before we know, and what may be for those neighbours waits for them."""
        if self._level.buffers:
            self._awaited.stop()
            out.tell(BecomingReady())
            out.tell(BecameReady())
        for peer in [] if self._level.buffers else list(self._awaited.peers):
            self._learned(peer, out)

    # -------------------------------------------------------------------------------------------------- being told
    def on_routes(self, peer: str, routes: Routes, out: Outbox) -> None:
        if peer not in self._tree or peer not in self._acquaintances:
            raise ProtocolError("routes are told by neighbours in the tree, behind an introduction")
        telling, parts = self._read(peer, routes), self._parts.get(peer, Telling({}, {}))
        told = len(self.router.subscriptions.by_source[peer]) + len(self.router.advertisements.by_source[peer])
        if told + sum(map(len, (*telling, *parts))) > 2 * ENTRIES_MAX:
            raise ProtocolError(f"{peer} tells more than {ENTRIES_MAX} entries, twice over")
        if not routes.full:
            self._apply(peer, routes, telling, out)
        else:
            self._parts[peer] = parts
            parts.advertisements.update(telling.advertisements)
            parts.subscriptions.update(telling.subscriptions)
            if routes.last:
                self._apply(peer, routes, self._parts.pop(peer), out)
        if routes.ticket:
            self.settling.ask(peer, routes.ticket)

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        """What the neighbour itself told around a broken link; or what others told in the place of one that failed.

        Those know only their own side of it, and what they take back may hide what someone else on that side wants:
        nothing is forgotten on their word.
        """
        source, routes = detoured.source, detoured.message
        if not isinstance(routes, Routes):
            return  # events, which are not this part's affair
        telling = self._read(source, routes)
        if routes.full and not routes.last:
            raise ProtocolError("what is told by a detour comes in one part")
        if source != detoured.sender:
            routes = Routes(routes.advertisements, routes.subscriptions, full=True, complete=False)
        if not self._teller.is_direct(source):
            self._apply(source, routes, telling, out)

    def _read(self, source: str, routes: Routes) -> Telling:
        return Telling(self._parse(source, routes.advertisements), self._parse(source, routes.subscriptions))

    def _parse(self, source: str, told: list[Told]) -> dict[str, Filter]:
        """What is told from the side of a neighbour. Entries are told apart by ids all over the network: one may only
        be told by the side that its broker is on, or the neighbours' entries would get in each other's way."""
        for entry, _ in told:
            if not checked_entry(entry) and self._sides.get(broker_of(entry)) != source:
                raise ProtocolError(f"in Routes, {entry[:64]!r} is of no broker on the side of {source}")
        return parse(told)

    def _apply(self, peer: str, routes: Routes, telling: Telling, out: Outbox) -> None:
        apply_routes(self.router, peer, routes, telling)
        if self._level.buffers:
            self._store.told(peer, routes, telling, out)
        self._refreshed_at[peer] = out.now
        if routes.full and routes.complete:
            self._learned(peer, out)
            if self._answers is not None:
                self._answers.known(self.router, peer)
                self._look_at_answers(peer, out)

    def on_settled(self, peer: str, settled: Settled, out: Outbox) -> None:
        self._done += self.settling.answered(peer, settled.ticket)
        if self._answers is not None and peer in self._tree:
            self._answers.answered(self.router, peer, settled.ticket)
            self._look_at_answers(peer, out)

    def _look_at_answers(self, peer: str, out: Outbox) -> None:
        if not self._teller.owes_answers(peer):
            out.tell(NeighbourAnswered(peer))

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "restore":
                self._stop_waiting(out)
            case "refresh":
                self._refresh(out)
                out.set_timer((self.name, "refresh"), self._settings.refresh)
            case _:
                broken("a timer of the neighbours has a known name", key=key)

    def _refresh(self, out: Outbox) -> None:
        """Tells everyone everything again, and forgets what was not told again (D1-B3)."""
        for peer in self._tree:
            self._teller.tell_again(peer, out)
            if out.now - self._refreshed_at[peer] > self._settings.expire:
                self.router.replace(peer, {}, {})

    def finish(self, out: Outbox) -> None:
        """Tells neighbours what has changed in this turn."""
        router = self.router
        if router.postponed:
            router.release()
        if router.changed or self._teller.view_changed:
            self._teller.finish(out)
        if self._answers is not None and self._answers.changed:
            self._store.keep_answers(self._answers.take_changed(), out)
        if self._done or self.settling.asked:
            self._say_settled(out)
        if router.changed:
            self._note(out)

    def _say_settled(self, out: Outbox) -> None:
        """At the turn's end, behind what the same turn told: who hears that all is told has heard all of it."""
        done, self._done = self._done + self.settling.finish(), []
        own = []
        for source, ticket in done:
            if source == LOCAL:
                own.append(ticket)
            elif source in self._acquaintances:
                out.send(source, Settled(ticket), after=self._teller.after)
        if own:
            out.tell(TicketsSettled(own))

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
        outlets = self.router.subscription_outlets.values()
        return {
            "routes": len(self.router.subscriptions),
            "routes_advertised": len(self.router.advertisements),
            "routes_told": sum(map(len, outlets)),
            "routes_hidden": sum(outlet.hidden for outlet in outlets),
            "routes_awaited": len(self._awaited.peers),
            "routes_expected": len(self.router.expected),
            "advertisements_postponed": len(self.router.postponed),
        }

    def check_invariants(self) -> None:
        self.router.check_invariants()
