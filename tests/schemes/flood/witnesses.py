"""The part of a broker that says to other brokers' clients what of theirs has come here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from tests.schemes.flood.messages import AskWitness, FindWitness, Witnessed, WitnessFound
from tests.schemes.flood.settings import FloodSettings

CLIENTS = frozenset({Role.CLIENT})


class Witnesses(Part):
    name: ClassVar[str] = "witnesses"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {FindWitness: CLIENTS, AskWitness: CLIENTS}

    def __init__(self, settings: FloodSettings) -> None:
        self._settings = settings
        self._seen: dict[str, tuple[int, int]] = {}  # publisher → its last event

    def see(self, batch: EventBatch) -> None:
        """These events are stored here, as soon as the turn is."""
        for event in batch.events:
            self._seen[event.publisher] = (event.incarnation, event.sequence)

    def on_find_witness(self, peer: str, message: FindWitness, out: Outbox) -> None:
        near = next(iter(self._settings.near.values()), None)
        out.send(peer, WitnessFound("" if near is None else near.client_address))

    def on_ask_witness(self, peer: str, message: AskWitness, out: Outbox) -> None:
        out.send(peer, Witnessed(*self._seen.get(peer.partition(":")[2], (0, 0))))
