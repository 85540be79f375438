"""What can be said and kept: the messages and records that someone speaks, with their numbers."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.codec.registry import Registry
from holdfast.kernel.messages import Message, Record


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
