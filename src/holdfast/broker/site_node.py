"""The node that an entry of a site file describes, with what a driver must know to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.broker.assembly import BrokerSettings, make_broker, make_replica
from holdfast.broker.site import BrokerEntry, Site
from holdfast.codec.catalogue import Catalogue
from holdfast.errors import WrongLog
from holdfast.kernel.application import Hosted
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.catalogue import CATALOGUE

if TYPE_CHECKING:
    from random import Random


class SiteNode(NamedTuple):
    """`owner`: whose the data folder must be; empty if the node knows its disk by itself."""

    make: Callable[[Random, StoredStreams], Node]
    owner: str
    catalogue: Catalogue


def site_node(site: Site, entry: BrokerEntry, application: Hosted | None) -> SiteNode:
    """Of one of the site's brokers, with the application that it hosts."""
    settings = BrokerSettings(
        entry.id,
        entry.durable,
        limits=site.limits,
        retention=site.retention,
        application="" if site.application is None else site.application.name,
        hosting=site.hosting,
    )
    group = site.group(entry)
    routing = site.routing(entry) if site.is_network else None

    def make(rng: Random, streams: StoredStreams) -> Node:
        try:
            if site.is_group:
                return make_replica(settings, group, rng, streams, application=application)
            return make_broker(settings, rng, streams, application, routing)
        except WrongLog as error:
            error.found_in(entry.data)
            raise

    # A group knows its disks by itself. In a network, another's tables and feeds would lose what is published.
    return SiteNode(make, entry.id if site.is_network else "", CATALOGUE)
