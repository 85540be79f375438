"""What the brokers of a scheme say and keep: what all do, and what is the scheme's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.messages import Message, Record
from holdfast.protocols.client_catalogue import CLIENT_MESSAGES, LARGE_CLIENT_MESSAGES, PROTOCOL_VERSIONS
from holdfast.protocols.core.commands import SESSION_RECORDS

NUMBER_MAX: Final = 239  # those above are the handshake's


def catalogue_of(
    kind: str,
    messages: Mapping[int, type[Message]],
    records: Mapping[int, type[Record]],
    large: Iterable[type[Message]],
) -> Catalogue:
    """Of the scheme of a kind, with these messages and records, each with its number, which is never given to another
    type."""
    _check_free(messages, CLIENT_MESSAGES)
    _check_free(records, SESSION_RECORDS)
    return Catalogue(
        Registry[Message]({**CLIENT_MESSAGES, **messages}),
        Registry[Record]({**SESSION_RECORDS, **records}),
        (*LARGE_CLIENT_MESSAGES, *large),
        PROTOCOL_VERSIONS,
        kind,
    )


def _check_free(own: Mapping[int, type], taken: Mapping[int, type]) -> None:
    for number, kind in own.items():
        if not 0 < number <= NUMBER_MAX:
            raise ValueError(f"{kind.__name__} has number {number}, which is not in 1 to {NUMBER_MAX}")
        if number in taken and taken[number] is not kind:
            raise ValueError(f"{kind.__name__} has number {number}, which is that of {taken[number].__name__}")
