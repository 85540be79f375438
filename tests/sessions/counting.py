"""A toy application: counts what it is shown, and makes an event of every tenth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.kernel.application import Derived

EVERY = 10


class Counting:
    """`log` is all that it was called with, in order: two that were called alike have equal states."""

    topics = frozenset({"count", "tenth"})

    def __init__(self, every: int = EVERY) -> None:
        self._every = every
        self.count = 0
        self.last = 0  # number of an event
        self.executed: dict[str, int] = {}  # request → how often

    def execute(self, request: bytes) -> bytes:
        text = request.decode()
        if text == "fail":
            self.count += 1
            raise ValueError("asked to fail")
        self.executed[text] = self.executed.get(text, 0) + 1
        return f"{text} {self.executed[text]}".encode()

    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, int | float | str | bool], payload: bytes
    ) -> Sequence[Derived]:
        if number <= self.last:
            raise AssertionError(f"event {number} comes after {self.last}")
        self.count, self.last = self.count + 1, number
        if self.count % self._every:
            return []
        return [Derived("tenth", {"count": self.count, "price": self.count, "at": number, "wall": wall}, payload[:10])]

    def get_state(self) -> bytes:
        return msgspec.msgpack.encode([self.count, self.last, self.executed])

    def set_state(self, state: bytes) -> None:
        self.count, self.last, self.executed = msgspec.msgpack.decode(state)
