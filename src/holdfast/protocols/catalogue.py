"""Every message and every record type that there is, with its number. A number is never given to another type."""

from __future__ import annotations

from typing import Final

from holdfast.codec import Registry
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.bypass.messages import BYPASS_MESSAGES, LARGE_BYPASS_MESSAGES
from holdfast.protocols.core.commands import SESSION_RECORDS
from holdfast.protocols.cursors.messages import CURSOR_MESSAGES, LARGE_CURSOR_MESSAGES
from holdfast.protocols.failure.messages import FAILURE_MESSAGES
from holdfast.protocols.operating.messages import OPERATING_MESSAGES, Inspected, NamesListed
from holdfast.protocols.paxos.messages import LARGE_PAXOS_MESSAGES, PAXOS_MESSAGES, PAXOS_RECORDS
from holdfast.protocols.routing.messages import LARGE_ROUTING_MESSAGES, ROUTING_MESSAGES, ROUTING_RECORDS
from holdfast.protocols.sessions.messages import (
    SESSION_MESSAGES,
    Accepted,
    ApplicationAnswered,
    AskApplication,
    Deliver,
    OpenSession,
    Progress,
    Publish,
    SessionOpened,
)

# What Hello offers, best first. A version is raised when messages change in a way that defaults can't bridge.
PROTOCOL_VERSIONS: Final = (1,)

MESSAGES: Final = Registry[Message](
    {
        **SESSION_MESSAGES,
        **OPERATING_MESSAGES,
        **CURSOR_MESSAGES,
        **PAXOS_MESSAGES,
        **FAILURE_MESSAGES,
        **BYPASS_MESSAGES,
        **ROUTING_MESSAGES,
    }
)
RECORDS: Final = Registry[Record]({**SESSION_RECORDS, **PAXOS_RECORDS, **ROUTING_RECORDS})

# Kinds whose size grows with events, subscriptions, links, requests or with what was refused; all others are small.
LARGE_KINDS: Final = frozenset(
    MESSAGES.kinds[large]
    for large in (
        OpenSession,
        Publish,
        Progress,
        Deliver,
        SessionOpened,
        Accepted,
        AskApplication,
        ApplicationAnswered,
        Inspected,
        NamesListed,
        *LARGE_CURSOR_MESSAGES,
        *LARGE_PAXOS_MESSAGES,
        *LARGE_ROUTING_MESSAGES,
        *LARGE_BYPASS_MESSAGES,
    )
)
