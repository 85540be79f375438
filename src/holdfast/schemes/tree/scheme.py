"""The scheme `tree` as others see it: one broker, or a network whose level of reliability the site file says (D1-A10).

A network's settings stand in two tables: `reliability` in `[scheme]`, all others in `[routing]`. Routing runs on a tree
(D0-A1), so that a graph with a cycle is refused at levels that would never use the links beside it (D1-A10); what can
have no effect, or would break what a level promises, is refused likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace

from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.links import Seeded, read_links, refuse_cycle
from holdfast.broker.scheme import InitOption, InitWish, Making, Prediction, Scheme, Template
from holdfast.broker.settings_table import MORE, NOT_LESS, check_order, read_settings
from holdfast.broker.site import BrokerEntry, Site, check_joined
from holdfast.broker.site_text import SiteText
from holdfast.broker.status import Section
from holdfast.kernel.node import Node
from holdfast.kernel.settings import choices
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.failure.messages import FAILURE_MESSAGES
from holdfast.protocols.routing.messages import LARGE_ROUTING_MESSAGES, ROUTING_MESSAGES, ROUTING_RECORDS
from holdfast.protocols.routing.network_map import StandInProtocol
from holdfast.protocols.routing.settings import (
    Reliability,
    Remedy,
    RoutingSettings,
    ServiceLevels,
    StandInSettings,
)
from holdfast.schemes.tree import KIND
from holdfast.schemes.tree.bypass.messages import BYPASS_MESSAGES, LARGE_BYPASS_MESSAGES
from holdfast.schemes.tree.init_text import OPTIONS, TEMPLATES, site_text
from holdfast.schemes.tree.measures import MEASURES, MEASURES_BY_NAME
from holdfast.schemes.tree.parts import make_broker
from holdfast.schemes.tree.settings import (
    DEFAULTS,
    NOT_LEVELS,
    NOT_ROUTING,
    NOT_STAND_INS,
    OF_SCHEME,
    SLA,
    routing_of,
    routing_settings,
)
from holdfast.schemes.tree.standin.cycle.messages import CYCLE_MESSAGES, CYCLE_RECORDS
from holdfast.schemes.tree.standin.messages import LARGE_STAND_IN_MESSAGES, STAND_IN_MESSAGES
from holdfast.schemes.tree.standin.tables import TABLES, read_tables
from holdfast.schemes.tree.status import is_outside, network_sections

if TYPE_CHECKING:
    pass


SUBTABLES: Final = (SLA, *TABLES)  # of [standin]


class TreeScheme(Scheme):
    kind: ClassVar[str] = KIND
    about: ClassVar[str] = "a network of brokers that are joined by links, or one broker"
    page: ClassVar[str] = "routing.md"
    settings: ClassVar[RoutingSettings] = DEFAULTS
    tables: ClassVar[Mapping[str, type]] = {"routing": dict, "standin": dict}
    prediction: ClassVar[Prediction | None] = Prediction.WAYS
    catalogue = catalogue_of(
        KIND,
        {**FAILURE_MESSAGES, **BYPASS_MESSAGES, **ROUTING_MESSAGES, **STAND_IN_MESSAGES, **CYCLE_MESSAGES},
        {**ROUTING_RECORDS, **CYCLE_RECORDS},
        (*LARGE_ROUTING_MESSAGES, *LARGE_BYPASS_MESSAGES, *LARGE_STAND_IN_MESSAGES),
    )
    has_spares: ClassVar[bool] = True
    measures: ClassVar[Mapping[str, str]] = MEASURES
    measures_by_name: ClassVar[Mapping[str, str]] = MEASURES_BY_NAME
    init_options: ClassVar[Mapping[str, InitOption]] = OPTIONS
    templates: ClassVar[Mapping[str, Template]] = TEMPLATES
    demo: ClassVar[str] = "examples.through_brokers"

    # ----------------------------------------------------------------------------------------------------- site file
    def read_settings(self, text: SiteText, document: Mapping[str, Any]) -> RoutingSettings:
        elsewhere = choices(RoutingSettings).keys() - OF_SCHEME
        level = read_settings(text, document.get("scheme", {}), "scheme", DEFAULTS, elsewhere, ("kind",)).reliability
        table = document.get("routing", {})
        said = read_settings(text, table, "routing", DEFAULTS, NOT_ROUTING)
        # Else what is wanted is forgotten between two tellings, and who is alive is suspected between two heartbeats.
        for later, sooner, wanted in (
            ("expire_ms", "refresh_ms", MORE),
            ("suspect_ms_min", "heartbeat_ms", MORE),
            ("suspect_ms_max", "suspect_ms_min", NOT_LESS),
        ):
            check_order(text, table, "routing", said, later, sooner, wanted)
        stand_ins = _read_stand_ins(text, document, level)
        if level.expires and stand_ins.levels.enabled and said.expire < 2 * stand_ins.levels.unreachable:
            problem = (
                f"'unreachable_ms' is {stand_ins.levels.unreachable // MILLISECOND}: with reliability {level.value!r}"
                f" what is wanted behind a broker is forgotten after expire_ms, {said.expire // MILLISECOND}, and a"
                " stand-in would come too late; make that twice as long, or more"
            )
            text.refuse(problem, "unreachable_ms", f"standin.{SLA}")
        return replace(said, reliability=level, stand_ins=stand_ins)

    def complete(self, text: SiteText, document: Mapping[str, Any], site: Site, seeded: Seeded | None) -> Site:
        level = routing_settings(site.settings).reliability
        _check_spares(text, document, site)
        site = replace(site, links=read_links(text, document, [entry.id for entry in site.members], seeded))
        if not level.detours:
            others = " or ".join(f'"{each.value}"' for each in Reliability if each.detours)
            why = f'with reliability "{level.value}" only a tree is used: take {others}'
            refuse_cycle(text, document, site.graph, why)
        if len(site.brokers) == 1:
            _refuse_routing(text, document, level)
            return site
        title = "broker" if "broker" in document else "topology"
        for place, entry in enumerate(site.brokers):
            if level.buffers and not entry.data:
                problem = (
                    f'broker {entry.id!r} has no data: with reliability "{level.value}" it answers for events until the'
                    " next broker has stored them, and they must outlive it"
                )
                text.refuse(problem, "", title, 0 if title == "topology" else place)
            if routing_settings(site.settings).stand_ins.levels.enabled and not entry.data:
                problem = (
                    f"broker {entry.id!r} has no data: with [standin.{SLA}] brokers agree among themselves,"
                    " and must not forget it"
                )
                text.refuse(problem, "", title, 0 if title == "topology" else place)
        check_joined(text, site, "broker", title)
        return replace(site, beside=read_tables(text, document, site))

    def greeting(self, site: Site, entry: BrokerEntry) -> str:
        if not entry.spare:
            return ""
        added = "the site file has it as a spare: it takes part once `holdfast network add-broker` has added it"
        stands_in = routing_settings(site.settings).stand_ins.enabled
        return added + (", or `holdfast standin replace` has let it stand in for another" if stands_in else "")

    def beside(self, site: Site) -> str:
        return "holdfast.standby.beside" if routing_settings(site.settings).stand_ins.levels.enabled else ""

    def init_text(self, wish: InitWish) -> str:
        return site_text(wish)

    # --------------------------------------------------------------------------------------------------------- nodes
    def make_node(self, making: Making) -> Node:
        told = making.told
        return make_broker(told.broker, making.rng, making.streams, making.application, routing_of(told), making.kit)

    # -------------------------------------------------------------------------------------------------------- people
    def status(self, rows: Sequence[Mapping[str, Any]]) -> list[Section]:
        return network_sections(rows)

    def is_missed(self, broker: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        return not is_outside(broker, rows)


def _read_stand_ins(text: SiteText, document: Mapping[str, Any], level: Reliability) -> StandInSettings:
    if "standin" not in document:
        return DEFAULTS.stand_ins
    if level.detours:
        problem = f"with reliability {level.value!r} events go around a broker that fails, and nobody stands in for it"
        text.refuse(problem, "", "standin")
    table = document["standin"]
    said = read_settings(text, table, "standin", DEFAULTS, NOT_STAND_INS, besides=dict.fromkeys(SUBTABLES, dict))
    levels = _read_levels(text, document, level) if SLA in table else DEFAULTS.stand_ins.levels
    return replace(said.stand_ins, enabled=True, levels=levels, in_group="directory" in table)


def _read_levels(text: SiteText, document: Mapping[str, Any], level: Reliability) -> ServiceLevels:
    title = f"standin.{SLA}"
    said = read_settings(text, document["standin"][SLA], title, DEFAULTS, NOT_LEVELS).stand_ins.levels
    if level.buffers and said.protocol is StandInProtocol.INCREM:
        problem = f"with reliability {level.value!r} events keep their order: take synch or basic"
        text.refuse(problem, "protocol", title)
    if level.buffers and said.congestion is Remedy.SHARE_IN_ORDER:
        text.refuse(f"with reliability {level.value!r}, take ms: it keeps what is stored in order", "congestion", title)
    return replace(said, enabled=True)


def _check_spares(text: SiteText, document: Mapping[str, Any], site: Site) -> None:
    """A spare has neighbours when it is added, and not before; and only a network takes it in."""
    spares = {entry.id: place for place, entry in enumerate(site.brokers) if entry.spare}
    if not spares:
        return
    first = next(iter(spares.values()))
    if len(site.members) < 2:
        has = f"one broker, {site.members[0].id!r}," if site.members else "none"
        problem = (
            f"spares are added to a network, which begins with two brokers or more; this site has {has} without them"
        )
        text.refuse(problem, "spare", "broker", first)
    tables = document.get("link", [])
    for place, table in enumerate(tables if isinstance(tables, list) else []):
        between = table.get("between") if isinstance(table, dict) else None
        for end in between if isinstance(between, list) else []:
            if isinstance(end, str) and end in spares:
                problem = (
                    f"broker {end!r} is a spare, and has no links until `holdfast network add-broker` has added it"
                )
                text.refuse(problem, "between", "link", place)


def _refuse_routing(text: SiteText, document: Mapping[str, Any], level: Reliability) -> None:
    """A single broker has nothing to route."""
    alone = "the site has one broker, and there is nothing to route"
    if level is not Reliability.NONE:
        text.refuse(f"'reliability' is {level.value!r}, of a network; {alone}", "reliability", "scheme")
    for table in ("routing", "standin"):
        if table in document:
            text.refuse(f"[{table}] is of a network; {alone}", "", table)


SCHEME: Final = TreeScheme()
