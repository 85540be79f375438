"""What a broker looks at before it takes a publication in, by whichever link; and where else its clients may go."""

from __future__ import annotations

from holdfast.errors import EventError, ProtocolError
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.sessions.messages import Publish


def check_publication(peer: str, message: Publish, answered: int, window: int) -> EventBatch:
    """The message's events. Raises ProtocolError for what no client of ours would say.

    The window begins where the client has seen answers: what is kept for it until then is bounded too.
    """
    try:
        batch = EventBatch.read(message.events)
    except EventError as error:
        raise ProtocolError(f"in Publish, {error}") from error
    name = peer.partition(":")[2]
    for publisher, *_ in batch.publishers:
        if publisher != name:
            # Subscribers tell repetitions by the publisher's numbers: nobody may use another's.
            raise ProtocolError(f"an event names {publisher[:64]!r} as its publisher, not {name!r}")
    if message.skipped < 0 or (message.skipped and batch):
        raise ProtocolError(f"Publish has {len(batch)} events, and skips {message.skipped}")
    last = message.first + len(batch) + message.skipped - 1
    if message.first < 1 or answered < 0 or last > answered + window:
        raise ProtocolError(f"events {message.first} to {last} are beyond the window after {answered}")
    return batch


def direct_addresses(core: BrokerCore, sequencer: Sequencer) -> tuple[str, ...]:
    """Where clients may say publications too (D4-A6), from the replica's point of view; empty if nowhere.

    Nowhere, while a subscription makes its publishers wait: one replica must hold them back for all.
    """
    return sequencer.direct_addresses if sequencer.takes_direct and not core.crowding.blocking else ()


def alternate_addresses(sequencer: Sequencer, settings: DeskSettings) -> tuple[str, ...]:
    """Where clients may go if this broker fails."""
    return sequencer.direct_addresses or settings.alternates
