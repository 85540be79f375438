"""What each broker and link costs: how much more reliable subscribers would be if it never failed.

Of a part whose state enters a probability linearly, as at `periodic` and `bypass`, that is its Birnbaum importance,
times the share of time that it is off; at the levels that buffer it also counts how long its outages last.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.parts import NEVER_FAILS
from holdfast.qos.prediction import Model, Publisher, Subscriber, mean_reliability


class Contribution(msgspec.Struct, frozen=True):
    """`part` is a broker, or two that a link joins; `gain` is what the mean reliability would be more."""

    part: str
    gain: float


def contributions(
    model: Model, publishers: Sequence[Publisher], subscribers: Sequence[Subscriber], level: Reliability
) -> list[Contribution]:
    """Of every part that fails, the largest first."""
    now = mean_reliability(model.predict(publishers, subscribers, [level]), level)
    if now is None:
        return []
    found = []
    graph = model.graph
    named: list[tuple[str, str | tuple[str, str]]] = [(name, name) for name in graph.brokers]
    named += [(" – ".join(ends), ends) for ends in graph.overlay.links]
    for text, name in named:
        part = graph.brokers[name] if isinstance(name, str) else graph.link(*name)
        if part.never_fails:
            continue
        mended = Model(graph.replaced(name, NEVER_FAILS), model.lifetime)
        then = mean_reliability(mended.predict(publishers, subscribers, [level]), level)
        found.append(Contribution(text, (then or 0.0) - now))
    return sorted(found, key=lambda one: (-one.gain, one.part))
