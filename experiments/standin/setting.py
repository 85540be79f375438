"""What one run of the paper's experiments is (D0-E1): a star around the faulty broker, and a stand-in for it.

`n1` is the advertisement-forwarding broker, with the publisher; `n2`, `n3`, … are subscription-forwarding ones, with
the subscribers; `f` is between them, and `r` stands in for it. Events that nobody gets while `f` is down wait at `n1`
(D0-A34).
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from experiments.standin.protocols import Case
from experiments.standin.workload import Workload

FAULTY: Final = "f"
STAND_IN: Final = "r"
ADVERTISING: Final = "n1"
PUBLISHER: Final = "p"
PER_CLIENT: Final = 1_000  # subscriptions of one client, at most
ITEM_US: Final = 1_380  # 10,000 subscriptions took the paper's synchronous protocol 13.8 s (D0-E6)


class Transport(enum.Enum):
    """How brokers talk.

    `batched`: as the product does, many entries and events in a message, many messages in a turn. `one by one`: as the
    paper's brokers do over RMI: every subscription and every event is a message of its own, which takes its time on the
    link, and a turn of its own; one event is under way at a time.
    """

    BATCHED = "batched"
    ONE_BY_ONE = "one by one"


class Setting(msgspec.Struct, frozen=True):
    """`order`: in which subscriptions are sent; as they stand in the table, if nothing is said (D0-E12)."""

    case: Case
    workload: Workload
    neighbours: int = 1  # that forward subscriptions
    transport: Transport = Transport.BATCHED
    order: str = ""
    seed: int = 1

    @property
    def subscribing(self) -> list[str]:
        return [f"n{number}" for number in range(2, self.neighbours + 2)]

    @property
    def links(self) -> list[tuple[str, str]]:
        return [(ADVERTISING, FAULTY), *((FAULTY, name) for name in self.subscribing)]

    def thresholds(self) -> dict[str, list[int]]:
        """Of the subscriptions at each neighbour."""
        drawn = self.workload.draw(self.seed)
        return {name: list(drawn.share(place, self.neighbours)) for place, name in enumerate(self.subscribing)}
