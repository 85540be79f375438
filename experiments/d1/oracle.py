"""What could have been delivered in a world, to each of its subscribers: a replay of its outages."""

from __future__ import annotations

from experiments.d1.replay import Replay
from experiments.d1.world import WARM_UP_S, Setup, World, scenario_of
from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.scenario import Publish
from holdfast.topology.graph import BrokerGraph


class Oracle:
    """Asked about one world."""

    def __init__(self, setup: Setup, world: World) -> None:
        self._world = world
        self._replay = Replay(
            BrokerGraph(list(world.availabilities), world.links),
            world.broker_outages,
            {frozenset(name.split()): found for name, found in world.link_outages.items()},
            setup.lifetime_s * 1_000,
        )
        begin, decided = WARM_UP_S * 1_000, setup.end_ms - setup.lifetime_s * 1_000
        self._published: dict[str, list[int]] = {}  # what is not decided in the end is left out
        for action in scenario_of(setup, world).actions:
            if isinstance(action, Publish) and action.at_ms <= decided:
                self._published.setdefault(action.client, []).append(action.at_ms - begin)

    def share(self, level: Reliability, subscriber: str) -> float:
        """Of the events of interest, those that the level could have delivered on time."""
        publisher = self._world.topics[subscriber]
        homes = self._world.homes
        return self._replay.share(level, homes[publisher], homes[subscriber], self._published[publisher])

    def path_up(self, subscriber: str) -> float:
        """… at whose publication the whole path was up (D1-C2)."""
        return self.share(Reliability.PERIODIC, subscriber)

    def connected(self, subscriber: str) -> float:
        """… at which some path of the graph was (D1-C4)."""
        return self.share(Reliability.BYPASS, subscriber)

    def accepted(self, subscriber: str) -> float:
        """… at which the publisher's home was (D1-C3)."""
        publisher = self._world.topics[subscriber]
        times = self._published[publisher]
        return sum(self._replay.accepts(self._world.homes[publisher], time) for time in times) / len(times)
