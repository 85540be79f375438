"""Every message and every record type that there is, with its number. A number is never given to another type."""

from __future__ import annotations

from typing import Final

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.bypass.messages import BYPASS_MESSAGES, LARGE_BYPASS_MESSAGES
from holdfast.protocols.client_catalogue import CLIENT_MESSAGES, LARGE_CLIENT_MESSAGES, PROTOCOL_VERSIONS
from holdfast.protocols.core.commands import SESSION_RECORDS
from holdfast.protocols.failure.messages import FAILURE_MESSAGES
from holdfast.protocols.paxos.messages import LARGE_PAXOS_MESSAGES, PAXOS_MESSAGES, PAXOS_RECORDS
from holdfast.protocols.routing.messages import LARGE_ROUTING_MESSAGES, ROUTING_MESSAGES, ROUTING_RECORDS

MESSAGES: Final = Registry[Message](
    {**CLIENT_MESSAGES, **PAXOS_MESSAGES, **FAILURE_MESSAGES, **BYPASS_MESSAGES, **ROUTING_MESSAGES}
)
RECORDS: Final = Registry[Record]({**SESSION_RECORDS, **PAXOS_RECORDS, **ROUTING_RECORDS})

CATALOGUE: Final = Catalogue(
    MESSAGES,
    RECORDS,
    (*LARGE_CLIENT_MESSAGES, *LARGE_PAXOS_MESSAGES, *LARGE_ROUTING_MESSAGES, *LARGE_BYPASS_MESSAGES),
    PROTOCOL_VERSIONS,
)
