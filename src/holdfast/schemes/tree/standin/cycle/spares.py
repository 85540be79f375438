"""Who could stand in: spares of the site file that run already, and what the program beside the broker may get.

A spare that does not answer, or is kept for another, is left out, and named when there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.protocols.routing.network_map import NetworkMap, NetworkMember
from holdfast.protocols.routing.settings import RoutingSettings


class Pool:
    """The spares that a site lists (D0-A9)."""

    def __init__(self, settings: RoutingSettings) -> None:
        members = set(settings.graph.brokers)
        self._settings = settings
        self.names = tuple(name for name in settings.addresses if name not in members)

    def place(self, name: str) -> NetworkMember | None:
        """Where a broker is found that the site lists."""
        settings = self._settings
        if name not in settings.addresses:
            return None
        return NetworkMember(name, settings.client_addresses.get(name, ""), settings.addresses[name])

    def free(self, network: NetworkMap) -> Iterator[NetworkMember]:
        """Those that are no members and never were lost, nor wait for a place of their own."""
        taken = taken_names(network)
        for name in self.names:
            place = self.place(name)
            if name not in taken and place is not None:
                yield place


def taken_names(network: NetworkMap) -> tuple[str, ...]:
    waiting = [one.name for one in network.resting if one.by]
    return (*network.names, *network.former, *waiting)
