"""A trace as one number: two runs with the same one were the same."""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.trace.schema import Row

DIGEST_ROWS = 512  # summed up at a time


class Digest:
    """Counts and sums up rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.by_kind: dict[type[Row], int] = {}
        self._sum = hashlib.sha256()
        self._encode = msgspec.json.Encoder().encode
        self._buffer: list[Row] = []

    def see(self, row: Row) -> None:
        kind = row.__class__
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        self._buffer.append(row)
        if len(self._buffer) == DIGEST_ROWS:
            self._add()

    def _add(self) -> None:
        self.rows += len(self._buffer)
        self._sum.update(self._encode(self._buffer))
        self._buffer.clear()

    def finish(self) -> str:
        self._add()
        return self._sum.hexdigest()
