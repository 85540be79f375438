"""What programs beside brokers need to know of a scheme: how its clients are made, and what they speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue, check_free
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.client_catalogue import CLIENT_MESSAGES, LARGE_CLIENT_MESSAGES, PROTOCOL_VERSIONS
from holdfast.protocols.sessions.conversation import ClientSettings

if TYPE_CHECKING:
    from random import Random

MakeClient: TypeAlias = Callable[[ClientSettings, "Random", StoredStreams], Node]


class SchemeClient(msgspec.Struct, frozen=True):
    """`CLIENT` of a scheme's module `client`. `listens`: peers of which roles its node takes links from."""

    make: MakeClient
    catalogue: Catalogue
    listens: frozenset[Role] = frozenset()


def client_catalogue_of(
    kind: str, messages: Mapping[int, type[Message]] | None = None, large: Iterable[type[Message]] = ()
) -> Catalogue:
    """What all clients speak, and these messages, with their numbers, that are the scheme's own."""
    check_free(messages or {}, CLIENT_MESSAGES)
    spoken = Registry[Message]({**CLIENT_MESSAGES, **(messages or {})})
    return Catalogue(spoken, Registry[Record]({}), (*LARGE_CLIENT_MESSAGES, *large), PROTOCOL_VERSIONS, kind)
