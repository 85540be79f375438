"""Every message and every record type that there is, with its number. A number is never given to another type."""

from __future__ import annotations

from typing import Final

from holdfast.codec import Registry
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.sessions.commands import SESSION_RECORDS
from holdfast.protocols.sessions.messages import SESSION_MESSAGES

MESSAGES: Final = Registry[Message]({**SESSION_MESSAGES})
RECORDS: Final = Registry[Record]({**SESSION_RECORDS})
