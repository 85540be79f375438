"""A drawn scenario whose brokers host an application: events that it sees, and requests."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from holdfast.sim.scenario import Action, Ask, HostedApplication, Publish, Scenario, ScenarioEvent

SEEN = 0.7  # the share of events that the application sees
ASKS_MAX = 20


def with_application(scenario: Scenario, application: HostedApplication) -> Scenario:
    """The same scenario, with an application; what its events and requests are is drawn from the same seed."""
    rng = Random(f"{scenario.name}/{scenario.seed}/application")

    def seen(event: ScenarioEvent) -> ScenarioEvent:
        wanted = application.topics and rng.random() < SEEN
        return replace(event, topic=rng.choice(application.topics)) if wanted else event

    actions: list[Action] = [
        replace(action, events=[seen(event) for event in action.events]) if isinstance(action, Publish) else action
        for action in scenario.actions
    ]
    asking = [client.id for client in scenario.clients if not client.light]
    for number in range(rng.randint(0, ASKS_MAX) if asking else 0):
        client = rng.choice(asking)
        actions.append(Ask(at_ms=rng.randint(0, scenario.safety_ms), client=client, request=f"{client}-{number}"))
    actions.sort(key=lambda action: action.at_ms)
    return replace(scenario, actions=actions, application=application)
