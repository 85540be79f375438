"""The scheme `paxos` as others see it: a group of replicas that behaves as one broker (D4). All its settings stand in
`[scheme]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.links import Seeded
from holdfast.broker.scheme import InitOption, InitWish, Making, Place, Prediction, Scheme, Template, Told
from holdfast.broker.settings_table import MORE, check_order, read_settings
from holdfast.broker.site import BrokerEntry, Site, check_joined
from holdfast.broker.site_text import SiteText
from holdfast.broker.status import Section
from holdfast.kernel.node import Node, broken
from holdfast.schemes.paxos import KIND
from holdfast.schemes.paxos.init_text import OPTIONS, TEMPLATES, site_text
from holdfast.schemes.paxos.measures import MEASURES
from holdfast.schemes.paxos.messages import LARGE_PAXOS_MESSAGES, PAXOS_MESSAGES, PAXOS_RECORDS
from holdfast.schemes.paxos.parts import make_replica
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from holdfast.schemes.paxos.status import group_sections, is_outside, leader_of

if TYPE_CHECKING:
    pass

DEFAULTS: Final = PaxosSettings("", ())
# Four survive no more failures than three; but fast rounds go on with one of them down.
GROUP_SIZES: Final = (1, 3, 4, 5, 7, 9)


class PaxosScheme(Scheme):
    kind: ClassVar[str] = KIND
    about: ClassVar[str] = "a group of replicas that behaves as one broker"
    page: ClassVar[str] = "groups.md"
    called: ClassVar[str] = "group"
    settings: ClassVar[PaxosSettings] = DEFAULTS
    has_links: ClassVar[bool] = False
    has_spares: ClassVar[bool] = True
    is_one_broker: ClassVar[bool] = True
    prediction: ClassVar[Prediction | None] = Prediction.MAJORITY
    catalogue = catalogue_of(KIND, PAXOS_MESSAGES, PAXOS_RECORDS, LARGE_PAXOS_MESSAGES)
    measures: ClassVar[Mapping[str, str]] = MEASURES
    init_options: ClassVar[Mapping[str, InitOption]] = OPTIONS
    templates: ClassVar[Mapping[str, Template]] = TEMPLATES
    demo: ClassVar[str] = "examples.take_over"

    # ----------------------------------------------------------------------------------------------------- site file
    def read_settings(self, text: SiteText, document: Mapping[str, Any]) -> PaxosSettings:
        table = document.get("scheme", {})
        said = read_settings(text, table, "scheme", DEFAULTS, besides=("kind",))
        check_order(text, table, "scheme", said, "patience_ms", "heartbeat_ms", MORE)
        return said

    def complete(self, text: SiteText, document: Mapping[str, Any], site: Site, seeded: Seeded | None) -> Site:
        if len(site.members) not in GROUP_SIZES:
            sizes = ", ".join(map(str, GROUP_SIZES))
            text.refuse(f"the group has {len(site.members)} replicas, and has to have one of {sizes}", "", "broker")
        for place, entry in enumerate(site.brokers):
            if not entry.data:
                text.refuse(f"replica {entry.id!r} has no data: its votes must outlive it", "", "broker", place)
        check_joined(text, site, "replica", "broker")
        return site

    def greeting(self, site: Site, entry: BrokerEntry) -> str:
        if entry.spare:
            return (
                "the site file has it as a spare: it takes part once `holdfast group add` or `replace` has taken it in"
            )
        if len(site.brokers) == 1:
            return ""
        others = ", ".join(other.id for other in site.brokers if other.id != entry.id and not other.spare)
        return f"it is a replica of a group, with {others}; clients need one of them, or all their addresses"

    def init_text(self, wish: InitWish) -> str:
        return site_text(wish)

    # --------------------------------------------------------------------------------------------------------- nodes
    def make_node(self, making: Making) -> Node:
        return make_replica(
            making.told.broker, group_of(making.told), making.rng, making.streams, making.application, making.kit
        )

    def owns_disk(self, site: Site) -> bool:
        return False  # a replica knows its disk by itself

    # -------------------------------------------------------------------------------------------------------- people
    def status(self, rows: Sequence[Mapping[str, Any]]) -> list[Section]:
        return group_sections(rows)

    def is_missed(self, broker: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        return not is_outside(broker, rows)

    def speaker(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        return leader_of(rows)


def paxos_settings(settings: msgspec.Struct) -> PaxosSettings:
    """The settings of a site, or of a scenario, of this scheme."""
    if not isinstance(settings, PaxosSettings):
        broken("the settings are those of the scheme", settings=type(settings).__name__)
    return settings


def group_of(told: Told) -> PaxosSettings:
    """What one replica is told. The members are in the order of the site, which is that of their places."""
    members = tuple(_member(place) for place in told.places if not place.spare)
    spares = tuple(_member(place) for place in told.places if place.spare)
    return replace(paxos_settings(told.settings), name=told.broker.name, members=members, spares=spares)


def _member(place: Place) -> Member:
    return Member(place.id, place.peer_address, place.client_address)


SCHEME: Final = PaxosScheme()
