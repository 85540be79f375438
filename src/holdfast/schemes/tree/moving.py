"""A link of the tree moves: what the three brokers say to each other, so that nothing is lost, doubled or overtaken.

The *broker*'s link to *old* becomes one to *new*, a neighbour of old. Events go on meanwhile. The word goes round once,
each time behind the events that it speaks of (`MoveWord`):

1. The broker counts all that was beyond old as beyond new, and says that its feed to old has ENDED. What it has for
   new waits.
2. Old, when it has that feed to its end, says to new that all of it has PASSED.
3. New, when it has that, and all that the broker has to tell: the broker is its neighbour. It says so to old (TAKEN),
   and keeps back what it has for old until old has heard it, and what it has for the broker.
4. Old, when it has all that new had for it until then: it counts all that was beyond the broker as beyond new
   (REWRITTEN), and says to the broker that its feed has CLOSED.
5. New goes on with old, tells the broker everything, and says so (READY).
6. The broker, when it has old's feed to its end, makes the next map, in which the link has moved. When a broker hears
   of that, it lets go what it kept back.

So of the events of one publisher none overtakes another on the new way, and none comes by both ways. A word is said
again on each new link until it is answered. Where the level buffers, the stage is on the disk when a word leaves; a
broker that has forgotten begins again with what the others say. While one of the three is down, the move waits.

A broker that leaves, a leaf, sends its clients elsewhere, and says to its neighbour when nothing waits there (EMPTY);
that one makes the map without it, so that the map is with someone who stays.
"""

from __future__ import annotations

from collections.abc import Mapping as Fields
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import After, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.messages import NUMBER_MAX, MoveSaid, MoveStage, MoveWord
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.network_map import Learn, Leave, Move, NetworkMap, done
from holdfast.protocols.routing.notices import FeedsRecovered, LinkMoved, MapChanged, NeighbourAccepted
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.mapping import Mapping
from holdfast.topology.graph import SpanningTree

BROKERS: Final = frozenset({Role.BROKER})
UNANSWERED_MAX: Final = 100_000  # filters in one word


class MoveWords(Part):
    """What is to be said of a move, behind `Forwarding`: a word may leave when the disk has what it speaks of."""

    name: ClassVar[str] = "words"
    due = False

    def __init__(self, after: After) -> None:
        self._after = after
        self._words: list[tuple[str, MoveSaid]] = []

    def say(self, to: str, said: MoveSaid) -> None:
        self._words.append((to, said))
        self.due = True

    def finish(self, out: Outbox) -> None:
        self.due = False
        words, self._words = self._words, []
        for to, said in words:
            if to in out.queues:  # or it has no link any more, and hears it on the next one
                out.send(to, said, after=self._after)


