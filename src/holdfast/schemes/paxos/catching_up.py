"""Catching up with those who are further: by decided values, or by a snapshot if those are forgotten (D4-B10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import HoldingsFetched
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.holdings import Holdings
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import AskDecided, AskSnapshot, Decided, ReplicaState, SnapshotPart
from holdfast.schemes.paxos.notices import PeerLost
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.transfer import IncomingSnapshot, pack


class Installing(Protocol):
    """Who executes what is decided."""

    def execute(self, out: Outbox) -> None:
        """Executes what can be."""
        ...

    def install(self, state: ReplicaState, out: Outbox) -> None:
        """Takes another's state in place of its own."""
        ...


class CatchingUp(Part):
    """Both sides of it: one asks those who are further, the others answer."""

    name: ClassVar[str] = "catching-up"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (AskDecided, Decided, AskSnapshot, SnapshotPart), REPLICAS
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (HoldingsFetched, PeerLost)

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        holdings: Holdings,
        learner: Installing,
        incoming: IncomingSnapshot,
    ) -> None:
        self._settings, self._peers = view.settings, view.peers
        self._formation, self._liveness = view.formation, view.liveness
        self._proposer, self._decided, self._snapshots = memory.proposer, memory.decided, memory.snapshots
        self._holdings, self._learner, self._incoming = holdings, learner, incoming
        self._incoming_from = ""
        self._complete: ReplicaState | None = None  # came in, and waits for what it speaks of
        self._outgoing: dict[str, ReplicaState] = {}  # snapshots that are being sent: each to its end
        self._due = False  # the timer is set

    @property
    def reached(self) -> tuple[int, int, int, int]:
        """How far this replica has come; the same twice is no progress."""
        return self._decided.executed, self._incoming.slot, self._incoming.offset, self._holdings.extent()[1]

    def on_peer_lost(self, lost: PeerLost, out: Outbox) -> None:
        self._outgoing.pop(lost.peer, None)

    def later(self, out: Outbox) -> None:
        """Others are further; what is under way may still come."""
        if not self._due:
            self._due = True
            out.set_timer((self.name, "behind"), self._settings.repeat_after)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._due = False
        leader = self._liveness.leader
        others = [leader] if leader else self._peers.heard  # without a leader anyone may be further
        further = max((self._liveness.executed.get(peer, 0) for peer in others), default=0)
        if not self._proposer.is_leading and further > self._decided.executed:
            self.ask(out)

    def ask(self, out: Outbox) -> None:
        """Asks someone who is further; a leader that has just been elected may be behind too."""
        executed, heard = self._decided.executed, self._peers.heard
        if self._complete is not None and self._complete.slot > executed:
            self.later(out)  # nothing is lacking but what it speaks of, which is under way
            return
        ahead = [peer for peer in heard if self._liveness.executed.get(peer, 0) > executed]
        target = self._liveness.leader if self._liveness.leader in heard else ""
        # A snapshot that we have got ahead of meanwhile is not wanted any more, nor one that its sender has not begun.
        begun = self._incoming_from if self._incoming.offset and self._incoming.slot > executed else ""
        for peer in [target] if target else ahead or list(heard):
            if self._formation.is_joining and peer != begun:
                out.send(peer, AskSnapshot(0, 0), after=NOW)  # what was decided before it was added is in no other form
            elif peer == begun:
                out.send(peer, AskSnapshot(self._incoming.slot, self._incoming.offset), after=NOW)
            else:
                out.send(peer, AskDecided(executed + 1), after=NOW)
        if not self._proposer.is_leading:
            self.later(out)

    # --------------------------------------------------------------------------------------------------------- values
    def on_ask_decided(self, peer: str, ask: AskDecided, out: Outbox) -> None:
        if not self._peers.hears(peer) or ask.first > self._decided.executed:
            return
        values = self._decided.read(ask.first, self._settings.part_bytes)
        known = self._decided.executed - ask.first + 1
        latest = self._snapshots.latest
        if values:
            out.send(peer, Decided(ask.first, values[:known], self._decided.executed), after=NOW)
            self._outgoing.pop(peer, None)
        elif latest is not None and latest.slot >= ask.first and self._holdings.is_whole():
            self._send_part(peer, latest, 0, out)

    def on_decided(self, peer: str, decided: Decided, out: Outbox) -> None:
        if not self._peers.hears(peer) or self._formation.is_joining:
            return
        for slot, value in enumerate(decided.values, decided.first):
            self._decided.decide(slot, value)
        before = self._decided.executed
        # Where nobody leads, this is all that tells how much there is to ask for.
        self._liveness.is_ahead(peer, decided.executed)
        self._learner.execute(out)
        if self._decided.executed > before and self._liveness.executed.get(peer, 0) > self._decided.executed:
            out.send(peer, AskDecided(self._decided.executed + 1), after=NOW)

    # ------------------------------------------------------------------------------------------------------ snapshots
    def on_ask_snapshot(self, peer: str, ask: AskSnapshot, out: Outbox) -> None:
        latest = self._snapshots.latest
        state = self._outgoing.get(peer, latest)
        if self._peers.hears(peer) and state is not None and self._holdings.is_whole():
            if ask.slot == state.slot:
                self._send_part(peer, state, ask.offset, out)
            elif latest is not None:
                self._send_part(peer, latest, 0, out)

    def _send_part(self, peer: str, state: ReplicaState, offset: int, out: Outbox) -> None:
        self._outgoing[peer] = state
        data = pack(state)
        part = data[offset : offset + self._settings.part_bytes]
        out.send(peer, SnapshotPart(state.slot, len(data), state.digest, offset, part), after=NOW)

    def on_snapshot_part(self, peer: str, part: SnapshotPart, out: Outbox) -> None:
        if not self._peers.hears(peer) or part.slot <= self._decided.executed:
            return
        before = (self._incoming.slot, self._incoming.offset)
        state = self._incoming.add(part)
        if state is None:
            if self._incoming.slot == part.slot:
                self._incoming_from = peer
                # A part that came twice is not answered twice, or the copies would become more and more.
                if before != (self._incoming.slot, self._incoming.offset):
                    out.send(peer, AskSnapshot(part.slot, self._incoming.offset), after=NOW)
            return
        self._complete = state
        if not self._holdings.fetch_first(state.state, out):
            self._take_over(True, out)

    def on_holdings_fetched(self, fetched: HoldingsFetched, out: Outbox) -> None:
        self._take_over(fetched.whole, out)

    def _take_over(self, whole: bool, out: Outbox) -> None:
        """What a state speaks of is here, or is to be fetched later; or nobody gave it: then another one may be had."""
        state, self._complete = self._complete, None
        if state is not None and state.slot > self._decided.executed:
            if whole:
                self._learner.install(state, out)
            if state.slot == self._decided.executed:
                self.ask(out)
            else:
                self.later(out)
