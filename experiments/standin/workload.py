"""What is subscribed to and published (D0-B16): filters `v > n` and events with a value `v`, whose numbers follow a
Zipf law over 1 to 20, biased towards the lower end or the upper one, for each of the two.

So how many subscriptions an event matches is a matter of four numbers, and of nothing else (D0-D4, D0-D6).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Final

import msgspec

VALUES: Final = 20
ATTRIBUTE: Final = "v"
TOPIC: Final = "t"


class Bias(enum.Enum):
    """Which end of the range is drawn most."""

    LOW = "low"
    HIGH = "high"


class Zipf(msgspec.Struct, frozen=True):
    """How values are drawn."""

    degree: float = 0.5
    bias: Bias = Bias.LOW

    @property
    def weights(self) -> list[float]:
        """Of 1, 2, … 20; their sum is 1 (D0-D4)."""
        drawn = [value**-self.degree for value in range(1, VALUES + 1)]
        total = sum(drawn)
        shares = [weight / total for weight in drawn]
        return shares if self.bias is Bias.LOW else shares[::-1]

    def draw(self, count: int, rng: Random) -> list[int]:
        return rng.choices(range(1, VALUES + 1), cum_weights=list(accumulate(self.weights)), k=count)


def match_probability(published: Zipf, subscribed: Zipf) -> float:
    """That an event matches a subscription: that its value is greater (D0-D6)."""
    below = [0.0, *accumulate(subscribed.weights)]
    return sum(weight * below[place] for place, weight in enumerate(published.weights))


class Workload(msgspec.Struct, frozen=True):
    """How many of each, and how they are drawn."""

    subscriptions: int
    pending: int  # events that wait for the stand-in
    published: Zipf = Zipf()
    subscribed: Zipf = Zipf()

    @property
    def fanout(self) -> float:
        """How many subscriptions an event matches, on average."""
        return self.subscriptions * match_probability(self.published, self.subscribed)

    def draw(self, seed: int) -> Drawn:
        rng = Random(f"workload/{seed}")
        return Drawn(self.subscribed.draw(self.subscriptions, rng), self.published.draw(self.pending, rng))


class Drawn(msgspec.Struct, frozen=True):
    """Of one run."""

    thresholds: list[int]  # of subscriptions, in the order in which they are made
    values: list[int]  # of events, in the order in which they are published

    def share(self, part: int, parts: int) -> Sequence[int]:
        """The thresholds of the subscriptions at one of several neighbours."""
        return self.thresholds[part::parts]


def filter_above(threshold: int) -> str:
    return f"{ATTRIBUTE} > {threshold}"
