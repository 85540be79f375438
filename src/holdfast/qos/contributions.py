"""What each broker and link costs: how much more reliable subscribers would be if it never failed.

Of a part whose state enters a probability linearly, as at `periodic` and `bypass`, that is its Birnbaum importance,
times the share of time that it is off; at the levels that buffer it also counts how long its outages last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import Ends, Together
from holdfast.qos.interest import Interests, Publisher, Subscriber
from holdfast.qos.parts import NEVER_FAILS, Part
from holdfast.qos.prediction import Model, mean_reliability


class Contribution(msgspec.Struct, frozen=True):
    """`part` is a broker, two that a link joins, the local links of a broker's clients, or something shared; `gain` is
    how much the mean reliability would rise."""

    part: str
    gain: float


_Client = TypeVar("_Client", Publisher, Subscriber)


def _with_good_links(clients: Sequence[_Client], home: str) -> list[_Client]:
    """The same clients, and the local links of those at a broker never fail."""
    return [replace(one, local=NEVER_FAILS) if one.home == home else one for one in clients]


def contributions(
    model: Model, publishers: Sequence[Publisher], subscribers: Sequence[Subscriber], level: Reliability
) -> list[Contribution]:
    """Of every part that fails, the largest first."""
    # Once: who wants what does not change when a part is mended.
    interests = Interests(publishers, subscribers)
    now = mean_reliability(model.predict(publishers, subscribers, [level], interests), level)
    if now is None:
        return []
    graph = model.graph
    named: list[tuple[str, Part, str | Ends | Together]] = [(name, part, name) for name, part in graph.brokers.items()]
    named += [(" – ".join(ends), part, ends) for ends, part in graph.links.items()]
    named += [(one.name, one.part, one) for one in graph.together.values()]
    found = []
    for text, part, what in named:
        if not part.never_fails:
            mended = Model(graph.mended(what), model.lifetime)
            then = mean_reliability(mended.predict(publishers, subscribers, [level], interests), level)
            found.append(Contribution(text, (then or 0.0) - now))
    clients: list[Publisher | Subscriber] = [*publishers, *subscribers]
    for home in dict.fromkeys(one.home for one in clients if not one.local.never_fails):
        then = mean_reliability(
            model.predict(_with_good_links(publishers, home), _with_good_links(subscribers, home), [level]), level
        )
        found.append(Contribution(f"clients – {home}", (then or 0.0) - now))
    return sorted(found, key=lambda one: (-one.gain, one.part))
