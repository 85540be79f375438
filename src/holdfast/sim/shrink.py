"""Makes a failing scenario small: leaves out actions, events, faults, operations and clients while it fails alike.

Hypothesis does the searching; it is needed only here, and comes with `holdfast[shrink]`. First whole actions and faults
are left out, then single events; each search ends when its time is up, with the smallest that was found.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.errors import ScenarioError
from holdfast.sim.scenario import (
    Action,
    Advertise,
    Publish,
    Scenario,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    hosts_of,
)

# Each piece is drawn from 0 to this, and 0 leaves it out: most are kept at first, and Hypothesis shrinks towards 0.
_KEEP_MAX = 15
# More pieces than these make examples that Hypothesis can't handle well.
_PIECES_MAX = 200


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], tries: int = 400, seconds: float = 20.0) -> Scenario:
    """The smallest scenario found within the time that still fails, or the given one."""
    smaller = _search(scenario, fails, _whole_actions, tries, time.monotonic() + seconds / 2)
    return _search(smaller, fails, _single_events, tries, time.monotonic() + seconds / 2)


def _search(
    scenario: Scenario,
    fails: Callable[[Scenario], bool],
    pieces_of: Callable[[Action], int],
    tries: int,
    deadline: float,
) -> Scenario:
    try:
        import hypothesis
        from hypothesis import strategies
        from hypothesis.configuration import set_hypothesis_home_dir
        from hypothesis.errors import NoSuchExample
    except ImportError as error:
        remedy = "install holdfast[shrink], or leave shrinking out"
        raise ScenarioError("Hypothesis is not installed", "shrinking", remedy) from error
    # Whatever it wants to remember is nobody's business; least of all a folder where the user happens to be.
    set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "holdfast-shrink")
    settings = hypothesis.settings(
        max_examples=tries,
        derandomize=True,
        database=None,
        deadline=None,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    best = scenario

    def fails_in_time(candidate: Scenario) -> bool:
        nonlocal best
        if time.monotonic() > deadline or not _can_fail(candidate, fails):
            return False
        if count_pieces(candidate) < count_pieces(best):
            best = candidate
        return True

    while time.monotonic() < deadline:
        whole = best
        pieces = sum(map(pieces_of, whole.actions)) + len(whole.faults) + len(whole.operations)
        if pieces > _PIECES_MAX:
            break
        draw = strategies.lists(strategies.integers(0, _KEEP_MAX), min_size=pieces, max_size=pieces)
        candidates = draw.map(lambda kept, whole=whole: keep(whole, kept, pieces_of))  # type: ignore[misc]
        # It ends so when there is nothing smaller, or when the time was up in the middle of a proof.
        with contextlib.suppress(NoSuchExample, hypothesis.errors.Flaky):
            hypothesis.find(candidates, fails_in_time, settings=settings)
        if count_pieces(best) >= count_pieces(whole):
            break
    return best


def _can_fail(scenario: Scenario, fails: Callable[[Scenario], bool]) -> bool:
    """What lacks something that the rest needs is refused, and fails for that alone."""
    try:
        return fails(scenario)
    except ScenarioError:
        return False


def _whole_actions(action: Action) -> int:
    return 1


def _single_events(action: Action) -> int:
    return len(action.events) if isinstance(action, Publish) else 1


def count_pieces(scenario: Scenario) -> int:
    """Of how many pieces a scenario is made that can be left out: events, other actions, faults and operations."""
    return sum(map(_single_events, scenario.actions)) + len(scenario.faults) + len(scenario.operations)


def keep(scenario: Scenario, kept: list[int], pieces_of: Callable[[Action], int] = _single_events) -> Scenario:
    """The scenario without the pieces whose number is 0, and without the clients that then do nothing."""
    actions: list[Action] = []
    place = 0
    for action in scenario.actions:
        chosen = kept[place : place + pieces_of(action)]
        place += len(chosen)
        if isinstance(action, Publish) and len(chosen) == len(action.events):
            events = [event for event, number in zip(action.events, chosen, strict=True) if number]
            if events:
                actions.append(msgspec.structs.replace(action, events=events))
        elif chosen and chosen[0]:
            actions.append(action)
    busy = {action.client for action in actions}
    gone = {client.id for client in scenario.clients if client.id not in busy}
    faults = [
        fault
        for fault, number in zip(scenario.faults, kept[place : place + len(scenario.faults)], strict=True)
        if number and not (gone & set(hosts_of(fault)))
    ]
    chosen = kept[place + len(scenario.faults) :]
    operations = [operation for operation, number in zip(scenario.operations, chosen, strict=True) if number]
    subscribed = {(action.client, action.name) for action in actions if isinstance(action, Subscribe)}
    advertised = {(action.client, action.name) for action in actions if isinstance(action, Advertise)}
    actions = [a for a in actions if not isinstance(a, Unsubscribe) or (a.client, a.name) in subscribed]
    actions = [a for a in actions if not isinstance(a, Unadvertise) or (a.client, a.name) in advertised]
    clients = [client for client in scenario.clients if client.id not in gone]
    return msgspec.structs.replace(scenario, actions=actions, operations=operations, clients=clients, faults=faults)