class Moving(Part):
    """Before `Neighbours`, which tells what comes of it."""

    name: ClassVar[str] = "moving"
    messages: ClassVar[Fields[type[Message], frozenset[Role]]] = {MoveSaid: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (MapChanged, FeedsRecovered, NeighbourAccepted)

    def __init__(
        self,
        roster: Roster,
        mapping: Mapping,
        links: Links,
        neighbours: Neighbours,
        forwarding: Forwarding,
        answers: Answers | None,
        words: MoveWords,
        stage: MoveStage | None,
    ) -> None:
        self._name = roster.name
        self._roster = roster
        self._mapping = mapping
        self._links = links
        self._neighbours = neighbours
        self._router = neighbours.router
        self._forwarding = forwarding
        self._answers = answers
        self._stage = stage  # the last word of ours
        self._heard: dict[MoveWord, MoveSaid] = {}  # of the others, in this move
        self._known: dict[str, None] = {}  # advertisements from old's side when it said PASSED
        self._words = words
        self._moved_total = 0
        self.due = False

    # ------------------------------------------------------------------------------------------------------- the map
    def on_feeds_recovered(self, recovered: FeedsRecovered, out: Outbox) -> None:
        """The broker starts, and goes on where the disk says that it was."""
        stage, move = self._stage, self._roster.map.step
        if stage is not None and isinstance(move, Move) and stage.number == self._roster.map.number:
            self._resume(stage, move, out)
        else:
            self._stage = None
            self._reconcile(None, None, out)
        self._begin()

    def _resume(self, stage: MoveStage, move: Move, out: Outbox) -> None:
        forwarding, neighbours = self._forwarding, self._neighbours
        if stage.word is not MoveWord.PASSED:
            self._route_anew(out)
        match stage.word:
            case MoveWord.ENDED:
                forwarding.stay_suspended(move.new)
                forwarding.keep(move.old, out)
                forwarding.stay_suspended(move.old, stage.through)
                forwarding.move(move.old, move.new, out)  # what the disk may not have moved
                forwarding.end(move.old, move.new)
            case MoveWord.REWRITTEN:
                forwarding.keep(move.broker, out)
                forwarding.stay_suspended(move.broker, stage.through)
                forwarding.end(move.broker, move.new)
            case MoveWord.TAKEN:
                forwarding.stay_suspended(move.old, stage.through)
                forwarding.stay_suspended(move.broker)
                neighbours.keep_quiet(move.old)
                neighbours.keep_quiet(move.broker)
            case MoveWord.READY:
                forwarding.stay_suspended(move.broker)
            case _:
                pass

    def _route_anew(self, out: Outbox) -> None:
        """Events go here as they will when the link has moved."""
        self._roster.move_on()
        out.tell(LinkMoved())

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        stage, before = self._stage, changed.before
        self._stage, self._heard = None, {}
        move = before.step
        if stage is not None and isinstance(move, Move) and self._roster.map == done(before):
            self._moved(move, out)
        self._reconcile(before, stage, out)
        if isinstance(move, Move):
            self._neighbours.take_word(move.broker, out)
        self._begin()

    def _begin(self) -> None:
        self._known = {}
        match self._roster.map.step:
            case Move(broker, old, new):
                self.due = self._name in (broker, old, new)
                if self._name == new and broker not in self._router.neighbours:
                    self._neighbours.expect_word(broker)
            case Leave(broker):
                self.due = self._name in (broker, self._roster.map.maker)
            case _:
                self.due = False

    def _moved(self, move: Move, out: Outbox) -> None:
        """The move is done: what was kept back goes, and what has ended is given up."""
        if self._name == move.broker:
            self._forwarding.drop(move.old, out)
            self._forwarding.go_on(move.new, out)
        elif self._name == move.old:
            self._forwarding.drop(move.broker, out)
        elif self._name == move.new:
            self._forwarding.go_on(move.broker, out)
        self._moved_total += 1

    # ------------------------------------------------------------------------------------------------------ reconciling
    def _reconcile(self, before: NetworkMap | None, stage: MoveStage | None, out: Outbox) -> None:
        """Brings the neighbours to what the map says, where no move has done so: brokers that have joined or left; and
        whoever stands where one was that is lost, with what waited for that one. A broker that is replaced keeps what
        it had stored for its neighbours until it has its place back (D0-F6)."""
        has_left = before is not None and before.step == Leave(self._name, True, self._roster.map.stand_in(self._name))
        if self._roster.is_replaced and self._answers is not None and not has_left:
            return
        wanted = self._roster.near
        # What has ended is older than what was put into other feeds since then, and goes first.
        feeds, near = self._forwarding.feeds, self._router.neighbours
        besides = {*self._roster.besides, *(() if before is None else [beside.name for beside in before.besides])}
        ended = [peer for peer in (*feeds, *feeds.aside) if peer not in near and peer not in besides]
        gone = [peer for peer in (*ended, *near) if peer not in wanted]
        fresh = [peer for peer in wanted if peer not in self._router.neighbours]
        for peer in gone:
            takers = self._takers(peer, before, stage) if before is not None else fresh
            self._give_over(peer, takers, out)
        if before is not None:
            self._share(before, stage, out)
        for peer in wanted:
            if peer not in self._router.neighbours:
                self._join(peer, out)
            self._forwarding.go_on(peer, out)
            self._neighbours.speak_up(peer, out)
        self._forwarding.forget_gone()

    def _sides(self, tree: SpanningTree, before: NetworkMap) -> dict[str, list[str]]:
        """By neighbour in a tree of the map before: those that are beyond it, and are members still."""
        roster, sides = self._roster, dict[str, list[str]]()
        if roster.is_member and before.find(self._name) is not None and before.shares(self._name) is None:
            apart = {beside.name for beside in before.besides}
            for member in roster.map.names:
                if member not in (self._name, *apart) and before.find(member) is not None:
                    sides.setdefault(tree.next_hop(self._name, member), []).append(member)
        return sides

    def _takers(self, gone: str, before: NetworkMap, stage: MoveStage | None) -> list[str]:
        """Those by whom all is reached now that was beyond a neighbour when events were put into its feed."""
        if not self._roster.is_member:
            return []
        if before.find(self._name) is None:
            return list(self._roster.near)[:1]  # it is back, and what it had stored is late
        move, word = before.step, None if stage is None else stage.word
        tree = _routed(before, stage)
        match move:
            case Move(broker, old, _) if (self._name, gone) in ((broker, old), (old, broker)):
                tree = before.spanning_tree  # its feed has ended, and nothing was put into it since
            case Move(_, old, new) if (self._name, gone) == (new, old) and word is MoveWord.TAKEN:
                tree = before.spanning_tree  # what old has not taken in may be for the broker, too
            case _:
                pass
        stand_in = self._roster.map.stand_in(gone)
        if stand_in in self._roster.near:
            return [stand_in]
        beyond = self._sides(tree, before).get(gone, [])
        if not beyond and gone not in tree.neighbours(self._name):
            beyond = [gone] if self._roster.map.find(gone) is not None else list(self._roster.near)[:1]
        return list(dict.fromkeys(self._roster.side_of(member) for member in beyond))

    def _give_over(self, gone: str, takers: list[str], out: Outbox) -> None:
        is_near = gone in self._router.neighbours
        for taker in takers:
            self._forwarding.keep(taker, out)
            if is_near and len(takers) > 1 and taker not in self._router.neighbours:
                self._neighbours.split(gone, taker, out)
        if takers:
            # Before what is held back for one of them since the link began to move: that was published later.
            *others, last = sorted(takers, key=lambda taker: self._forwarding.feeds[taker].is_suspended)
            for taker in others:
                self._forwarding.copy_all(gone, taker)
            if last == self._roster.map.stand_in(gone) and self._answers is None:
                self._forwarding.move(gone, last, out)  # what was sent and is not stored is lost with it (D0-F5)
            else:
                self._forwarding.move_all(gone, last, out)
        if is_near and len(takers) == 1:
            self._neighbours.take_place(gone, takers[0], None, out)
            self._neighbours.heard.forget_elsewhere(takers[0], out)
        elif is_near:
            self._neighbours.leave(gone, out)
        self._forwarding.drop(gone, out)

    def _share(self, before: NetworkMap, stage: MoveStage | None, out: Outbox) -> None:
        """A move that is over where it stood leaves neighbours beyond whom some are no more, since their ways lead by
        others now: those get what waits for them there, too."""
        for peer, members in self._sides(_routed(before, stage), before).items():
            if peer not in self._router.neighbours:
                continue
            for side in dict.fromkeys(self._roster.side_of(member) for member in members):
                if side != peer:
                    self._forwarding.keep(side, out)
                    if side not in self._router.neighbours:
                        self._neighbours.share(peer, side, out)
                    self._forwarding.copy_all(peer, side)

    def _join(self, peer: str, out: Outbox) -> None:
        if peer in self._router.neighbours:
            return
        self._forwarding.keep(peer, out)
        match self._roster.map.step:
            case Learn(broker) if broker == self._name:
                self._neighbours.learn_from(peer, out)
            case _:
                self._neighbours.join(peer, out)

    # --------------------------------------------------------------------------------------------------------- words
    def on_move_said(self, peer: str, said: MoveSaid, out: Outbox) -> None:
        move, network = self._roster.map.step, self._roster.map
        if not self._links.acquaintances.hears(peer, "of a move is spoken behind an introduction"):
            return
        if not 0 <= said.through <= NUMBER_MAX or len(said.unanswered) > UNANSWERED_MAX:
            raise ProtocolError(f"in MoveSaid, {said.through} events or {len(said.unanswered)} filters can't be meant")
        if said.number != network.number or move is None:
            return  # of one that is over; or of one that is not known here yet, and is said again
        if (peer, self._name) != _way(said.word, network):
            raise ProtocolError(f"{said.word.value} is not for {peer} to say to {self._name}")
        self._heard[said.word] = said
        if said.word is MoveWord.PASSED:
            self._known = dict.fromkeys(self._router.advertisements.by_source[peer])

    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        """There is a new link: what was said on the one before may not have come."""
        move, stage, peer = self._roster.map.step, self._stage, accepted.peer
        if stage is not None and stage.word is MoveWord.EMPTY:
            self._stage = None  # it is said again, if it is still so
        if stage is None or not isinstance(move, Move):
            return
        match stage.word:
            case MoveWord.ENDED if peer == move.old:
                self._say(peer, MoveWord.ENDED, self._forwarding.progress.sent_through(peer))
            case MoveWord.PASSED if peer == move.new:
                self._say_passed(move)
            case MoveWord.REWRITTEN if peer == move.new:
                self._say(peer, MoveWord.REWRITTEN)
            case MoveWord.REWRITTEN if peer == move.broker:
                self._say(peer, MoveWord.CLOSED, self._forwarding.progress.sent_through(peer))
            case MoveWord.TAKEN if peer == move.old:
                self._say(peer, MoveWord.TAKEN, self._forwarding.progress.sent_through(peer))
            case MoveWord.READY if peer == move.old:  # which may have forgotten that it had rewritten its tables
                self._say(peer, MoveWord.TAKEN, self._forwarding.progress.sent_through(peer))
            case MoveWord.READY if peer == move.broker:
                self._say(peer, MoveWord.READY)
            case _:
                pass

    def _say(self, to: str, word: MoveWord, through: int = 0, unanswered: list[str] | None = None) -> None:
        """At the end of the turn, behind all that the disk has to know first."""
        self._words.say(to, MoveSaid(self._roster.map.number, word, through, unanswered or []))

    def _has_come(self, word: MoveWord, peer: str) -> bool:
        """Whether a peer has said it, and all that it spoke of is here."""
        said = self._heard.get(word)
        return said is not None and self._forwarding.progress.taken_in(peer) >= said.through

    # ---------------------------------------------------------------------------------------------------- going on
    def finish(self, out: Outbox) -> None:
        match self._roster.map.step:
            case Move() as move if self._name == move.broker:
                self._go_on_as_broker(move, out)
            case Move() as move if self._name == move.old:
                self._go_on_as_old(move, out)
            case Move() as move if self._name == move.new:
                self._go_on_as_new(move, out)
            case Leave(broker) if self._name == broker:
                self._leave()
            case Leave(broker) if self._name == self._roster.map.maker and self._has_come(MoveWord.EMPTY, broker):
                self._mapping.make(done(self._roster.map), out)
            case _:
                pass

    def _keep(self, word: MoveWord, through: int = 0) -> MoveStage:
        self._stage = MoveStage(self._roster.map.number, word, through)
        return self._stage

    def _go_on_as_broker(self, move: Move, out: Outbox) -> None:
        number = self._roster.map.number
        if self._stage is None:
            met = self._links.has_map(move.old, number) and self._links.has_map(move.new, number)
            if met and self._forwarding.reaches(move.new):
                self._forwarding.keep(move.new, out)
                self._forwarding.suspend(move.new)
                through = self._forwarding.move(move.old, move.new, out)
                self._forwarding.end(move.old, move.new)
                stage = self._keep(MoveWord.ENDED, self._forwarding.progress.heard_through(move.old))
                self._neighbours.take_place(move.old, move.new, stage, out)
                self._route_anew(out)
                self._say(move.old, MoveWord.ENDED, through)
        elif MoveWord.READY in self._heard and self._has_come(MoveWord.CLOSED, move.old):
            out.report("link-moved", Level.INFO, broker=move.broker, old=move.old, new=move.new)
            self._mapping.make(done(self._roster.map), out)

    def _go_on_as_old(self, move: Move, out: Outbox) -> None:
        word = None if self._stage is None else self._stage.word
        has_ended = self._has_come(MoveWord.ENDED, move.broker)
        if word is None and has_ended and self._links.has_map(move.new, self._roster.map.number):
            self._keep(MoveWord.PASSED)
            self._say_passed(move)
        elif word is MoveWord.PASSED and self._has_come(MoveWord.TAKEN, move.new):
            through = self._forwarding.progress.put_through(move.broker)
            self._forwarding.end(move.broker, move.new)
            stage = self._keep(MoveWord.REWRITTEN, self._forwarding.progress.heard_through(move.broker))
            self._neighbours.take_place(move.broker, move.new, stage, out)
            self._route_anew(out)
            self._say(move.new, MoveWord.REWRITTEN)
            self._say(move.broker, MoveWord.CLOSED, through)

    def _say_passed(self, move: Move) -> None:
        unanswered = [] if self._answers is None else self._answers.unanswered(self._router, move.broker)
        self._say(move.new, MoveWord.PASSED, self._forwarding.progress.put_through(move.new), unanswered)

    def _go_on_as_new(self, move: Move, out: Outbox) -> None:
        prospect = self._neighbours.prospects.get(move.broker)
        word = None if self._stage is None else self._stage.word
        if word is None and prospect is not None and prospect.has_told and self._forwarding.reaches(move.broker):
            # What is in the feed to old has to get there before that one is told anything more.
            if self._has_come(MoveWord.PASSED, move.old) and self._neighbours.has_heard(move.old):
                self._take(move, out)
            elif MoveWord.REWRITTEN in self._heard:  # we had taken it, and have forgotten
                self._take(move, out)
                self._be_ready(move, out)
        elif word is MoveWord.TAKEN and MoveWord.REWRITTEN in self._heard:
            self._be_ready(move, out)
        elif word is MoveWord.READY and self._has_come(MoveWord.PASSED, move.old):
            del self._heard[MoveWord.PASSED]  # old had rewritten its tables, and has forgotten
            self._say(move.old, MoveWord.TAKEN, self._forwarding.progress.put_through(move.old))

    def _take(self, move: Move, out: Outbox) -> None:
        passed = self._heard.pop(MoveWord.PASSED, None)
        through = self._forwarding.progress.put_through(move.old)
        unanswered = frozenset(passed.unanswered) if passed is not None else frozenset[str]()
        self._forwarding.suspend(move.old)
        self._forwarding.keep(move.broker, out)
        self._forwarding.suspend(move.broker)
        stage = self._keep(MoveWord.TAKEN, self._forwarding.progress.heard_through(move.old))
        self._neighbours.welcome(move.broker, move.old, unanswered, self._known, stage, out)
        self._neighbours.keep_quiet(move.old)
        self._route_anew(out)
        self._say(move.old, MoveWord.TAKEN, through)

    def _be_ready(self, move: Move, out: Outbox) -> None:
        self._forwarding.go_on(move.old, out)
        self._neighbours.keep_stage(self._keep(MoveWord.READY), out)
        self._neighbours.speak_up(move.old, out)
        self._neighbours.greet_prospect(move.broker, move.old, out)
        self._say(move.broker, MoveWord.READY)

    def _leave(self) -> None:
        """Says that it may go, when nothing waits here that was published here, or came by here."""
        number, peer = self._roster.map.number, self._roster.map.maker
        if self._stage is None and self._links.has_map(peer, number) and self._forwarding.feeds[peer].is_idle:
            self._keep(MoveWord.EMPTY)
            self._say(peer, MoveWord.EMPTY, self._forwarding.progress.put_through(peer))

    def measure(self) -> dict[str, int]:
        return {"map_number": self._roster.map.number, "links_moved_total": self._moved_total}


def _routed(network: NetworkMap, stage: MoveStage | None) -> SpanningTree:
    """The tree that a broker routes by at a stage of its own of the step that is under way."""
    has_moved = isinstance(network.step, Move) and stage is not None and stage.word is not MoveWord.PASSED
    return done(network).spanning_tree if has_moved else network.spanning_tree


def _way(word: MoveWord, network: NetworkMap) -> tuple[str, str] | None:
    """Who says it to whom; None if nobody does now."""
    match network.step, word:
        case Move(broker, old, _), MoveWord.ENDED:
            return broker, old
        case Move(_, old, new), MoveWord.PASSED | MoveWord.REWRITTEN:
            return old, new
        case Move(_, old, new), MoveWord.TAKEN:
            return new, old
        case Move(broker, old, _), MoveWord.CLOSED:
            return old, broker
        case Move(broker, _, new), MoveWord.READY:
            return new, broker
        case Leave(broker), MoveWord.EMPTY:
            return broker, network.maker
        case _:
            return None
