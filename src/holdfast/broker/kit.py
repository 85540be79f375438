"""The types that brokers are made of: production takes them as they are, tests put mutants in their place."""

from __future__ import annotations

import msgspec

from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.log_desk import LogDesk
from holdfast.protocols.desks.refill import Refill
from holdfast.protocols.desks.sequencer import DirectSequencer
from holdfast.protocols.desks.session_desk import SessionDesk


class BrokerKit(msgspec.Struct, frozen=True):
    """Of all brokers; `scheme` is the kit of the scheme's own parts, if not the usual one."""

    core: type[BrokerCore] = BrokerCore
    sequencer: type[DirectSequencer] = DirectSequencer
    sessions: type[SessionDesk] = SessionDesk
    log: type[LogDesk] = LogDesk
    events: type[EventLog] = EventLog
    refill: type[Refill] = Refill
    scheme: msgspec.Struct | None = None
