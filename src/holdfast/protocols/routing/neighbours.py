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
from typing import ClassVar

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
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.awaited import Awaited
from holdfast.protocols.routing.covered import broadest
from holdfast.protocols.routing.heard import Heard
from holdfast.protocols.routing.links import BROKERS
from holdfast.protocols.routing.local import EntryIds, LocalInterests, broker_of
from holdfast.protocols.routing.messages import MoveStage, NeighboursChanged, Routes, Settled
from holdfast.protocols.routing.network_map import Move
from holdfast.protocols.routing.notices import (
    BecameReady,
    BecomingReady,
    Detoured,
    NeighbourAccepted,
    NeighbourUnlinked,
    RoutesHeard,
    TablesChanged,
    TicketsSettled,
    ViewChanged,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.settling import Question, Settling
from holdfast.protocols.routing.table_store import TableStore
from holdfast.protocols.routing.teller import Teller
from holdfast.protocols.routing.tellings import Telling
from holdfast.protocols.routing.words import Aside, Prospect, check_room, knows_all, read


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
        roster: Roster,
        router: Router,
        settling: Settling,
        ids: EntryIds,
        local: LocalInterests,
        store: TableStore,
        acquaintances: Acquaintances,
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
        self.teller = teller
        self._answers = answers
        self._roster = roster
        self._parts: dict[str, Telling] = {}  # of full tellings that are not at their end
        self.heard = Heard(roster, router, store, awaited, teller, answers, (self.name, "restore"))
        self.prospects: dict[str, Prospect] = {}  # brokers that are about to be neighbours
        self.asides: dict[str, Aside] = {}  # those, and others whose word is kept apart from the tables
        self._parted: dict[str, None] = {}  # that were neighbours on the links that they have now
        self._done: list[Question] = []  # of those who asked and need not wait any more

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._ids.begin(started.incarnation)
        if self._answers is not None:
            self._answers.begin(self.router, self._store.answered, self._store.complete)
        if self._level.refreshes:
            self._awaited.begin(peer for peer in self.router.neighbours if peer not in self._store.complete)
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
        match self._roster.map.step:
            case Move(broker, _, new):  # which is not our neighbour before it has heard all that we tell
                is_awaited = (broker, new) == (self._roster.name, accepted.peer)
            case _:
                is_awaited = False
        self.teller.greet(accepted.peer, accepted.incarnation, out, is_awaited)

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        peer = unlinked.peer
        self._parts.pop(peer, None)
        self._parted.pop(peer, None)
        if peer in self.asides:
            self.asides[peer].lose()
        self.teller.lose(peer)
        # What it asked on a link that is gone is not answered on the next one, which may be to its next life.
        self._done = [question for question in self._done if question[0] != peer] + self.settling.lost(peer)
        self._await_no_longer(peer, out)

    def on_neighbour_suspected(self, suspected: NeighbourSuspected, out: Outbox) -> None:
        """Nobody waits for what this neighbour could tell."""
        self._await_no_longer(suspected.peer, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._await_no_longer(failed.peer, out)

    def on_view_changed(self, changed: ViewChanged, out: Outbox) -> None:
        self.teller.look_around()

    # ------------------------------------------------------------------------------------------------- being ready
    def _await_no_longer(self, peer: str, out: Outbox) -> None:
        if peer in self._awaited.peers and not self._level.buffers:
            self.heard.learned(peer, out)

    def _stop_waiting(self, out: Outbox) -> None:
        """Goes on with what is known. Where events are stored, what is not known stays so (D1-B4.1): our word is not
        complete before we know, and what may be for those neighbours waits for them."""
        if self._level.buffers:
            self._awaited.stop()
            out.tell(BecomingReady())
            out.tell(BecameReady())
        for peer in [] if self._level.buffers else list(self._awaited.peers):
            self.heard.learned(peer, out)

    # -------------------------------------------------------------------------------------------------- being told
    def on_routes(self, peer: str, routes: Routes, out: Outbox) -> None:
        aside = self.asides.get(peer)
        problem = "routes are told by neighbours in the tree, behind an introduction"
        if not self._acquaintances.hears(peer, problem):
            return
        if aside is None and not self._counts(peer):
            if peer in self._acquaintances.greeted:
                raise ProtocolError(problem)
            return  # by an older map, which it has, it is one
        if aside is None and peer not in self.router.neighbours:
            self._hear_old(peer, routes, out)
            return
        out.tell(RoutesHeard(peer, routes))
        telling = read(self._roster, self._roster.side(peer), routes)
        parts = self._parts.get(peer, Telling({}, {}))
        check_room(peer, self._told_by(peer), telling, parts)
        if routes.full:
            self._parts[peer] = parts
            parts.advertisements.update(telling.advertisements)
            parts.subscriptions.update(telling.subscriptions)
            if not routes.last:
                return
            telling = self._parts.pop(peer)
        if aside is not None:
            aside.hear(routes, telling)
            return
        self.heard.apply(peer, routes, telling, out)
        if routes.ticket:
            self.settling.ask(peer, routes.ticket)

    def _hear_old(self, peer: str, routes: Routes, out: Outbox) -> None:
        """Our link moves away from it, and new tells the same later: events that are still in its feed may come before
        that. So what it tells is known as from new until then; nothing is forgotten on its word."""
        network = self._roster.map
        match network.step:
            case Move(broker, old, new) if (broker, old) == (self._roster.name, peer):
                if new in self.router.neighbours and not self.heard.has_told_since_it_moved():
                    telling = read(self._roster, new, routes)
                    check_room(peer, self._told_by(new), telling)
                    self.heard.apply(new, Routes(full=True, complete=False), telling, out)
            case _:
                pass  # its word does not count any more

    def _counts(self, peer: str) -> bool:
        return peer in self.router.neighbours or peer in self._parted or self._roster.moves_with(peer)

    def _told_by(self, peer: str) -> Telling:
        return self.asides[peer].telling if peer in self.asides else self.heard.told_by(peer)

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        """What the neighbour itself told around a broken link; or what others told in the place of one that failed.

        Those know only their own side of it, and what they take back may hide what someone else on that side wants:
        nothing is forgotten on their word.
        """
        source, routes = detoured.source, detoured.message
        if not isinstance(routes, Routes):
            return  # events, which are not this part's affair
        if source not in self.router.neighbours or not knows_all(self._roster, routes):
            return  # from a tree that this broker does not have any more, or does not have yet
        telling = read(self._roster, source, routes)
        if routes.full and not routes.last:
            raise ProtocolError("what is told by a detour comes in one part")
        if source != detoured.sender:
            routes = Routes(routes.advertisements, routes.subscriptions, full=True, complete=False)
        if not self.teller.is_direct(source):
            self.heard.apply(source, routes, telling, out)

    def on_settled(self, peer: str, settled: Settled, out: Outbox) -> None:
        self._done += self.settling.answered(peer, settled.ticket)
        if self._answers is not None and peer in self.router.neighbours:
            self._answers.answered(self.router, peer, settled.ticket)
            self.heard.look_at_answers(peer, out)

    # ----------------------------------------------------------------------------------- neighbours that change
    def set_aside(self, peer: str, aside: Aside | None) -> None:
        """What a broker tells that is no neighbour in the tree is kept there; None: it tells nothing any more."""
        if aside is None:
            self.asides.pop(peer, None)
        else:
            self.asides[peer] = aside

    def expect_word(self, peer: str) -> None:
        """A broker is about to be a neighbour: what it tells is kept aside."""
        if peer not in self.prospects:
            self.prospects[peer] = self.asides[peer] = Prospect()

    def take_word(self, peer: str, out: Outbox) -> None:
        """Nothing is kept aside any more. If it has come to be a neighbour in another way, what it has told counts: it
        does not tell it again."""
        prospect = self.prospects.pop(peer, None)
        if prospect is not None:
            del self.asides[peer]
        if prospect is not None and prospect.has_told and peer in self.router.neighbours:
            self.heard.apply(peer, Routes(full=True, complete=prospect.is_complete), prospect.telling, out)
            for ticket in prospect.tickets:
                self.settling.ask(peer, ticket)

    def keep_near(self, out: Outbox) -> None:
        """The disk knows who the neighbours are now, before the first change."""
        if self._level.buffers and self._store.near is None:
            self._keep({}, None, out)

    def keep_stage(self, stage: MoveStage | None, out: Outbox) -> None:
        self._keep({}, stage, out)

    def _keep(self, moved: dict[str, str], stage: MoveStage | None, out: Outbox) -> None:
        if self._level.buffers:
            self._store.change(NeighboursChanged(list(self.router.neighbours), moved, stage), out)

    def welcome(
        self,
        peer: str,
        via: str,
        unanswered: Container[str],
        since: Container[str],
        stage: MoveStage,
        out: Outbox,
    ) -> None:
        """A prospect becomes a neighbour, with all that it has told. It was beyond the neighbour `via` before: of what
        that one answered, it has answered its part. Of what came from there itself, all but what is `unanswered`; what
        came after `since` it has not heard."""
        prospect, router = self.prospects.pop(peer), self.router
        del self.asides[peer]
        router.add_neighbour(peer)
        router.merge(peer, *prospect.telling)
        if self._answers is not None:
            answers, theirs = self._answers, router.advertisements.by_source[via]

            def is_answered(entry: str, filter: Filter) -> bool:
                if entry in theirs:
                    return entry in since and str(filter) not in unanswered
                return answers.is_answered(router, via, entry)

            answers.add(router, peer, is_answered, prospect.is_complete)
            told = Routes(full=True, complete=prospect.is_complete)
            self._store.told(peer, told, prospect.telling, out)
        self._keep({}, stage, out)
        if not prospect.is_complete:
            self._awaited.await_too(peer)
        self.heard.refresh(peer, out)
        self.teller.add(peer, is_paused=True)
        self.settling.hold_too(peer, via)
        for ticket in prospect.tickets:  # with what the others are told of it in this turn
            self.settling.ask(peer, ticket)

    def greet_prospect(self, peer: str, via: str, out: Outbox) -> None:
        """Tells one that was welcomed everything. What the neighbour `via` told of its side counts no more: that one
        may not have told everything anew. What is only in that, since whoever advertised it has gone, goes as if the
        welcomed one took it back: behind the events under it, and not told to where it came from."""
        router, beyond = self.router, self._roster.will_be_beyond
        advertised = [entry for entry in router.advertisements.by_source[via] if beyond(broker_of(entry), peer)]
        wanted = [entry for entry in router.subscriptions.by_source[via] if beyond(broker_of(entry), peer)]
        told, known = router.advertisements.by_source[via], router.advertisements.by_source[peer]
        old = {entry: told[entry] for entry in advertised if entry not in known}
        if old:
            self.heard.apply(peer, Routes(), Telling(old, {}), out)
        if advertised or wanted:
            self.heard.apply(via, Routes(unadvertised=advertised, unsubscribed=wanted), Telling({}, {}), out)
        if old:
            self.heard.apply(peer, Routes(unadvertised=list(old)), Telling({}, {}), out)
        self.teller.tell_anew(peer, out)

    def join(self, peer: str, out: Outbox) -> None:
        """A new broker is a neighbour: it has no clients that anyone knew of, so that it wants nothing before it says
        so. It is to be told with `speak_up`."""
        self.router.add_neighbour(peer)
        if self._answers is not None:
            self._answers.add(self.router, peer, lambda entry, filter: True)
        self._keep({}, None, out)
        self.heard.refresh(peer, out)
        self.teller.add(peer, is_paused=True)

    def learn_from(self, peer: str, out: Outbox) -> None:
        """A neighbour of a broker whose place is ours now: it has told that one what is on its side, and nothing here.
        It is told in words of its own."""
        self.router.add_neighbour(peer)
        if self._answers is not None:
            self._answers.add(self.router, peer, lambda entry, filter: False, is_complete=False)
        self._keep({}, None, out)
        if self._level.refreshes:
            self._awaited.await_too(peer)
        self.heard.refresh(peer, out)
        self.teller.add(peer, is_paused=True)

    def take_place(self, old: str, new: str, stage: MoveStage | None, out: Outbox) -> None:
        """All that is beyond one neighbour is beyond another from now on, which may be one already."""
        was_near = new in self.router.neighbours
        self.router.rewrite(old, new)
        if self._answers is not None:
            if was_near:
                self._answers.merge(self.router, old, new)
                self._store.keep_answers(self._answers.take_changed(), out)
            else:
                self._answers.rename(old, new)
        self._keep({old: new}, stage, out)
        self._done = [question for question in self._done if question[0] != old]  # it has not heard what belongs to it
        self._awaited.move(old, new)
        self.heard.refresh(new, out)
        self._parted[old] = None
        self.teller.take_place(old, new, out)

    def split(self, old: str, new: str, out: Outbox) -> None:
        """A part of what was beyond one neighbour is beyond a new one: what the first told of that, the new one has
        told. There may be more, and until it has answered, it counts as wanting everything. It is to be told with
        `speak_up`, when the first is gone."""
        roster, router = self._roster, self.router
        tables = (router.advertisements.by_source[old], router.subscriptions.by_source[old])
        telling = Telling(
            *({entry: of[entry] for entry in of if roster.side_of(broker_of(entry)) == new} for of in tables)
        )
        router.add_neighbour(new)
        router.merge(new, *telling)
        if self._answers is not None:
            self._answers.add(router, new, lambda entry, filter: False, is_complete=False)
            self._store.told(new, Routes(full=True, complete=False), telling, out)
        self._keep({}, None, out)
        if self._level.refreshes:
            self._awaited.await_too(new)
        self.heard.refresh(new, out)
        self.teller.add(new, is_paused=True)

    def share(self, old: str, new: str, out: Outbox) -> None:
        """The same where the first one stays a neighbour: what is beyond the new one is so no more beyond that one."""
        self.split(old, new, out)
        tables = (self.router.advertisements.by_source[old], self.router.subscriptions.by_source[old])
        advertised, wanted = ([entry for entry in of if self._roster.side_of(broker_of(entry)) == new] for of in tables)
        self.heard.apply(old, Routes(unadvertised=advertised, unsubscribed=wanted), Telling({}, {}), out)

    def has_heard(self, peer: str) -> bool:
        """Whether a neighbour was told all that there is, over the link that it has: events may go there."""
        return self.teller.speaks_to(peer) and peer not in self.teller.lacking

    def keep_quiet(self, peer: str) -> None:
        """It is told nothing, until `speak_up`."""
        self.teller.pause(peer)

    def speak_up(self, peer: str, out: Outbox) -> None:
        """It is told everything, if it was told nothing for a while."""
        self.teller.go_on(peer, out)

    def leave(self, peer: str, out: Outbox) -> None:
        """It is no neighbour any more, and nobody takes its place. What it has published may still wait for others, and
        those who want it are not to be forgotten before: its advertisements go when those have passed, as any do."""
        self._done += self.settling.lost(peer)
        left = [self._local.advertise(filter) for filter in broadest(self.router.advertisements.by_source[peer])]
        if self._answers is not None:
            self._answers.drop(self.router, peer)
        self.router.remove_neighbour(peer)
        for entry in left:
            self._local.unadvertise(entry)
        self._keep({}, None, out)
        self._parted[peer] = None
        self.teller.drop(peer)
        self.heard.learned(peer, out)

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
        for peer in self.router.neighbours:
            self.teller.tell_again(peer, out)
            if self.heard.silence(peer, out) > self._settings.expire:
                self.router.replace(peer, {}, {})

    def finish(self, out: Outbox) -> None:
        """Tells neighbours what has changed in this turn."""
        router = self.router
        if router.postponed:
            router.release()
        if router.changed or self.teller.view_changed:
            self.teller.finish(out)
        if self._answers is not None and self._answers.changed:
            self._store.keep_answers(self._answers.take_changed(), out)
        if self._done or self.settling.is_due:
            self._say_settled(out)
        if router.changed:
            out.tell(TablesChanged(tuple(router.changed)))
            self._local.note_changes(self._settings.name, out)

    def _say_settled(self, out: Outbox) -> None:
        """At the turn's end, behind what the same turn told: who hears that all is told has heard all of it. A
        neighbour that is told nothing for now hears of it when it has been."""
        done, self._done = self._done + self.settling.finish(), []
        for source, ticket in done:
            if source == LOCAL:
                continue
            if self.teller.speaks_to(source):
                out.send(source, Settled(ticket), after=self.teller.after)
            elif source in self._acquaintances:
                self._done.append((source, ticket))
        if own := [ticket for source, ticket in done if source == LOCAL]:
            out.tell(TicketsSettled(own))

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
