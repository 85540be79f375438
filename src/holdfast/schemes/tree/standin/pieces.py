"""Entries of tables, cut so that each piece fits into a message."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.protocols.routing.messages import ROUTES_BYTES, Told


def in_pieces(told: list[Told]) -> Iterator[list[Told]]:
    """At least one, which may be empty."""
    piece: list[Told] = []
    size = 0
    for entry, text in told:
        size += len(entry) + len(text) + 8
        if piece and size > ROUTES_BYTES:
            yield piece
            piece, size = [], len(entry) + len(text) + 8
        piece.append((entry, text))
    yield piece
