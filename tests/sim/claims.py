"""What a broker claims of its disk is on it, at the moment at which the claim leaves.

The watch follows what becomes safe on each disk, and looks at every message that leaves a durable broker: how far it
says that it has stored a neighbour's feed, in an introduction or an acknowledgement (D1-A11); that it knows what it was
advertised, in an answer to a telling (D1-B4.1); how far it has answered a publisher; how far it is in a move of a link;
and which map of the network it has made. No power cut is needed for a false claim to be seen.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from holdfast.codec import Registry
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.kernel.queues import Queued
from holdfast.protocols.core import commands
from holdfast.protocols.routing.messages import (
    AcknowledgeEvents,
    EventsStored,
    Introduction,
    MapAdopted,
    MoveSaid,
    MoveStage,
    MoveWord,
    NeighboursChanged,
    NetworkMapTold,
    Routes,
    RoutesTold,
    Settled,
    TableState,
)
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.sessions.messages import Accepted, SessionOpened
from holdfast.schemes.tree.mapping import Mapping
from holdfast.sim.disk import Disk
from holdfast.sim.machine import Machine
from holdfast.sim.network import End
from holdfast.sim.run import Factories
from holdfast.sim.simulation import Simulation

# What a broker is at that says a word. How far the others are that say the rest, they say again.
STAGES: Final = {
    MoveWord.ENDED: (MoveWord.ENDED,),
    MoveWord.TAKEN: (MoveWord.TAKEN, MoveWord.READY),
    MoveWord.REWRITTEN: (MoveWord.REWRITTEN,),
    MoveWord.CLOSED: (MoveWord.REWRITTEN,),
    MoveWord.READY: (MoveWord.READY,),
}


class ReadDisk(Disk):
    """Knows what it holds for sure."""

    def __init__(self, records: Registry[Record], rng: Random, sync_us: tuple[int, int] = (100, 5_000)) -> None:
        super().__init__(records, rng, sync_us)
        self.stored: dict[str, tuple[str, int]] = {}  # neighbour → its feed, and how far that is here
        self.accepted: dict[str, int] = {}  # client → how far its publications are here, in any of its sessions
        self.advertised: dict[str, set[str]] = {}  # neighbour → advertisements that it told
        self.stage: MoveStage | None = None  # of a move, how far its broker is
        self.map = 0  # the number of the network's

    def _carry_out(self, operation: Append | Snapshot | Truncate) -> None:
        super()._carry_out(operation)
        record = None if isinstance(operation, Truncate) else operation.record
        if isinstance(record, EventsStored):
            self.stored = dict(record.stored)
        elif isinstance(record, RoutesTold):
            routes, known = record.routes, self.advertised.setdefault(record.source, set())
            if routes.full and routes.complete:
                known.clear()
            known |= {entry for entry, _ in routes.advertisements}
            known -= {*routes.unadvertised}
        elif isinstance(record, TableState):
            self.advertised = {
                peer: {entry for entry, _ in advertisements} for peer, (advertisements, _) in record.told.items()
            }
            self.stage = record.stage
        elif isinstance(record, NeighboursChanged):
            for old, taker in record.moved.items():
                self.advertised.setdefault(taker, set()).update(self.advertised.get(old, ()))
            self.advertised = {peer: known for peer, known in self.advertised.items() if peer in record.near}
            self.stage = record.stage
        elif isinstance(record, MapAdopted):
            self.map = record.map.number
        elif isinstance(record, commands.Applied):
            for command in record.commands:
                if isinstance(command, commands.Publish):
                    last = command.first + len(msgspec.msgpack.decode(command.events)) + command.skipped - 1
                    self.accepted[command.client] = max(self.accepted.get(command.client, 0), last)

    def wipe(self) -> None:
        super().wipe()
        self.stored, self.accepted, self.advertised = {}, {}, {}
        self.stage, self.map = None, 0

    def has_stored(self, peer: str, feed: str, number: int) -> bool:
        return number == 0 or (peer in self.stored and self.stored[peer][0] == feed and number <= self.stored[peer][1])


class ClaimsWatched(Simulation):
    """Raises InvariantBroken in the step in which a false claim leaves."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Sender and receiver → advertisements of a telling that is not at its end; and of whole ones, by their tickets.
        self._telling: dict[tuple[str, str], list[str]] = {}
        self._told: dict[tuple[str, str, int], list[str]] = {}

    def note_hops(self, host: Machine, end: End, entries: list[Queued]) -> None:
        super().note_hops(host, end, entries)
        if isinstance(host.disk, ReadDisk):
            for entry in entries:
                if isinstance(entry.message, Routes):
                    self._follow(host.name, end.peer, entry.message)
                self._check(host, host.disk, end, entry.message)

    def _follow(self, sender: str, receiver: str, routes: Routes) -> None:
        advertisements = self._telling.setdefault((sender, receiver), [])
        advertisements += [entry for entry, _ in routes.advertisements]
        if routes.last:
            self._told[sender, receiver, routes.ticket] = advertisements
            del self._telling[sender, receiver]

    def _check(self, host: Machine, disk: ReadDisk, end: End, message: Message) -> None:
        told = {"broker": host.name, "to": end.peer, "message": message}
        match message:
            case Introduction(stored=number) if number:
                claim = "what an introduction says is stored is on the disk"
                require(disk.has_stored(end.peer, message.stored_feed, number), claim, **told)
            case AcknowledgeEvents(number=number) if self._stores(host):
                theirs = end.other.station
                feed = theirs.disk.log_id if isinstance(theirs, Machine) and theirs.disk is not None else ""
                # Who is gone may have a new disk already, and hears nothing.
                heard = isinstance(theirs, Machine) and theirs.running
                is_there = not heard or disk.has_stored(end.peer, feed, number)
                require(is_there, "what is acknowledged is on the disk", **told)
            case Settled(ticket=ticket) if self._stores(host):
                known, on_disk = self._advertisements(host, end.peer), disk.advertised.get(end.peer, set())
                missing = [e for e in self._told.get((end.peer, host.name, ticket), ()) if e in known - on_disk]
                require(not missing, "advertisements that are answered are on the disk", missing=missing, **told)
            case MoveSaid(number=number, word=word) if word in STAGES and self._stores(host):
                stage = disk.stage
                is_there = stage is not None and stage.number == number and stage.word in STAGES[word]
                require(is_there or disk.map > number, "the stage of a move is on the disk", stage=stage, **told)
            case NetworkMapTold(map=map) if self._has_made(host, map.number):
                require(disk.map >= map.number, "a map is on the disk of who made it", on_disk=disk.map, **told)
            case Accepted(sequence=number) | SessionOpened(accepted=number) if number:
                require(number <= disk.accepted.get(end.peer, 0), "what is answered is on the disk", **told)

    @staticmethod
    def _advertisements(host: Machine, peer: str) -> set[str]:
        """What the broker knows that a neighbour advertises, and has not taken back: what goes when the events under it
        have passed is gone from the disk already."""
        (part,) = [part for part in getattr(host.node, "parts", ()) if isinstance(part, Neighbours)]
        going = {entry for source, entry in part.router.postponed if source == peer}
        known = part.router.advertisements.by_source.get(peer, ())  # nothing of who is no neighbour any more
        return set(known) - going

    @staticmethod
    def _has_made(host: Machine, number: int) -> bool:
        return any(part._roster.made == number for part in getattr(host.node, "parts", ()) if isinstance(part, Mapping))

    @staticmethod
    def _stores(host: Machine) -> bool:
        """Whether the broker's level stores events before it acknowledges them."""
        parts = getattr(host.node, "parts", ())
        return any(getattr(part, "_store", None) is not None for part in parts if part.name == "forwarding")


def claims_watched(factories: Factories | None = None) -> Factories:
    return msgspec.structs.replace(factories or Factories(), simulation=ClaimsWatched, disk=ReadDisk)
