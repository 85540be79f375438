"""Makes a failing scenario small: leaves out actions, events, faults and clients while it still fails.

Hypothesis does the searching; it is needed only here, and comes with `holdfast[shrink]`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.errors import ScenarioError
from holdfast.sim.scenario import Action, Cut, Publish, Scenario

# Each piece is drawn from 0 to this, and 0 leaves it out: most are kept at first, and Hypothesis shrinks towards 0.
_KEEP_MAX = 15


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], tries: int = 400) -> Scenario:
    """The smallest scenario found that still fails, or the given one."""
    try:
        import hypothesis
        from hypothesis import strategies
        from hypothesis.errors import NoSuchExample
    except ImportError as error:
        remedy = "install holdfast[shrink], or leave shrinking out"
        raise ScenarioError("Hypothesis is not installed", "shrinking", remedy) from error
    settings = hypothesis.settings(
        max_examples=tries,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    best = scenario
    while True:
        pieces = count_pieces(best)
        draw = strategies.lists(strategies.integers(0, _KEEP_MAX), min_size=pieces, max_size=pieces)
        smaller = draw.map(lambda kept, whole=best: keep(whole, kept))  # type: ignore[misc]
        try:
            found = hypothesis.find(smaller, fails, settings=settings)
        except NoSuchExample:
            return best
        if count_pieces(found) >= pieces:
            return best
        best = found


def count_pieces(scenario: Scenario) -> int:
    """Of how many pieces a scenario is made that can be left out: events, other actions, and faults."""
    return sum(_pieces_of(action) for action in scenario.actions) + len(scenario.faults)


def _pieces_of(action: Action) -> int:
    return len(action.events) if isinstance(action, Publish) else 1


def keep(scenario: Scenario, kept: list[int]) -> Scenario:
    """The scenario without the pieces whose number is 0, and without the clients that then do nothing."""
    actions: list[Action] = []
    place = 0
    for action in scenario.actions:
        chosen = kept[place : place + _pieces_of(action)]
        place += len(chosen)
        if isinstance(action, Publish):
            events = [event for event, number in zip(action.events, chosen, strict=True) if number]
            if events:
                actions.append(msgspec.structs.replace(action, events=events))
        elif chosen[0]:
            actions.append(action)
    busy = {action.client for action in actions}
    gone = {client.id for client in scenario.clients if client.id not in busy}
    faults = [
        fault
        for fault, number in zip(scenario.faults, kept[place:], strict=True)
        if number and not (gone & ({fault.source, fault.target} if isinstance(fault, Cut) else {fault.host}))
    ]
    clients = [client for client in scenario.clients if client.id not in gone]
    return msgspec.structs.replace(scenario, actions=actions, clients=clients, faults=faults)
