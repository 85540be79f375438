"""What the brokers of a scheme say and keep: what all do, and what is the scheme's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue, check_free
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.client_catalogue import CLIENT_MESSAGES, LARGE_CLIENT_MESSAGES, PROTOCOL_VERSIONS
from holdfast.protocols.core.commands import SESSION_RECORDS


def catalogue_of(
    kind: str,
    messages: Mapping[int, type[Message]],
    records: Mapping[int, type[Record]],
    large: Iterable[type[Message]],
) -> Catalogue:
    """Of the scheme of a kind, with these messages and records, each with its number, which is never given to another
    type."""
    check_free(messages, CLIENT_MESSAGES)
    check_free(records, SESSION_RECORDS)
    return Catalogue(
        Registry[Message]({**CLIENT_MESSAGES, **messages}),
        Registry[Record]({**SESSION_RECORDS, **records}),
        (*LARGE_CLIENT_MESSAGES, *large),
        PROTOCOL_VERSIONS,
        kind,
    )
