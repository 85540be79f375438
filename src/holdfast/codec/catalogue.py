"""What can be said and kept: the messages and records that someone speaks, with their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.codec.registry import Registry
from holdfast.kernel.messages import Message, Record

NUMBER_MAX: Final = 239  # those above are the handshake's


class Catalogue:
    """Of brokers, or of clients, which need less. `large` are messages whose size grows with events, subscriptions,
    links, requests or with what was refused; all others are small. `versions` is what Hello offers, best first.
    `scheme` names whose catalogue it is; empty: what all schemes have in common, or a collection of several."""

    def __init__(
        self,
        messages: Registry[Message],
        records: Registry[Record],
        large: Iterable[type[Message]],
        versions: tuple[int, ...],
        scheme: str = "",
    ) -> None:
        self.messages = messages
        self.records = records
        self.large_kinds = frozenset(messages.kinds[message] for message in large)
        self.versions = versions
        self.scheme = scheme


def check_free(own: Mapping[int, type], taken: Mapping[int, type]) -> None:
    """ValueError if a type has a number that it can't have, or that of another."""
    for number, kind in own.items():
        if not 0 < number <= NUMBER_MAX:
            raise ValueError(f"{kind.__name__} has number {number}, which is not in 1 to {NUMBER_MAX}")
        if number in taken and taken[number] is not kind:
            raise ValueError(f"{kind.__name__} has number {number}, which is that of {taken[number].__name__}")
