"""A drawn scenario whose events have lifetimes: long enough, too short for any way, and all between."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from holdfast.sim.scenario import Publish, Scenario, ScenarioEvent

MORTAL = 0.6  # the share of events that have a lifetime
LIFETIMES_MS = (1, 5, 50, 500, 2_000, 10_000, 60_000)


def with_lifetimes(scenario: Scenario) -> Scenario:
    """The same scenario, with lifetimes that are drawn from the same seed, and the promise that they are kept."""
    rng = Random(f"{scenario.name}/{scenario.seed}/lifetimes")

    def mortal(event: ScenarioEvent) -> ScenarioEvent:
        return replace(event, lifetime_ms=rng.choice(LIFETIMES_MS)) if rng.random() < MORTAL else event

    actions = [
        replace(action, events=[mortal(event) for event in action.events]) if isinstance(action, Publish) else action
        for action in scenario.actions
    ]
    return replace(scenario, actions=actions, checkers=[*scenario.checkers, "in-time"])
