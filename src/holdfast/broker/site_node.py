"""The node that an entry of a site file describes, with what a driver must know to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.broker.scheme import Making
from holdfast.broker.site import BrokerEntry, Site
from holdfast.codec.catalogue import Catalogue
from holdfast.errors import WrongLog
from holdfast.kernel.application import Hosted
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams

if TYPE_CHECKING:
    from random import Random


class SiteNode(NamedTuple):
    """`owner`: whose the data folder must be; empty if the node knows its disk by itself."""

    make: Callable[[Random, StoredStreams], Node]
    owner: str
    catalogue: Catalogue


def site_node(site: Site, entry: BrokerEntry, application: Hosted | None) -> SiteNode:
    """Of one of the site's brokers, with the application that it hosts."""
    told = site.told(entry)

    def make(rng: Random, streams: StoredStreams) -> Node:
        try:
            return site.scheme.make_node(Making(told, rng, streams, application))
        except WrongLog as error:
            error.found_in(entry.data)
            raise

    return SiteNode(make, entry.id if site.scheme.owns_disk(site) else "", site.scheme.catalogue)
