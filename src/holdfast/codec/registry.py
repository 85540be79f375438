"""Numbers for types, and bytes for values.

A value travels as (kind, body): the kind is the number of its type in a closed registry, the body is msgpack, an array
of the fields in order. A new field goes to the end and has a default; older readers skip it, newer readers fill it in.
Numbers are never used for another type, and golden bytes under `tests/` hold all that.

Nothing is allocated by what a body declares: msgspec refuses truncated input before it makes room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.errors import ProtocolError

KIND_MAX = 255

# What decoding raises: for values of the wrong shape, for text that is not UTF-8, for nesting without end.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_T = TypeVar("_T")


class CodecError(ProtocolError):
    """Bytes that are no value of the registry."""


class Registry(Generic[_T]):
    """A closed set of types with their numbers."""

    def __init__(self, types: Mapping[int, type[_T]]) -> None:
        for kind, registered in types.items():
            if not 0 < kind <= KIND_MAX:
                raise ValueError(f"{registered.__name__} has number {kind}, which is not in 1..{KIND_MAX}")
        if len(set(types.values())) != len(types):
            raise ValueError("a type has two numbers")
        self.types = dict(types)
        self.kinds = {registered: kind for kind, registered in types.items()}
        # For callers that handle many values at a time; `encode` and `decode` say what they are for. What the decoders
        # raise is `UNREADABLE`.
        self.encoder = msgspec.msgpack.Encoder().encode
        self.decoders: dict[int, Callable[[Any], _T]] = {
            kind: msgspec.msgpack.Decoder(registered).decode for kind, registered in types.items()
        }

    def encode(self, value: _T) -> tuple[int, bytes]:
        """The value's number and bytes."""
        return self.kinds[type(value)], self.encoder(value)

    def decode(self, kind: int, body: bytes) -> _T:
        """The value of these bytes, or CodecError."""
        decode = self.decoders.get(kind)
        if decode is None:
            raise CodecError(f"there is no type with the number {kind}")
        try:
            return decode(body)
        except UNREADABLE as error:
            raise CodecError(f"bytes are no {self.types[kind].__name__}: {error}") from error
