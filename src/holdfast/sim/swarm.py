"""What the simulator asks of a scheme: `SWARM`, in the module `swarm` of its package."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Place, Told
from holdfast.broker.site import Site
from holdfast.kernel.settings import chosen
from holdfast.sim.scenario import Broker, HostedApplication, Scenario
from holdfast.trace.checkers.registry import CHECKERS, Known

# Refuses a scenario: what is wrong, and what to do about it.
Refuse = Callable[[str, str], NoReturn]


class Shape(Protocol):
    """Bounds of what is drawn: a Struct, whose fields others may replace."""

    @property
    def name(self) -> str: ...

    @property
    def application(self) -> HostedApplication | None:
        """What the brokers host; None where brokers can host nothing."""
        ...

    @property
    def checkers(self) -> tuple[str, ...] | None:
        """Instead of what the drawn brokers promise."""
        ...

    def draw(self, seed: int) -> Scenario:
        """The scenario of a seed. The same seed and shape give the same scenario."""
        ...


class Swarm(Protocol):
    """How runs of a scheme are drawn and judged."""

    settings: msgspec.Struct  # as the simulator's brokers have them, if a scenario says nothing else: shorter times
    shapes: Mapping[str, Shape]  # without a site file, by name
    checkers: Mapping[str, Known]  # of promises that no other scheme makes
    operations: Mapping[str, Collection[str]]  # what operators may ask for in scenarios: action → what is told of it

    def shape_of(self, site: Site, brokers: Sequence[Broker]) -> Shape:
        """What is drawn for a site: these brokers, as it describes them, and everything around them by seed."""
        ...

    def check(self, scenario: Scenario, refuse: Refuse) -> None:
        """Refuses a scenario that no site file could describe, or in which nothing could be promised."""
        ...

    def promises(self, scenario: Scenario) -> tuple[str, ...]:
        """The checkers of what is promised with these settings, whatever of these faults comes."""
        ...

    def header(self, scenario: Scenario) -> dict[str, Any]:
        """What a checker has to know of a run to say what was promised."""
        ...


def swarm_of(kind: str) -> Swarm:
    swarm: Swarm = SCHEMES.module(kind, "swarm").SWARM
    return swarm


def checkers_of(kind: str) -> Mapping[str, Known]:
    """All that a scheme may be held to, by name. A trace may be of one that is not known here."""
    return {**CHECKERS, **swarm_of(kind).checkers} if kind in SCHEMES else CHECKERS


def settings_of(scenario: Scenario) -> msgspec.Struct:
    """The scheme's settings in a scenario; those that it does not say are the simulator's."""
    return chosen(swarm_of(scenario.system).settings, scenario.settings)


def told_by(scenario: Scenario, settings: Any) -> Told:
    """What a broker of the scenario is told; `settings` are its own."""
    places = tuple(Place(broker.id, broker.id, broker.id, broker.spare) for broker in scenario.brokers)
    links = tuple((one, other) for one, other in scenario.links)
    return Told(settings, settings_of(scenario), places, links)
