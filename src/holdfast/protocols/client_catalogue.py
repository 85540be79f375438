"""What clients and operators say to brokers, and hear from them: all that a program beside a broker needs to know."""

from __future__ import annotations

from typing import Final

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.cursors.messages import CURSOR_MESSAGES, LARGE_CURSOR_MESSAGES
from holdfast.protocols.operating.messages import OPERATING_MESSAGES, Inspected, NamesListed
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
# In version 1, `Deliver` named the subscription and the number of each of its events.
PROTOCOL_VERSIONS: Final = (2,)

CLIENT_MESSAGES: Final = {**SESSION_MESSAGES, **OPERATING_MESSAGES, **CURSOR_MESSAGES}
LARGE_CLIENT_MESSAGES: Final = (
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
)

CLIENT_CATALOGUE: Final = Catalogue(
    Registry[Message](CLIENT_MESSAGES), Registry[Record]({}), LARGE_CLIENT_MESSAGES, PROTOCOL_VERSIONS
)
