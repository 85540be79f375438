"""The codec: a closed registry of types, each with a number that is never used again, and their bytes."""

from holdfast.codec.registry import UNREADABLE, CodecError, Registry

__all__ = ["UNREADABLE", "CodecError", "Registry"]
